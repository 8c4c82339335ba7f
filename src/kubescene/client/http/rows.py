"""One object followed as a row of its table: what ``kubectl get -w`` reads.

A table holds a few words of each change, however large the object is. Where a watch breaks it is
opened anew and begins with the present state: steps in between may be missed, the last never is.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple

import orjson

from kubescene.client.http.discovery import ApiResource
from kubescene.client.http.requests import Requests, target
from kubescene.client.http.watch_connections import WatchConnection
from kubescene.client.http.wire import MalformedResponseError, WireRequest
from kubescene.clock import MILLISECOND, SECOND, Deadline
from kubescene.errors import ApiError, UnreachableError
from kubescene.types import JsonObject

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TURN_S = 0.5
RETRY = 100 * MILLISECOND


class TableRow(NamedTuple):
    """Cells by the names of their columns; ``is_gone`` when the object was deleted."""

    cells: dict[str, str]
    is_gone: bool


class RowWatch:
    """The rows of one object, as they come."""

    def __init__(self, requests: Requests, api: ApiResource, name: str, patience_s: float) -> None:
        endpoint = replace(requests.endpoint, accept=TABLE)
        self._requests = Requests(endpoint, requests.clock, timeout_s=requests.timeout_s)
        self._request = WireRequest(
            "GET",
            target(api.collection(), watch="true", fieldSelector=f"metadata.name={name}"),
        )
        self._patience_s = patience_s
        self._columns: list[str] = []

    def follow(self) -> Generator[TableRow | None, None, None]:
        """Without end. None comes first, once the watch is open: nothing is missed from then on.

        It also comes when nothing did for a while, so that others get a turn.
        """
        deadline = Deadline(self._requests.clock, int(self._patience_s * SECOND))
        while True:
            try:
                for row in self._watched():
                    deadline = Deadline(self._requests.clock, int(self._patience_s * SECOND))
                    yield row
            except (OSError, MalformedResponseError, UnreachableError) as error:
                if deadline.is_over:
                    raise self._requests.failure(self._request, error) from error
            clock = self._requests.clock
            clock.wait_until(clock.now() + RETRY)

    def _watched(self) -> Iterator[TableRow | None]:
        connection = WatchConnection(self._requests, self._request)
        selector = DefaultSelector()
        selector.register(connection, EVENT_READ)
        is_open = False
        try:
            while not connection.has_ended:
                selector.select(0 if connection.has_more else TURN_S)
                lines, was_open = connection.receive(), is_open
                is_open = connection.is_granted
                if is_open and not (was_open and lines):
                    yield None
                for line in lines:
                    yield from self._rows(orjson.loads(line))
            if connection.error is not None:
                raise connection.error
        finally:
            selector.close()
            connection.close()

    def _rows(self, event: JsonObject) -> Iterator[TableRow]:
        table = event["object"]
        if event["type"] == "ERROR":
            raise ApiError(str(table.get("message", "the watch was ended by the server")))
        if columns := table.get("columnDefinitions"):
            self._columns = [str(column["name"]) for column in columns]
        for row in table.get("rows") or ():
            cells = ["" if cell is None else str(cell) for cell in row["cells"]]
            yield TableRow(
                dict(zip(self._columns, cells, strict=False)), event["type"] == "DELETED"
            )
