"""Changes of the store as watch events of one request.

A watch shows its selection: an object that begins to match is ADDED, one that no longer
matches is DELETED with its last matching state at the revision of the change.

Fifty clients that watch pods see the same changes within milliseconds, so a frame that several
watches send is encoded once and kept while the others are likely to want it. What is kept is
bounded and thrown away as a whole: whoever comes later encodes again. For the event loop only.
"""

from collections.abc import Callable, Iterable, Iterator

import orjson

from kubescene.api.records import Record, make_record, versioned
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import ResourceType
from kubescene.apiserver.kubernetes.rendering import ListMeta, Renderer, metadata_only
from kubescene.apiserver.kubernetes.selection import Selection
from kubescene.apiserver.negotiation import ResponseForm, ResponseShape
from kubescene.types import JsonObject

MOST_BYTES = 4 * 1024 * 1024


class SharedFrames:
    """The newest frames of one kind in one version, by the record that they show."""

    __slots__ = ("_frames", "_size", "readers")

    def __init__(self) -> None:
        self._frames: dict[int, tuple[Record, ChangeType, bytes]] = {}
        self._size = 0
        self.readers = 0
        """How many watches are open: for a single one nothing is kept."""

    def of(self, change: Change, make: Callable[[Change], bytes]) -> bytes:
        record = change.record
        known = self._frames.get(id(record))
        # The record is kept beside its frame, so that its identity is nobody else's.
        if known is not None and known[0] is record and known[1] is change.type:
            return known[2]
        frame = make(change)
        if self.readers > 1:
            self._keep(record, change.type, frame)
        return frame

    def leave(self) -> None:
        """A watch has ended."""
        self.readers -= 1
        if self.readers <= 1:
            self._frames.clear()
            self._size = 0

    def _keep(self, record: Record, change_type: ChangeType, frame: bytes) -> None:
        if self._size > MOST_BYTES:
            self._frames.clear()
            self._size = 0
        self._frames[id(record)] = (record, change_type, frame)
        self._size += len(frame)


INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_ADDED = b'{"type":"ADDED","object":'
_MODIFIED = b'{"type":"MODIFIED","object":'
_DELETED = b'{"type":"DELETED","object":'
_BOOKMARK = b'{"type":"BOOKMARK","object":'
_ERROR = b'{"type":"ERROR","object":'
_END = b"}\n"
_HEADS = {
    ChangeType.ADDED: _ADDED,
    ChangeType.MODIFIED: _MODIFIED,
    ChangeType.DELETED: _DELETED,
}


class EventEncoder:
    """Encodes what one watch sees. Tables carry their columns in the first event only."""

    def __init__(
        self,
        renderer: Renderer,
        resource_type: ResourceType,
        selection: Selection,
        form: ResponseForm,
        include: str,
        shared: SharedFrames,
    ) -> None:
        """``shared`` are the frames of others that show the same objects in the same form."""
        self._shared = shared
        self._renderer = renderer
        self._resource_type = resource_type
        self._selection = selection
        self._form = form
        self._include = include
        self._first_table = True
        self._plain = renderer.encoder(resource_type) if form.is_plain else None

    @property
    def is_plain(self) -> bool:
        """Whether objects are shown as they are."""
        return self._form.is_plain

    @property
    def is_of_custom_kind(self) -> bool:
        return self._resource_type.custom

    @property
    def _encode(self) -> Callable[[Record], bytes]:
        return self._transformed if self._plain is None else self._plain

    def added(self, records: Iterable[Record]) -> Iterator[bytes]:
        """Frames of objects that exist when the watch begins, encoded as they are asked for."""
        encode = self._encode
        return (_ADDED + encode(record) + _END for record in records)

    def frames(self, changes: Iterable[Change]) -> Iterator[bytes]:
        """Frames of changes; empty for those that the selection does not see."""
        if not self._selection.is_everything:
            return map(self._shown, changes)
        frame_of, make = self._shared.of, self._frame
        return (frame_of(change, make) for change in changes)

    def _frame(self, change: Change) -> bytes:
        return _HEADS[change.type] + self._encode(change.record) + _END

    def bookmark(self, revision: int, *, ends_initial: bool = False) -> bytes:
        """How far the watch has come, although nothing happened."""
        metadata: JsonObject = {"resourceVersion": str(revision), "creationTimestamp": None}
        if ends_initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        document = self._bookmark_object(metadata)
        return _BOOKMARK + orjson.dumps(document) + _END

    def _bookmark_object(self, metadata: JsonObject) -> JsonObject:
        if self._form.shape is ResponseShape.METADATA:
            return metadata_only({"metadata": metadata}, self._form)
        resource_type = self._resource_type
        obj = {
            "kind": resource_type.kind,
            "apiVersion": resource_type.api_version,
            "metadata": metadata,
        }
        if self._form.shape is ResponseShape.OBJECT:
            return obj
        return {
            "kind": "Table",
            "apiVersion": self._form.api_version,
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "columnDefinitions": [],
            "rows": [{"cells": [], "object": metadata_only(obj, self._form)}],
        }

    def _shown(self, change: Change) -> bytes:
        matches = self._selection.matches
        record, previous = change.record, change.previous
        if change.type is ChangeType.DELETED:
            return _DELETED + self._encode(record) + _END if matches(record) else b""
        before = previous is not None and matches(previous)
        if matches(record):
            return (_MODIFIED if before else _ADDED) + self._encode(record) + _END
        if before and previous is not None:
            return _DELETED + self._encode(_at_revision(previous, record.revision)) + _END
        return b""

    def _transformed(self, record: Record) -> bytes:
        obj = self._renderer.decoded_for(record, self._resource_type, self._form, self._include)
        if self._form.shape is ResponseShape.METADATA:
            return orjson.dumps(metadata_only(obj, self._form))
        if self._form.shape is ResponseShape.OBJECT:
            return orjson.dumps(obj)
        first, self._first_table = self._first_table, False
        meta = ListMeta(record.revision)
        return orjson.dumps(
            self._renderer.table(
                self._resource_type, [obj], self._form, meta, self._include, with_columns=first
            )
        )


def error_frame(status: JsonObject) -> bytes:
    """The last event of a watch that cannot go on."""
    return _ERROR + orjson.dumps(status) + _END


def _at_revision(record: Record, revision: int) -> Record:
    return make_record(record.resource, versioned(record.decode(), revision), revision)
