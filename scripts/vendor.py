"""Fetch the page's libraries from npm into src/textor/server/page/vendor.

Run by hand when a version is raised; never at install time: what it writes is committed.
`npm pack` fetches each package, the tarball must have the pinned SHA-512, and of it only the
named file is taken. Browsers resolve no bare names (and an import map would be an inline
script, which our policy forbids), so `from "preact"` becomes `from "./preact.js"`: the one
change made. `--check` writes nothing and fails when a committed file differs.

    python scripts/vendor.py [--check]
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / "src/textor/server/page/vendor"


@dataclass(frozen=True)
class Package:
    """One npm package at one version: `files` maps a path in it to a name in `vendor/`."""

    name: str
    version: str
    sha512: str  # base64, the part of npm's `dist.integrity` after "sha512-"
    files: dict[str, str] = field(default_factory=dict)
    licence: str = "LICENSE"


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js"},
    ),
    Package(
        "@preact/signals-core",
        "1.14.5",
        "vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        {"dist/signals-core.mjs": "signals-core.js"},
    ),
    Package(
        "@preact/signals",
        "2.11.4",
        "Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw==",
        {"dist/signals.mjs": "signals.js"},
    ),
    Package(
        "htm",
        "3.1.1",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"dist/htm.mjs": "htm.js"},
    ),
    Package(
        "marked",
        "18.2.1",
        "ii4bxCTCqqwpT86XZWgJNs+ZnAIZksmLGYMViWA7PDIXYIeNo1x6cDdX3JOip9NM/cI6p8z57FxliACboTruMA==",
        {"lib/marked.esm.js": "marked.js"},
    ),
    Package(
        "dompurify",
        "3.5.0",
        "LYC0ZkE8P1V42JsRYTwMdme/2ET8SpOc5AA2eOFjP/IadvRd2fwiT4TVz5vkfy0XUx12aS2UaRkTnfVPNOv9vw==",
        {"dist/purify.es.mjs": "purify.js"},
    ),
    Package(  # the core and the 35 common languages in one file
        "@highlightjs/cdn-assets",
        "11.12.0",
        "KvOKXODaiFmId9xaq3xc5xCL66wVLUuOngDbO9B/kewbFTqdGbn2nJxNhN3H5R1cgDTVj6R8vH0zgiNDEGjpDw==",
        {"es/highlight.min.js": "highlight.js"},
    ),
)

#: Bare names that the taken files import, and where they lie here.
NAMES = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
}
_IMPORT = re.compile(r'(\}\s*from)\s*"([^".][^"]*)"')
_SOURCE_MAP = re.compile(r"//# sourceMappingURL=\S+\s*")


def fetch(package: Package, folder: Path) -> tarfile.TarFile:
    """The package's tarball, checked."""
    spec = f"{package.name}@{package.version}"
    packed = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(folder), spec],
        check=True, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    content = (folder / packed.stdout.split()[-1]).read_bytes()
    found = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != package.sha512:
        sys.exit(f"{spec}: the tarball's SHA-512 is {found}, pinned is {package.sha512}.")
    return tarfile.open(fileobj=io.BytesIO(content))


def text_of(tarball: tarfile.TarFile, path: str) -> str:
    member = tarball.extractfile(f"package/{path}")
    assert member is not None
    return member.read().decode()


def resolved(source: str, name: str) -> str:
    """`source` with its bare imports pointing at the files beside it."""

    def replace(match: re.Match[str]) -> str:
        if match[2] not in NAMES:
            sys.exit(f"{name} imports {match[2]!r}, which is not taken: add it to NAMES.")
        return f'{match[1]}"{NAMES[match[2]]}"'

    return _IMPORT.sub(replace, _SOURCE_MAP.sub("", source))


def build() -> dict[str, str]:
    """Name -> content of everything in `vendor/` that this script owns."""
    files: dict[str, str] = {}
    licences = ["The files beside this one come from npm, unchanged but for the paths of their imports.\n"]
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            tarball = fetch(package, Path(folder))
            for path, name in package.files.items():
                files[name] = resolved(text_of(tarball, path), name)
            title = f"{package.name} {package.version} ({', '.join(package.files.values())})"
            licences.append(f"{title}\n{'=' * len(title)}\n{text_of(tarball, package.licence).strip()}\n")
    files["LICENCES.txt"] = "\n\n".join(licences)
    return files


def main() -> None:
    files = build()
    if "--check" in sys.argv[1:]:
        changed = [n for n, text in files.items() if (VENDOR / n).read_text(encoding="utf-8") != text]
        sys.exit(f"These files differ from npm's: {', '.join(changed)}" if changed else 0)
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (VENDOR / name).write_text(text, encoding="utf-8")
        print(f"{len(text):>8} {name}")


if __name__ == "__main__":
    main()
