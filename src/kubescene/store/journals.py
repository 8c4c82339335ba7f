"""The seam of a log on disk: who is told of a write before it is made.

The store hands every change to its journal first. A journal that cannot take it raises, and nothing
has happened. It may put changes away in batches: what is durable is said by `Journal.durable`, and
whoever answers a client calls `Store.flush` before the answer goes out, once for many writes.
"""

from typing import Protocol

from kubescene.api.records.changes import Change


class Journal(Protocol):
    """Takes changes in order of revision, on the thread that writes."""

    @property
    def durable(self) -> int:
        """The revision up to which everything would survive a crash."""
        ...

    def append(self, change: Change) -> None:
        """Take a change that is about to be made; raise to refuse it."""
        ...

    def flush(self) -> None:
        """Return once all that was appended is durable; raise if it cannot be."""
        ...
