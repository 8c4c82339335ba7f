"""OpenAPI: what clients may send, and what the fields mean.

``/openapi/v3`` lists one document for each group version together with a hash of its content;
clients keep a document for as long as the hash stays the same. kubectl reads the document of a kind
before it creates, applies or explains. Each document is built on first use. Those of built-in kinds
are the same for all servers of a process and shared; those of custom kinds follow their
CustomResourceDefinitions. Of v3 only JSON is served, whatever ``Accept`` says: every client that
knows v3 reads it.

``/openapi/v2`` is one document of everything, as JSON and as protobuf. kubectl asks for it where a
kind cannot be patched (a Binding), older clients always. It is built when somebody asks for it.
"""

import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import orjson

from kubescene.api.scheme import ResourceType, Scheme
from kubescene.apiserver.negotiation import JSON, first_accepted
from kubescene.apiserver.openapi.documents import (
    group_version_document,
    index_key,
    information_document,
)
from kubescene.apiserver.openapi.swagger import swagger_document
from kubescene.apiserver.openapi.swagger_protobuf import encode
from kubescene.errors import NotAcceptableError
from kubescene.types import JsonObject
from kubescene.version import KUBERNETES_VERSION

PREFIX = "/openapi/v3"
SWAGGER = "/openapi/v2"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_SWAGGER_TYPES = {
    JSON: JSON,
    PROTOBUF: PROTOBUF,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": PROTOBUF,
}
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
    """A document as it is sent, and its hash: of the body, unless another form of it has one."""

    def __init__(self, body: bytes, *, content_type: str = JSON, shared_hash: str = "") -> None:
        self.body = body
        self.hash = shared_hash or hashlib.sha512(body).hexdigest().upper()
        self._content_type = content_type

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    def reply(self, *, accept_encoding: str = "", requested_hash: str = "") -> OpenApiReply:
        """For ever valid if it was asked for by its hash, else to be revalidated each time."""
        zipped = accepts_gzip(accept_encoding)
        return OpenApiReply(
            body=self.gzipped if zipped else self.body,
            etag=f'"{self.hash}"',
            content_type=self._content_type,
            content_encoding="gzip" if zipped else "",
            cache_control=_IMMUTABLE if requested_hash == self.hash else _REVALIDATE,
        )


class Swagger:
    """The v2 document of one state of the definitions, built when it is asked for.

    That takes long: not a thing to do on an event loop. Nothing that changes is read.
    """

    def __init__(self, sources: Mapping[str, "_Source"], crds: Sequence[JsonObject]) -> None:
        self._sources = sources
        self._crds = crds

    def reply(self, content_type: str, *, accept_encoding: str = "") -> OpenApiReply:
        encoded = self._protobuf if content_type == PROTOBUF else self._json
        return encoded.reply(accept_encoding=accept_encoding)

    @cached_property
    def _json(self) -> EncodedDocument:
        return _json_document(self._document())

    @cached_property
    def _protobuf(self) -> EncodedDocument:
        body = encode(self._document())
        return EncodedDocument(body, content_type=PROTOBUF, shared_hash=self._json.hash)

    def _document(self) -> JsonObject:
        """Built for each form: to read all of the JSON again would stop every other thread."""
        documents = (source.document(key, self._crds) for key, source in self._sources.items())
        return swagger_document(documents, version=KUBERNETES_VERSION)


@dataclass(frozen=True, slots=True)
class _Source:
    """All that a document follows from: it is built anew only if this changed.

    ``types`` are empty for a document about the server itself, ``revisions`` (of the
    definitions in the group) where no kind is custom.
    """

    types: tuple[ResourceType, ...] = ()
    revisions: tuple[tuple[str, ...], ...] = ()

    def document(self, key: str, crds: Sequence[JsonObject]) -> JsonObject:
        """The v3 document at that key of the index."""
        if not self.types:
            return information_document(key)
        group = self.types[0].gvk.group
        own = [crd for crd in crds if crd["spec"]["group"] == group]
        return group_version_document(self.types, own)


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
        self._swagger: Swagger | None = None

    def index(self, *, accept_encoding: str = "") -> OpenApiReply:
        """``/openapi/v3``: where each document is, with the hash of its content."""
        self._refresh()
        if self._index is None:
            paths = {key: self._location(key) for key in sorted(self._sources)}
            self._index = _json_document({"paths": paths})
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

    def swagger(self) -> Swagger:
        """``/openapi/v2`` as of now."""
        self._refresh()
        if self._swagger is None:
            self._swagger = Swagger(self._sources, self._definitions)
        return self._swagger

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
            document = source.document(key, self._definitions)
            kept = self._custom[key] = source, _json_document(document)
        return kept[1]

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
        self._swagger = None

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


def swagger_type(accept: str) -> str:
    """In which form a client wants the v2 document; 406 if in none that there is."""
    wanted = first_accepted(accept, _SWAGGER_TYPES)
    if wanted is None:
        raise NotAcceptableError(
            f"only the following media types are accepted: {', '.join(_SWAGGER_TYPES)}"
        )
    return _SWAGGER_TYPES[wanted]


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client that sent this header can read gzip."""
    clauses = accept_encoding.lower().replace(" ", "").split(",")
    qualities = {coding: q for coding, _, q in (clause.partition(";q=") for clause in clauses)}
    quality = qualities.get("gzip", qualities.get("*", "0")) or "1"
    return quality.strip("0.") != ""


@lru_cache(maxsize=256)
def _built_in(types: tuple[ResourceType, ...]) -> EncodedDocument:
    return _json_document(group_version_document(types))


@lru_cache(maxsize=256)
def _about_server(key: str) -> EncodedDocument:
    return _json_document(information_document(key))


def _json_document(document: JsonObject) -> EncodedDocument:
    return EncodedDocument(orjson.dumps(document))


def _revision(crd: JsonObject) -> tuple[str, ...]:
    metadata = crd["metadata"]
    named = (metadata.get(field, "") for field in ("name", "uid", "resourceVersion"))
    return crd["spec"]["group"], *named
