"""A small HTTP client over a plain socket, so that tests see status, headers and raw bytes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


class Events:
    """The events of an open watch."""

    def __init__(self, response: HTTPResponse) -> None:
        self.response = response

    def next(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.response.readline())
        return event

    def take(self, count: int) -> list[tuple[str, str]]:
        """Types and names of the next events."""
        found = [self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in found]

    def rest(self) -> list[dict[str, Any]]:
        """All events until the server ends the stream."""
        return [json.loads(line) for line in self.response.read().splitlines()]


class Http:
    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._connection = HTTPConnection(host, port, timeout=120)

    def close(self) -> None:
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Reply:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Content-Type": content_type} if data is not None else {}
        self._connection.request(method, path, data, {**sent, **(headers or {})})
        response = self._connection.getresponse()
        return Reply(response.status, response.getheaders(), response.read())

    def get(self, path: str, accept: str = "") -> Reply:
        return self.request("GET", path, headers={"Accept": accept} if accept else None)

    def post(self, path: str, body: Any, **options: Any) -> Reply:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any) -> Reply:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge-patch+json") -> Reply:
        return self.request("PATCH", path, body, content_type=f"application/{kind}")

    def delete(self, path: str, body: Any = None) -> Reply:
        return self.request("DELETE", path, body)

    @contextmanager
    def watch(self, path: str, accept: str = "application/json") -> Iterator[Events]:
        """An open watch on a connection of its own."""
        connection = HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.request("GET", path, headers={"Accept": accept})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield Events(response)
        finally:
            connection.close()


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "pause"}], **spec},
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
