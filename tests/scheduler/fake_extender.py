"""An extender in a process of its own, in all its moods: the first word of the path says which.

Prints its port and then serves until it is killed. With two arguments, certificate and key, it
speaks https.
"""

import json
import ssl
import sys
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any, ClassVar

DELAY_S = 30.0
"""Longer than anybody waits."""
NEVER = Event()


class Extender(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, mood, *rest = self.path.split("/")
        self.calls.append(
            {"path": self.path, "body": json.loads(body), "port": self.client_address[1]}
        )
        getattr(self, f"be_{mood}")(json.loads(body), rest)

    def do_GET(self) -> None:
        """What it has been asked so far."""
        self.reply(self.calls)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""

    def reply(self, document: Any, status: int = 200) -> None:
        self.send(json.dumps(document).encode(), status)

    def send(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # -- the moods -----------------------------------------------------------------------------

    def be_good(self, args: Any, rest: list[str]) -> None:
        """Passes and likes the last node best; lets everything be bound and preempted."""
        verb = rest[-1]
        names = args.get("NodeNames") or [
            node["metadata"]["name"] for node in (args.get("Nodes") or {}).get("items") or []
        ]
        if verb == "filter" and args.get("Nodes") is not None:
            items = args["Nodes"]["items"][-1:]
            self.reply({"nodes": {"items": items}, "failedNodes": dict.fromkeys(names[:-1], "no")})
        elif verb == "filter":
            self.reply({"nodenames": names[-1:], "FAILEDNODES": dict.fromkeys(names[:-1], "no")})
        elif verb == "prioritize":
            self.reply([{"Host": names[-1], "Score": 10}])
        elif verb == "preempt":
            self.reply({"NodeNameToMetaVictims": args["NodeNameToMetaVictims"]})
        else:
            self.reply({"Error": ""})

    def be_ranking(self, args: Any, rest: list[str]) -> None:
        """Refuses the nodes that a pod's label ``shuns`` begins the name of; no two score alike."""
        names = args.get("NodeNames") or []
        shunned = (args["Pod"]["metadata"].get("labels") or {}).get("shuns", "nobody")
        if rest[-1] == "filter":
            fine = [name for name in names if not name.startswith(shunned)]
            failed = dict.fromkeys(sorted(set(names) - set(fine)), "shunned")
            self.reply({"NodeNames": fine, "FailedNodes": failed})
        else:
            ranks = [(sum(name.encode()) * 7 + int(name[-1]) * 3) % 11 for name in names]
            ranked = zip(names, ranks, strict=True)
            self.reply([{"Host": name, "Score": rank} for name, rank in ranked])

    def be_slow(self, args: Any, rest: list[str]) -> None:
        NEVER.wait(DELAY_S)

    def be_dripping(self, args: Any, rest: list[str]) -> None:
        """Something comes all the time, but no answer."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(int(DELAY_S * 20)):
            self.wfile.write(b"x")
            self.wfile.flush()
            NEVER.wait(0.05)

    def be_endless(self, args: Any, rest: list[str]) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b'["' + b"x" * 65536)

    def be_broken(self, args: Any, rest: list[str]) -> None:
        self.reply({"Error": "out of order"}, 500)

    def be_confused(self, args: Any, rest: list[str]) -> None:
        self.send(b"<html>hello</html>")

    def be_torn(self, args: Any, rest: list[str]) -> None:
        self.send(b'{"NodeNames": ["a"')

    def be_wrong(self, args: Any, rest: list[str]) -> None:
        self.reply([])

    def be_lying(self, args: Any, rest: list[str]) -> None:
        self.reply({"NodeNames": ["nowhere"]})

    def be_complaining(self, args: Any, rest: list[str]) -> None:
        self.reply({"Error": "backend down"})

    def be_gone(self, args: Any, rest: list[str]) -> None:
        """Hangs up without a word."""
        self.close_connection = True
        self.connection.close()

    def be_restless(self, args: Any, rest: list[str]) -> None:
        """Answers and hangs up, without saying so before."""
        self.be_good(args, rest)
        self.close_connection = True

    def be_calling(self, args: Any, rest: list[str]) -> None:
        """Writes something through the API at that address before it answers."""
        host, verb = rest[0], rest[-1]
        api = HTTPConnection(host, timeout=120)
        if verb == "bind":
            path = f"/api/v1/namespaces/{args['PodNamespace']}/pods/{args['PodName']}/binding"
            sent: Any = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": args["PodName"]},
            }
            sent |= {"target": {"kind": "Node", "name": args["Node"]}}
        else:
            path = "/api/v1/namespaces/default/configmaps"
            sent = {"apiVersion": "v1", "kind": "ConfigMap"}
            sent |= {"metadata": {"name": f"seen-{args['Pod']['metadata']['name']}"}}
        api.request("POST", path, json.dumps(sent), {"Content-Type": "application/json"})
        answer = api.getresponse()
        if answer.status != 201:
            self.reply({"Error": answer.read().decode()})
        else:
            self.be_good(args, rest)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
