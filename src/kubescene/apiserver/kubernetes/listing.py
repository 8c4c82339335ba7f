"""Lists: the newest state, a state of the past, or a page of one.

A page carries a token that names the revision of its first page and the last key it held, so
that all pages show one state. When that revision is forgotten the answer is 410, with a token
that goes on from the same place in the newest state.
"""

import base64
import binascii
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import orjson

from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.rendering import ListMeta
from kubescene.apiserver.kubernetes.selection import Selection, select
from kubescene.apiserver.kubernetes.versions import ReadAt, read_at, too_large
from kubescene.apiserver.requests import Request, RequestTarget
from kubescene.errors import BadRequestError, ExpiredError
from kubescene.registry import Registry

_TOKEN_VERSION = "meta.k8s.io/v1"
_NEWEST = -1


@dataclass(frozen=True, slots=True)
class ListPage:
    """The records of one reply."""

    records: list[Record]
    meta: ListMeta


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """Where the next page begins: after ``key`` in the state of ``revision``."""

    revision: int
    key: tuple[str, str]

    def encode(self) -> str:
        document = {"v": _TOKEN_VERSION, "rv": self.revision, "start": "/".join(self.key)}
        return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "ContinueToken":
        try:
            padded = text + "=" * (-len(text) % 4)
            document = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            namespace, slash, name = document["start"].partition("/")
            revision = document["rv"]
        except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
            raise BadRequestError(f"continue key is not valid: {text[:64]!r}") from None
        if document.get("v") != _TOKEN_VERSION or not slash or type(revision) is not int:
            raise BadRequestError(f"continue key is not valid: {text[:64]!r}")
        return cls(revision, (namespace, name))


class ContinueExpiredError(ExpiredError):
    """410 with a token that continues inconsistently."""

    def __init__(self, token: ContinueToken) -> None:
        super().__init__(
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter, or use the continue token "
            "in this response to retrieve the remainder of the results. Continuing with the "
            "provided token results in an inconsistent list - objects that were created, "
            "modified, or deleted between the time the first chunk was returned and now may show "
            "up in the list."
        )
        self.token = ContinueToken(_NEWEST, token.key).encode()

    def to_status(self) -> dict[str, Any]:
        status = super().to_status()
        status["metadata"] = {"continue": self.token}
        return status


class ListServer:
    """Answers list requests over one store."""

    def __init__(self, registry: Registry, engine: EngineThread) -> None:
        self._store = registry.store
        self._custom = registry.custom
        self._engine = engine

    async def page(self, target: RequestTarget, request: Request) -> ListPage:
        """The records that a list request asks for."""
        selection = select(target, request.query, self._custom)
        limit = request.number("limit") or 0
        if limit < 0:
            raise BadRequestError(f"limit must not be negative: {limit}")
        if text := request.query.get("continue", ""):
            return await self._continued(
                target, request, selection, limit, ContinueToken.decode(text)
            )
        how, version = read_at(request, limited=limit > 0)
        records, revision = await self._state(target, selection, how, version)
        return _page(_selected(records, selection), selection, revision, limit)

    async def _state(
        self, target: RequestTarget, selection: Selection, how: ReadAt, version: int
    ) -> tuple[list[Record], int]:
        current = self._store.revision
        if version > current:
            raise too_large(version, current)
        if how is ReadAt.EXACT:
            return await self._past(target, version), version
        resource = target.resource_type.group_resource
        if (name := selection.single_name) and selection.namespace:
            return await self._single(resource, selection.namespace, name)
        return await self._newest(resource, selection.namespace)

    async def _single(
        self, resource: GroupResource, namespace: str, name: str
    ) -> tuple[list[Record], int]:
        store = self._store
        revision = store.revision
        record = store.get(resource, namespace, name)
        if record is not None and record.revision <= revision:
            return [record], revision

        def look() -> tuple[list[Record], int]:
            found = store.get(resource, namespace, name)
            return ([] if found is None else [found]), store.revision

        # Gone, or newer than the revision: since when, only the engine's thread can say.
        return await self._engine.submit(look)

    async def _continued(
        self,
        target: RequestTarget,
        request: Request,
        selection: Selection,
        limit: int,
        token: ContinueToken,
    ) -> ListPage:
        if request.query.get("resourceVersion", "") not in ("", "0"):
            raise BadRequestError("specifying resource version is not allowed when using continue")
        resource = target.resource_type.group_resource
        if token.revision == _NEWEST:
            records, revision = await self._newest(resource, selection.namespace)
        else:
            revision = token.revision
            try:
                records = await self._past(target, revision)
            except ExpiredError:
                raise ContinueExpiredError(token) from None
        start = bisect_right(records, token.key, key=lambda record: record.key)
        return _page(_selected(records[start:], selection), selection, revision, limit)

    async def _newest(self, resource: GroupResource, namespace: str) -> tuple[list[Record], int]:
        """The newest state: as a reader if the engine leaves room, else on its thread."""
        found = self._store.consistent_list(resource, namespace)
        if found is not None:
            return found
        store = self._store
        return await self._engine.submit(lambda: (store.list(resource, namespace), store.revision))

    async def _past(self, target: RequestTarget, revision: int) -> list[Record]:
        """A state of the past. The history belongs to the engine thread, so it looks there."""
        if revision > self._store.revision:
            raise too_large(revision, self._store.revision)
        store, resource = self._store, target.resource_type.group_resource
        return await self._engine.submit(
            lambda: store.list_at(resource, revision, target.namespace)
        )


def _selected(records: list[Record], selection: Selection) -> list[Record]:
    if not selection.has_selectors:
        return records
    return [record for record in records if selection.matches(record)]


def _page(records: list[Record], selection: Selection, revision: int, limit: int) -> ListPage:
    if not limit or len(records) <= limit:
        return ListPage(records, ListMeta(revision))
    shown = records[:limit]
    token = ContinueToken(revision, shown[-1].key).encode()
    remaining = 0 if selection.has_selectors else len(records) - limit
    return ListPage(shown, ListMeta(revision, token, remaining))
