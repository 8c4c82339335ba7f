"""From stored records to what a client reads: objects, lists, tables, metadata.

Records are bytes, and in the usual case those very bytes are the reply. They are decoded only where
something else was asked for: another version of the kind, a table, metadata alone.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import NamedTuple, TypeAlias, cast

import orjson
import yaml

from kubescene.api.conversion import from_storage
from kubescene.api.printing.columns import TableColumns, crd_columns, table_columns
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.api.text import pieces
from kubescene.api.text.encoding import enclosed
from kubescene.apiserver.kubernetes.columns import pods_in_columns
from kubescene.apiserver.negotiation import PLAIN, YAML, ResponseForm, ResponseShape
from kubescene.apiserver.responses import Response
from kubescene.bounded import BoundedDict
from kubescene.errors import BadRequestError
from kubescene.registry import Registry
from kubescene.registry.custom_resources import CustomKind
from kubescene.types import JsonObject, JsonValue

Encoder: TypeAlias = Callable[[Record], bytes]

MANY = 1_000
"""Objects of a list that is written beside the event loop: some milliseconds."""
MANY_DECODED = 250
"""The same where each has to be decoded."""

ESSENCES = 256
"""Large objects of which is remembered what tables show."""

INCLUDE_OBJECT = ("None", "Metadata", "Object")


@dataclass(frozen=True, slots=True)
class ListMeta:
    """What a list says of itself."""

    revision: int
    continue_token: str = ""
    remaining: int = 0

    def to_dict(self) -> JsonObject:
        metadata: JsonObject = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining:
            metadata["remainingItemCount"] = self.remaining
        return metadata


class Renderer:
    """Writes records in the forms that clients ask for. Never touches what the engine owns."""

    def __init__(self, registry: Registry) -> None:
        self._custom = registry.custom
        self._clocks = registry.clocks
        self._known: dict[GroupVersionKind, _Printed] = {}
        self._essences: BoundedDict[tuple[str, int], JsonObject] = BoundedDict(ESSENCES)

    def encoder(self, resource_type: ResourceType) -> Encoder:
        """Writes records as JSON in the version of ``resource_type``; stored bytes if they fit."""
        opening = b'{"apiVersion":"%s",' % resource_type.api_version.encode()

        def encode(record: Record) -> bytes:
            data = record.data
            if data.startswith(opening):
                return data
            return orjson.dumps(self.decode(record, resource_type))

        def encode_custom(record: Record) -> bytes:
            data = record.data
            if data.startswith(opening) and self._custom.is_current(record, resource_type):
                return data
            return orjson.dumps(self.decode(record, resource_type))

        return encode_custom if resource_type.custom else encode

    def decode(self, record: Record, resource_type: ResourceType) -> JsonObject:
        """The object in the version of ``resource_type``; fresh, so anybody's."""
        obj = record.decode()
        if resource_type.custom:
            return self._custom.presented(obj, record.revision, resource_type)
        return from_storage(obj, resource_type)

    def decoded_for(
        self, record: Record, resource_type: ResourceType, form: ResponseForm, include: str
    ) -> JsonObject:
        """As much of the object as the form shows: of one with a large part, mostly not that."""
        if form.shape is ResponseShape.OBJECT or include == "Object":
            return self.decode(record, resource_type)
        is_table = resource_type.custom and form.shape is ResponseShape.TABLE
        printed = self._printed(resource_type) if is_table else None
        shows_spec = printed is not None and printed.shows_spec
        part = record.outline if shows_spec else record.essence
        if part is not None:
            return cast("JsonObject", orjson.loads(part))
        if shows_spec or not resource_type.custom or not record.is_large:
            return self.decode(record, resource_type)
        if not self._custom.is_current(record, resource_type):
            return self.decode(record, resource_type)
        found = self._essence(record, printed)
        is_version = found["apiVersion"] == resource_type.api_version
        return found if is_version else self.decode(record, resource_type)

    def _essence(self, record: Record, printed: "_Printed | None") -> JsonObject:
        """Of a large object what is shown of it, remembered: metadata, and of its status what its
        columns are made of."""
        status = frozenset() if printed is None else printed.status
        key = (f"{record.uid} {printed is None}", record.revision)
        found = self._essences.get(key)
        if found is None:
            found = self._essences[key] = essence(record, status)
        return found

    def _printed(self, resource_type: ResourceType) -> "_Printed":
        """How a custom kind is printed, worked out once for each definition of it."""
        kind, known = self._custom.of(resource_type.gvk), self._known.get(resource_type.gvk)
        if known is None or known.kind is not kind:
            known = self._known[resource_type.gvk] = _Printed.of(kind)
        return known

    def object_response(
        self,
        record: Record,
        resource_type: ResourceType,
        form: ResponseForm = PLAIN,
        *,
        include: str = "",
        status: int = 200,
    ) -> Response:
        """One object."""
        if form.is_plain:
            return Response(self.encoder(resource_type)(record), status)
        if form.shape is ResponseShape.OBJECT and form.media_type == YAML:
            text = self.encoder(resource_type)(record)
            return Response(_yaml_text(text), status, form.media_type)
        obj = self.decoded_for(record, resource_type, form, include)
        if form.shape is ResponseShape.TABLE:
            meta = ListMeta(record.revision)
            return _encode(self.table(resource_type, [obj], form, meta, include), form, status)
        if form.shape is ResponseShape.METADATA:
            return _encode(metadata_only(obj, form), form, status)
        return _encode(obj, form, status)

    async def list_response(
        self,
        records: Sequence[Record],
        resource_type: ResourceType,
        form: ResponseForm,
        meta: ListMeta,
        *,
        include: str = "",
    ) -> Response:
        """A collection; a long one is written on another thread."""
        whole = partial(self._whole_list, records, resource_type, form, meta, include)
        shows_all = form.shape is ResponseShape.OBJECT or include == "Object"
        holds_large = resource_type.custom and any(
            each.is_large and (shows_all or not each.has_essence) for each in records
        )
        takes_long = holds_large or len(records) > (MANY if form.is_plain else MANY_DECODED)
        return await asyncio.to_thread(whole) if takes_long else whole()

    def _whole_list(
        self,
        records: Sequence[Record],
        resource_type: ResourceType,
        form: ResponseForm,
        meta: ListMeta,
        include: str,
    ) -> Response:
        """A collection at one go.

        Each object is let go as soon as it is written: a list of all takes little more than its
        text, and the garbage collector does not come upon all of them.
        """
        if form.is_plain:
            return self.plain_list_response(records, resource_type, meta)
        if form.shape is ResponseShape.COLUMNS:
            return Response(pods_in_columns(records, meta.to_dict()))
        document = self._empty_list(resource_type, form, meta, include)
        if form.media_type == YAML and form.shape is ResponseShape.OBJECT:
            texts = map(self.encoder(resource_type), records)
            return Response(_yaml_list(document, texts), 200, form.media_type)
        return _encode_list(document, self._items(records, resource_type, form, include), form)

    def plain_list_response(
        self, records: Sequence[Record], resource_type: ResourceType, meta: ListMeta
    ) -> Response:
        """A collection of stored objects as they are."""
        return Response(encoded_list(records, resource_type, meta, self.encoder(resource_type)))

    def _empty_list(
        self, resource_type: ResourceType, form: ResponseForm, meta: ListMeta, include: str
    ) -> JsonObject:
        """A list whose items, the last member, are still to be written."""
        if form.shape is ResponseShape.TABLE:
            return self.table(resource_type, (), form, meta, include)
        kind, api_version = f"{resource_type.kind}List", resource_type.api_version
        if form.shape is ResponseShape.METADATA:
            kind, api_version = "PartialObjectMetadataList", form.api_version
        return {"kind": kind, "apiVersion": api_version, "metadata": meta.to_dict(), "items": []}

    def _items(
        self,
        records: Sequence[Record],
        resource_type: ResourceType,
        form: ResponseForm,
        include: str,
    ) -> Iterator[JsonObject]:
        """Rows of a table, metadata, or whole objects: one for each record."""
        columns = self.columns(resource_type)
        for record in records:
            obj = self.decoded_for(record, resource_type, form, include)
            if form.shape is ResponseShape.TABLE:
                yield _row(obj, columns, form, include, self._now(resource_type, obj))
            else:
                yield metadata_only(obj, form) if form.shape is ResponseShape.METADATA else obj

    def table(
        self,
        resource_type: ResourceType,
        objects: Sequence[JsonObject],
        form: ResponseForm,
        meta: ListMeta,
        include: str = "",
        *,
        with_columns: bool = True,
    ) -> JsonObject:
        """A ``Table``; of a watch only the first needs its columns."""
        check_include(include)
        columns = self.columns(resource_type)
        return {
            "kind": "Table",
            "apiVersion": form.api_version,
            "metadata": meta.to_dict(),
            "columnDefinitions": columns.definitions if with_columns else [],
            "rows": [
                _row(obj, columns, form, include, self._now(resource_type, obj)) for obj in objects
            ],
        }

    def _now(self, resource_type: ResourceType, obj: JsonObject) -> int:
        return self._clocks.seen_at(resource_type, obj["metadata"].get("creationTimestamp") or "")

    def columns(self, resource_type: ResourceType) -> TableColumns:
        """The columns of a kind; a custom one has them in its definition."""
        if resource_type.custom:
            return self._printed(resource_type).columns
        return table_columns(resource_type)


