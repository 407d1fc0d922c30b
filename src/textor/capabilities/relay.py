"""Carries connections between a port and a unix socket; runs inside sandboxes, by itself.

`python3 relay.py LISTEN TARGET`, each `tcp:PORT` (on 127.0.0.1) or `unix:PATH`. A sandbox has no
network; through a socket in a folder that it shares with us, single ways in or out are opened.
Only the standard library, and nothing of Textor: it is copied to where it runs.
"""

import os
import socket
import sys
import threading


def listening(place: str) -> socket.socket:
    kind, _, where = place.partition(":")
    if kind == "tcp":
        return socket.create_server(("127.0.0.1", int(where)), backlog=64)
    server = socket.socket(socket.AF_UNIX)
    if os.path.exists(where):  # noqa: PTH110 - kept free of what old Pythons in images may lack
        os.unlink(where)  # noqa: PTH108
    server.bind(where)
    server.listen(64)
    return server


def connected(place: str) -> socket.socket:
    kind, _, where = place.partition(":")
    if kind == "tcp":
        return socket.create_connection(("127.0.0.1", int(where)))
    far = socket.socket(socket.AF_UNIX)
    far.connect(where)
    return far


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other way notices as well


def carry(near: socket.socket, target: str) -> None:
    with near:
        try:
            far = connected(target)
        except OSError:
            return
        with far:
            back = threading.Thread(target=pump, args=(far, near), daemon=True)
            back.start()
            pump(near, far)
            back.join()


def main(listen: str, target: str) -> None:
    server = listening(listen)
    if os.fork():
        os._exit(0)  # whoever started it goes on now that it listens
    while True:
        near, _ = server.accept()
        threading.Thread(target=carry, args=(near, target), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
