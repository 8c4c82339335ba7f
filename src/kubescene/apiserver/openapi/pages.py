"""``/openapi/v3`` and ``/openapi/v2`` over HTTP."""

import asyncio
from collections.abc import Iterator

from kubescene.apiserver.openapi.specs import (
    PREFIX,
    SWAGGER,
    OpenApi,
    OpenApiReply,
    swagger_type,
)
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, not_found_page, revalidated
from kubescene.apiserver.table import ANY, READING, Route, method_not_allowed, reading
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.store import Store
from kubescene.types import JsonObject


class OpenApiPages:
    """Answers for the index and for the document of each group version."""

    def __init__(self, openapi: OpenApi) -> None:
        self._openapi = openapi
        self._building = asyncio.Lock()

    def routes(self) -> Iterator[Route]:
        yield Route(ANY, PREFIX, self.get)
        yield from reading(SWAGGER, self.get_swagger)
        yield Route(ANY, "/openapi/{rest...}", self.get)

    async def get(self, request: Request) -> Response:
        reply = self._reply(request.path.rstrip("/"), request)
        if reply is None:
            return not_found_page()
        if request.method not in READING:
            raise method_not_allowed()
        return _response(reply, request)

    async def get_swagger(self, request: Request) -> Response:
        """Built elsewhere than on the event loop, and once if several ask at the same time."""
        content_type = swagger_type(request.header(b"accept"))
        swagger = self._openapi.swagger()
        async with self._building:
            reply = await asyncio.to_thread(
                swagger.reply, content_type, accept_encoding=request.header(b"accept-encoding")
            )
        return _response(reply, request)

    def _reply(self, path: str, request: Request) -> OpenApiReply | None:
        encoding = request.header(b"accept-encoding")
        if path == PREFIX:
            return self._openapi.index(accept_encoding=encoding)
        wanted = request.query.get("hash", "")
        return self._openapi.document(path, accept_encoding=encoding, requested_hash=wanted)


def _response(reply: OpenApiReply, request: Request) -> Response:
    headers = tuple(
        (name.lower().encode(), value.encode())
        for name, value in reply.headers().items()
        if name.lower() not in ("content-type", "cache-control")
    )
    headers += ((b"cache-control", reply.cache_control.encode()),)
    response = Response(reply.body, 200, reply.content_type, headers)
    return revalidated(response, reply.etag, request.header(b"if-none-match"))


class Definitions:
    """The custom resource definitions, decoded once for each state of the store's definitions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revisions: tuple[int, ...] = ()
        self._decoded: list[JsonObject] = []

    def __call__(self) -> list[JsonObject]:
        records = self._store.list(DEFINITIONS)
        revisions = tuple(record.revision for record in records)
        if revisions != self._revisions:
            self._decoded = [record.decode() for record in records]
            self._revisions = revisions
        return self._decoded
