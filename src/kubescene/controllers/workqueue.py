"""Keys waiting for a reconciler: each at most once, in order of arrival."""

from collections import OrderedDict
from collections.abc import Iterator

from kubescene.controllers.reconcile import ObjectKey


class WorkQueue:
    """First in, first out, deduplicated. A key that comes again while it waits keeps its place."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        # A plain dict would walk over the holes of all keys taken before.
        self.waiting: OrderedDict[ObjectKey, None] = OrderedDict()

    def add(self, key: ObjectKey) -> None:
        self.waiting.setdefault(key)

    def pop(self) -> ObjectKey:
        """The key that waits longest; KeyError if none does."""
        if not self.waiting:
            raise KeyError("no key is waiting")
        return self.waiting.popitem(last=False)[0]

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self.waiting)