class _Printed(NamedTuple):
    """What a table shows of a custom kind."""

    kind: CustomKind | None
    columns: TableColumns
    shows_spec: bool
    """Whether a column is of something else than the status."""
    status: frozenset[str] | None
    """The members of the status that columns are of; None if that cannot be told."""

    @classmethod
    def of(cls, kind: CustomKind | None) -> "_Printed":
        listed = kind.printer_columns if kind is not None else ()
        paths = [str(each.get("jsonPath", "")) for each in listed]
        shows_spec = not all(map(_OF_STATUS_OR_METADATA.match, paths))
        of_status = [_STATUS_MEMBER.match(path) for path in paths if path.startswith(".status")]
        status = frozenset(found[1] for found in of_status if found)
        is_told = all(of_status)
        return cls(kind, crd_columns(listed), shows_spec, status if is_told else None)


_OF_STATUS_OR_METADATA = re.compile(r"\.(status|metadata)(?=[.\[]|$)")
_STATUS_MEMBER = re.compile(r"\.status\.([A-Za-z0-9_-]+)(?=[.\[]|$)")


def essence(record: Record, status: frozenset[str] | None) -> JsonObject:
    """Metadata, and these members of the status: the rest is not even read."""
    parts = pieces.members(record.unversioned_data)
    obj: JsonObject = {name: orjson.loads(bytes(parts[name])) for name in ("apiVersion", "kind")}
    own = orjson.loads(bytes(parts["metadata"]))
    obj["metadata"] = {"resourceVersion": str(record.revision), **own}
    if "status" not in parts:
        return obj
    said = bytes(parts["status"])
    if status is None or not said.startswith(b"{"):
        return {**obj, "status": pieces.loads(said)}
    shown = {name: part for name, part in pieces.members(said).items() if name in status}
    return {**obj, "status": {name: pieces.loads(bytes(part)) for name, part in shown.items()}}


