#!/usr/bin/env bash
# A container engine with the images that the tests use, on a Debian without any image registry.
#
#   scripts/engine.sh          installs what is missing, starts Docker if it does not answer, imports images
#   scripts/engine.sh images   only the images
#
# Each step is left out when it is done already. Images: textor/busybox:test (busybox-static),
# textor/base:test (a small Debian with Python, by debootstrap), textor/sandbox:test (the sandbox
# image over that base).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export DEBIAN_FRONTEND=noninteractive

answers() { docker version >/dev/null 2>&1; }
has() { docker image inspect "$1" >/dev/null 2>&1; }

install() {
    local packages=()
    command -v docker >/dev/null && command -v dockerd >/dev/null || packages+=(docker.io)
    command -v debootstrap >/dev/null || packages+=(debootstrap)
    dpkg -s busybox-static >/dev/null 2>&1 || packages+=(busybox-static)
    [ ${#packages[@]} -eq 0 ] && return
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${packages[@]}" iptables
    # newer releases have the command in a package of its own
    command -v docker >/dev/null || apt-get install -y -qq --no-install-recommends docker-cli
}

start() {
    answers && return
    local log
    log=$(mktemp)
    setsid dockerd >"$log" 2>&1 </dev/null &
    for _ in $(seq 150); do
        answers && return
        sleep 0.2
    done
    tail -n 20 "$log" >&2
    echo "Docker did not come up within 30 seconds." >&2
    exit 1
}

make_busybox() { # an image of one static program under all its names
    has textor/busybox:test && return
    local root
    root=$(mktemp -d)
    mkdir -p "$root"/{bin,tmp,proc,sys,dev,etc}
    cp "$(command -v busybox)" "$root/bin/busybox"
    "$root/bin/busybox" --list | while read -r name; do
        [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
    done
    chmod 755 "$root"
    chmod 1777 "$root/tmp"
    tar -C "$root" -c . | docker import - textor/busybox:test >/dev/null
    rm -rf "$root"
}

make_base() { # the release of this machine, from where its packages come
    has textor/base:test && return
    local root mirror suite
    root=$(mktemp -d)
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" "Created-By: Packages" | head -n 1)
    debootstrap --variant=minbase --include=python3,ca-certificates "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2; exit 1; }
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}
    tar -C "$root" -c . | docker import - textor/base:test >/dev/null
    rm -rf "$root" "$root.log"
}

make_sandbox() {
    has textor/sandbox:test && return
    # the older builder needs no image of its own and no network
    local told
    told=$(DOCKER_BUILDKIT=0 docker build --network none --build-arg BASE=textor/base:test \
        -t textor/sandbox:test -f docker/sandbox.Dockerfile docker 2>&1) || { echo "$told" >&2; exit 1; }
}

if [ "${1:-}" != images ]; then
    install
    start
fi
make_busybox
make_base
make_sandbox
