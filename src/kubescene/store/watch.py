"""A consumer's own backlog of changes, filled by the store, drained at the consumer's pace.

The writer never waits: a watch whose backlog is full is cut off and its consumer finds out when it
drains. That is the only place where threads meet, and it needs no lock, since a deque's
append and popleft are atomic.
"""

from collections import deque
from collections.abc import Callable, Iterable

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource
from kubescene.errors import KubesceneError
from kubescene.store.store import Store

DEFAULT_BACKLOG = 100_000


class WatchOverflowError(KubesceneError):
    """The consumer was too slow; it has to list again and start a new watch."""


class Watch:
    """Changes of some resources after a revision, in order."""

    def __init__(
        self,
        store: Store,
        resources: Iterable[GroupResource],
        *,
        since: int,
        backlog: int = DEFAULT_BACKLOG,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self._resources = tuple(resources)
        self.limit = backlog
        self._wake = wake
        self._overflowed = False
        store.catch_up(*self._resources)
        self._changes: deque[Change] = deque(store.history.since(since, self._resources))
        self._subscription = store.subscribe(self._push, self._resources, goes_with_fork=False)

    @property
    def is_cut_off(self) -> bool:
        """Whether the backlog was full once: nothing is added any more."""
        return self._overflowed

    def drain(self) -> list[Change]:
        """Everything since the last call; after a cut-off, `WatchOverflowError`."""
        # Nobody else takes changes out; those that come meanwhile are for the next call.
        take = self._changes.popleft
        drained = [take() for _ in range(len(self._changes))]
        if not drained and self._overflowed:
            raise WatchOverflowError(
                f"more than {self.limit} changes were waiting: list again and watch from there"
            )
        return drained

    def close(self) -> None:
        """Nothing more comes, and what nobody took is let go of."""
        self._subscription.cancel()
        self._changes = deque()
        self._wake = None

    def _push(self, change: Change) -> None:
        if self._overflowed:
            return
        if len(self._changes) >= self.limit:
            self._overflowed = True
        else:
            self._changes.append(change)
        if self._wake is not None:
            self._wake()
