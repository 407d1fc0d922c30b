#!PYTHON
"""A program of a stranger that speaks the protocol of the document, and nothing of ours.

    foreign_app.py PORT            serves; writes each call as a line of JSON into the file CALLS
    foreign_app.py PORT -install   registers with the broker and ends, LAUNCH first

It is written from the document's text: ten fields in JSON, a port as the argument, a route to POST to.
`--way` chooses how it misbehaves, for the tests of that.
"""

import http.server
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

BROKER = os.environ.get("BROKER", "http://localhost:7771/")
CALLS = os.environ.get("CALLS", "")
HERE = str(pathlib.Path(__file__).resolve())

LAUNCH = {
    "Action": "start email application",
    "AppClass": "email",
    "AppPath": HERE,
    "ActionType": 0,
    "Description": "launch an empty email in the email app",
    "Route": "",
    "Method": 4,
    "ContentType": "",
    "Contract": "",
}
SUBJECT = {
    "Action": "set email subject to []",
    "AppClass": "email",
    "AppPath": None,
    "ActionType": 1,
    "Description": "Set the Subject of an EMail",
    "Route": "subject",
    "Method": 1,
    "ContentType": "application/json",
    "Contract": "SingleText",
    "Vector": [-0.01321471, -0.0028538294, 0.0075712195],
}
RECIPIENT = {**SUBJECT, "Action": "add recipient email address []", "Route": "recipient", "Description": ""}


def post(path, body):
    request = urllib.request.Request(
        BROKER + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            print(path, answer.status)
    except urllib.error.HTTPError as error:
        print(path, error.code)


class Window(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        route = self.path.strip("/")
        if route == "crash":
            os._exit(3)
        if route == "hang":
            time.sleep(3600)
        if route == "broken":
            return self.answer(500, b"<html>the window is broken</html>", "text/html")
        if route == "big":
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            try:
                for _ in range(100):
                    self.wfile.write(b"x" * 1_000_000)
            except OSError:
                pass
            return None
        if CALLS:
            with pathlib.Path(CALLS).open("a") as file:
                file.write(json.dumps([self.server.server_port, route, body]) + "\n")
        return self.answer(200, b"", "")

    def answer(self, status, content, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


def main():
    if "-install" in sys.argv:
        post("capability", LAUNCH)
        post("capability", SUBJECT)
        post("capability/", RECIPIENT)
        post(
            "example",
            {"AppClass": "email", "Question": "write to bob", "Answers": ["start email application"]},
        )
        return
    way = os.environ.get("WAY", "")
    if way == "exits":
        print("a library is missing")
        sys.exit(7)
    if way == "silent":
        time.sleep(3600)
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Window).serve_forever()


main()
