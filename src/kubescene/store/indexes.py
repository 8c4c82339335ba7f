"""Records findable by more than their name: pods by node, pods by controller."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from kubescene.api.records import Record
from kubescene.api.records.changes import DELETED, Change
from kubescene.api.scheme import GroupResource

KeyFunction: TypeAlias = Callable[[Record], str]
"""The key of a record, or an empty string if it does not belong into the index.

A plain function: copies of the store share it.
"""


class Index:
    """One index over one resource. Within a key, records keep the order of their creation."""

    __slots__ = ("_entries", "key")

    def __init__(self, key: KeyFunction) -> None:
        self.key = key
        self._entries: dict[str, dict[tuple[str, str], Record]] = {}

    def update(self, previous: Record | None, current: Record | None) -> None:
        before = self.key(previous) if previous is not None else ""
        after = self.key(current) if current is not None else ""
        if before and previous is not None and before != after:
            entries = self._entries[before]
            del entries[previous.key]
            if not entries:
                del self._entries[before]
        if after and current is not None:
            self._entries.setdefault(after, {})[current.key] = current

    def records(self, key: str) -> list[Record]:
        return list(self._entries.get(key, {}).values())

    def copied(self) -> "Index":
        copy = Index(self.key)
        copy._entries = {key: {**entries} for key, entries in self._entries.items()}
        return copy


class Indexes:
    """All indexes of a store."""

    def __init__(self) -> None:
        self.kept: dict[GroupResource, dict[str, Index]] = {}
        """By resource and name."""

    def add(
        self, resource: GroupResource, name: str, key: KeyFunction, records: Iterable[Record]
    ) -> None:
        indexes = self.kept.setdefault(resource, {})
        if name not in indexes:
            index = indexes[name] = Index(key)
            for record in records:
                index.update(None, record)

    def update(self, change: Change) -> None:
        record = change.record
        if indexes := self.kept.get(record.resource):
            current = None if change.type is DELETED else record
            for index in indexes.values():
                index.update(change.previous, current)

    def records(self, resource: GroupResource, name: str, key: str) -> list[Record]:
        return self.kept[resource][name].records(key)

    def copied(self) -> "Indexes":
        """The same indexes of the same records, for another store."""
        copy = Indexes()
        for resource, indexes in self.kept.items():
            copy.kept[resource] = {name: it.copied() for name, it in indexes.items()}
        return copy
