"""Keys waiting for a reconciler: each at most once, in order of arrival."""

from collections.abc import Iterator

from kubescene.controllers.reconcile import Request


class WorkQueue:
    """First in, first out, deduplicated. A key that comes again while it waits keeps its place."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[Request, None] = {}

    def add(self, request: Request) -> None:
        self._waiting.setdefault(request)

    def pop(self) -> Request:
        """The key that waits longest; KeyError if none does."""
        request = next(iter(self._waiting), None)
        if request is None:
            raise KeyError("no key is waiting")
        del self._waiting[request]
        return request

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._waiting)
