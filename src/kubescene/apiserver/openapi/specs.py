"""OpenAPI v3: what clients may send, and what the fields mean.

``/openapi/v3`` lists one document for each group version together with a hash of its content;
clients keep a document for as long as the hash stays the same. kubectl reads the document of a kind
before it creates, applies or explains. Each document is built on first use. Those of built-in kinds
are the same for all servers of a process and shared; those of custom kinds follow their
CustomResourceDefinitions.

Only JSON is served, whatever ``Accept`` says: every client that knows v3 reads it. OpenAPI v2
(``/openapi/v2``) is not served: clients that still ask for it get 404 and fall back or do without.
"""

import gzip
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import orjson

from kubescene.api.scheme import ResourceType, Scheme
from kubescene.apiserver.openapi.documents import (
    group_version_document,
    index_key,
    information_document,
)
from kubescene.types import JsonObject

PREFIX = "/openapi/v3"
JSON = "application/json"

_IMMUTABLE = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache, private"


@dataclass(frozen=True, slots=True)
class OpenApiReply:
    """One encoded document. ``etag`` is the header value, quotes included."""

    body: bytes
    etag: str
    content_type: str = JSON
    content_encoding: str = ""
    cache_control: str = _REVALIDATE

    def headers(self) -> dict[str, str]:
        """All headers that belong to the document, Content-Length excepted."""
        headers = {
            "Content-Type": self.content_type,
            "ETag": self.etag,
            "Cache-Control": self.cache_control,
            "Vary": "Accept-Encoding, Accept",
        }
        if self.content_encoding:
            headers["Content-Encoding"] = self.content_encoding
        return headers


class EncodedDocument:
    """A document as it is sent, and its hash."""

    def __init__(self, document: JsonObject) -> None:
        self.body = orjson.dumps(document)
        self.hash = hashlib.sha512(self.body).hexdigest().upper()

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    def reply(self, *, accept_encoding: str = "", requested_hash: str = "") -> OpenApiReply:
        """For ever valid if it was asked for by its hash, else to be revalidated each time."""
        zipped = accepts_gzip(accept_encoding)
        return OpenApiReply(
            body=self.gzipped if zipped else self.body,
            etag=f'"{self.hash}"',
            content_encoding="gzip" if zipped else "",
            cache_control=_IMMUTABLE if requested_hash == self.hash else _REVALIDATE,
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """All that a document follows from: it is built anew only if this changed.

    ``types`` are empty for a document about the server itself, ``revisions`` (of the
    definitions in the group) where no kind is custom.
    """

    types: tuple[ResourceType, ...] = ()
    revisions: tuple[tuple[str, ...], ...] = ()


class OpenApi:
    """The OpenAPI v3 documents of a scheme.

    ``crds`` returns the current CustomResourceDefinitions; it is called on every request, so it
    should not decode them anew each time. A custom kind is described while the scheme serves it;
    if no definition has its schema, as any object.
    """

    def __init__(
        self, scheme: Scheme, crds: Callable[[], Sequence[JsonObject]] = lambda: ()
    ) -> None:
        self._scheme = scheme
        self._crds = crds
        self._state: object = None
        self._definitions: Sequence[JsonObject] = ()
        self._sources: dict[str, _Source] = {}
        self._custom: dict[str, tuple[_Source, EncodedDocument]] = {}
        self._index: EncodedDocument | None = None

    def index(self, *, accept_encoding: str = "") -> OpenApiReply:
        """``/openapi/v3``: where each document is, with the hash of its content."""
        self._refresh()
        if self._index is None:
            paths = {key: self._location(key) for key in sorted(self._sources)}
            self._index = EncodedDocument({"paths": paths})
        return self._index.reply(accept_encoding=accept_encoding)

    def document(
        self, path: str, *, accept_encoding: str = "", requested_hash: str = ""
    ) -> OpenApiReply | None:
        """The document at a URL path (``/openapi/v3/apis/apps/v1``); None if there is none.

        ``requested_hash`` is the query parameter ``hash``, which the index puts into its URLs.
        """
        self._refresh()
        prefix, _, key = path.strip("/").partition("/v3/")
        if prefix != "openapi" or key not in self._sources:
            return None
        encoded = self._encoded(key)
        return encoded.reply(accept_encoding=accept_encoding, requested_hash=requested_hash)

    def _location(self, key: str) -> JsonObject:
        return {"serverRelativeURL": f"{PREFIX}/{key}?hash={self._encoded(key).hash}"}

    def _encoded(self, key: str) -> EncodedDocument:
        source = self._sources[key]
        if not source.types:
            return _about_server(key)
        if not any(served.custom for served in source.types):
            return _built_in(source.types)
        kept = self._custom.get(key)
        if kept is None or kept[0] != source:
            document = group_version_document(source.types, self._definitions_of(source))
            kept = self._custom[key] = source, EncodedDocument(document)
        return kept[1]

    def _definitions_of(self, source: _Source) -> list[JsonObject]:
        group = source.types[0].gvk.group
        return [crd for crd in self._definitions if crd["spec"]["group"] == group]

    def _refresh(self) -> None:
        definitions = self._crds()
        revisions = tuple(_revision(crd) for crd in definitions)
        state = (self._scheme.generation, revisions)
        if state == self._state:
            return
        self._state = state
        self._definitions = definitions
        self._sources = self._find_sources(revisions)
        self._custom = {k: kept for k, kept in self._custom.items() if k in self._sources}
        self._index = None

    def _find_sources(self, revisions: tuple[tuple[str, ...], ...]) -> dict[str, _Source]:
        sources = {key: _Source() for key in ("api", "apis", "version")}
        for group in self._scheme.groups():
            if group:
                sources[f"apis/{group}"] = _Source()
            for version in self._scheme.versions(group):
                types = tuple(self._scheme.resources(group, version))
                own = tuple(revision for revision in revisions if revision[0] == group)
                sources[index_key(group, version)] = _Source(types, own)
        return sources


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client that sent this header can read gzip."""
    clauses = accept_encoding.lower().replace(" ", "").split(",")
    qualities = {coding: q for coding, _, q in (clause.partition(";q=") for clause in clauses)}
    quality = qualities.get("gzip", qualities.get("*", "0")) or "1"
    return quality.strip("0.") != ""


@lru_cache(maxsize=256)
def _built_in(types: tuple[ResourceType, ...]) -> EncodedDocument:
    return EncodedDocument(group_version_document(types))


@lru_cache(maxsize=256)
def _about_server(key: str) -> EncodedDocument:
    return EncodedDocument(information_document(key))


def _revision(crd: JsonObject) -> tuple[str, ...]:
    metadata = crd["metadata"]
    named = (metadata.get(field, "") for field in ("name", "uid", "resourceVersion"))
    return crd["spec"]["group"], *named