def check_include(include: str) -> None:
    """400 unless ``includeObject`` is one that tables know."""
    if include and include not in INCLUDE_OBJECT:
        raise BadRequestError(f'unrecognized includeObject value: "{include}"')


def encoded_list(
    records: Sequence[Record], resource_type: ResourceType, meta: ListMeta, encode: Encoder
) -> bytes:
    """A list as JSON, put together from its encoded items."""
    head = orjson.dumps(
        {
            "kind": f"{resource_type.kind}List",
            "apiVersion": resource_type.api_version,
            "metadata": meta.to_dict(),
        }
    )
    return enclosed(head[:-1] + b',"items":[', map(encode, records), b"]}")


def metadata_only(obj: JsonObject, form: ResponseForm) -> JsonObject:
    """The object as ``PartialObjectMetadata``."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": form.api_version,
        "metadata": obj["metadata"],
    }


def _row(
    obj: JsonObject, columns: TableColumns, form: ResponseForm, include: str, now: int
) -> JsonObject:
    row: JsonObject = {"cells": columns.row(obj, now)}
    if conditions := columns.conditions(obj):
        row["conditions"] = conditions
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = metadata_only(obj, form)
    return row


def _encode_list(document: JsonObject, items: Iterable[JsonObject], form: ResponseForm) -> Response:
    """The document, whose last member is an empty list, with these items in it."""
    if form.media_type != YAML:
        head = orjson.dumps(document)[:-2]
        return Response(enclosed(head, map(orjson.dumps, items), b"]}"))
    return Response(_yaml_list(document, map(orjson.dumps, items)), 200, form.media_type)


def _yaml_list(document: JsonObject, items: Iterable[bytes]) -> bytes:
    """The same as YAML, of items in JSON."""
    member = [*document][-1]
    before, _, after = _yaml(document).partition(f"\n{member}: []\n".encode())
    texts = [_yaml_item(item) for item in items]
    opening = f"\n{member}:\n" if texts else f"\n{member}: []\n"
    return pieces.joined([before, opening.encode(), *texts, after])


def _encode(document: JsonObject, form: ResponseForm, status: int = 200) -> Response:
    if form.media_type == YAML:
        return Response(_yaml_text(orjson.dumps(document)), status, form.media_type)
    return Response(orjson.dumps(document), status)


def _yaml_text(text: bytes) -> bytes:
    """JSON as YAML."""
    return _flow(text) if len(text) > LONG_YAML else _yaml(orjson.loads(text))


def _yaml_item(text: bytes) -> bytes:
    """An item of a list, with its dash."""
    return b"- " + _flow(text) if len(text) > LONG_YAML else _yaml([orjson.loads(text)])


def _yaml(value: JsonValue) -> bytes:
    text: str = yaml.dump(value, Dumper=_DUMPER, sort_keys=True, default_flow_style=False)
    return text.encode()


def _flow(text: bytes) -> bytes:
    """JSON as the YAML that it is, too, once characters are escaped that YAML wants escaped."""
    escaped, end = BytesIO(), 0
    while end < len(text):
        begin, end = end, end + pieces.PIECE
        while text[end : end + 1] and text[end] & _FIRST_BITS == _IN_CHARACTER:
            end += 1
        escaped.write(_UNPRINTABLE.sub(_escaped, text[begin:end]))
    escaped.write(b"\n")
    return escaped.getvalue()


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


LONG_YAML = 1_000_000
"""Bytes of an object beyond which it is written in YAML's flow style. To lay it out in lines takes
a minute and a gigabyte for every twenty megabytes, and nobody reads it."""
_UNPRINTABLE = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]"
)
"""In UTF-8: what YAML takes for no character, or for the end of a line."""

_FIRST_BITS, _IN_CHARACTER = 0xC0, 0x80
"""Of the first two bits of a byte of UTF-8, and what they are within a character."""

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
