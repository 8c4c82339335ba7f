"""What a bag of controllers has changed, told once for each object.

The many workers of a controller manager write an object several times, in another order in every
run; what they leave behind is the same. So of their turn the net effect is told: an object that was
created, changed or deleted, in an order that does not depend on when. Statuses are left out.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.instruments import ObjectWrite

_Key = tuple[str, str, str, str, str]
_NOT_TOLD = ("status",)
_NOT_TOLD_METADATA = ("resourceVersion", "generation", "managedFields")


class NetChanges:
    """Collects the writes of one turn."""

    def __init__(self) -> None:
        self._first: dict[_Key, ObjectWrite] = {}
        self._last: dict[_Key, ObjectWrite] = {}

    def add(self, write: ObjectWrite) -> None:
        if write.subresource == "status":
            return
        record, gvk = write.record, write.gvk
        key = (gvk.group, gvk.kind, record.namespace, record.name, record.uid)
        self._first.setdefault(key, write)
        self._last[key] = write

    def take(self) -> Iterator[ObjectWrite]:
        """One write for each object that is not as it was; from now on there are none."""
        first, last = self._first, self._last
        self._first, self._last = {}, {}
        for key in sorted(first):
            if (net := net_write(first[key], last[key])) is not None:
                yield net


def net_write(first: ObjectWrite, last: ObjectWrite) -> ObjectWrite | None:
    """Both as one; None if nothing is left of them."""
    if first is last:
        return first
    if first.verb == "create":
        if last.verb == "delete":
            return None
        return msgspec.structs.replace(first, record=last.record)
    if last.verb == "delete":
        return last
    previous = first.previous
    if previous is not None and told_part(previous.decode()) == told_part(last.record.decode()):
        return None
    return msgspec.structs.replace(
        last, verb="update", previous=previous, body=None, patch_type="", subresource=""
    )


def told_part(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without what is not told of it."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _NOT_TOLD_METADATA}
    rest = {k: v for k, v in obj.items() if k not in _NOT_TOLD}
    return {**rest, "metadata": metadata}
