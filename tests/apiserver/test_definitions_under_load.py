"""Custom kinds while their definitions change: what stays is there at any moment."""

from threading import Event, Thread
from typing import Any

from apiserver.http import Http
from kubescene.apiserver.server import Server
from widgets import widget_definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(description: str) -> dict[str, Any]:
    fields = {f"f{number}": {"type": "string"} for number in range(200)}
    schema = {
        "type": "object",
        "description": description,
        "properties": {"spec": {"type": "object", "properties": fields}},
    }
    return widget_definition(schema=schema)


def test_kind_is_served_while_its_definition_changes(server: Server) -> None:
    http, writer, done = (Http(server.host, server.port), Http(server.host, server.port), Event())
    assert http.post(DEFINITIONS, definition("")).status == 201

    def change() -> None:
        number = 0
        while not done.is_set():
            number += 1
            writer.patch(f"{DEFINITIONS}/widgets.example.com", definition(str(number)))

    thread = Thread(target=change)
    thread.start()
    try:
        found = {http.get("/apis/example.com/v1/widgets").status for _ in range(300)}
        found |= {http.get("/apis/example.com").status for _ in range(300)}
    finally:
        done.set()
        thread.join()
        http.close()
        writer.close()
    assert found == {200}
