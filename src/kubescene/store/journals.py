"""The seam of a log on disk: who is told of a write before it is made.

The store asks its journal before a change (`admit`): one that could not keep it raises, and nothing
has happened. Then it tells it (`append`). A journal may put changes away in batches: whoever
answers a client waits for `when_durable`, which costs the thread that writes nothing, or calls
`flush`. `kubescene.store.disk` has the one that serves.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kubescene.api.records.changes import Change

Acknowledge: TypeAlias = Callable[[Exception | None], None]
"""Is told, on any thread, that something is durable; or why nobody knows whether it is."""


class Journal(Protocol):
    """Takes changes in order of revision, on the thread that writes."""

    @property
    def durable(self) -> int:
        """The revision up to which everything would survive a crash."""
        ...

    def admit(self, size: int) -> None:
        """Raise if changes of about so many bytes could not be kept."""
        ...

    def append(self, change: Change) -> None:
        """Take a change that is made at once; what comes of it `when_durable` tells."""
        ...

    def note(self, name: str, text: bytes) -> None:
        """Keep a text that is no object, in place of an earlier one of that name."""
        ...

    def when_durable(self, acknowledge: Acknowledge) -> None:
        """Tell once all that was appended until now is durable."""
        ...

    def compact(self) -> None:
        """Replace what was appended by what it has led to."""
        ...

    def close(self) -> None:
        """Nothing more comes: return once all is durable and others may have it."""
        ...

    def flush(self) -> None:
        """Return once all that was appended is durable; raise if it cannot be."""
        ...
