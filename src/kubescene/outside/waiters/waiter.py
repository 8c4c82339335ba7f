"""What a ControllerWaiter is, and the simplest one.

A waiter of your own is a class without arguments, a name and one method::

    class Databases:
        name = "databases"

        def condition(self, reader):
            databases = reader.list(GroupVersionKind("example.com", "v1", "Database"))
            return all("endpoint" in each.get("status", {}) for each in databases)

A scenario names it (``waiter: {name: databases}``); whoever plays the scenario brings it, by
``--waiter module:Class`` or as an entry point of the group ``kubescene.waiters``.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from kubescene.client import Reader
from kubescene.types import JsonObject

SHOWN = 5
"""Objects that a message names; of more only the number is told."""


class ControllerWaiter(Protocol):
    """Says from the state of objects whether a controller cannot do anything more.

    It is asked in the middle of the controller's turn, often: it reads, writes nothing, and gives
    the same answer for the same objects.
    """

    name: str

    def condition(self, reader: Reader) -> bool:
        """Whether the objects are as the controller leaves them when it has no work left."""
        ...

    def unmet(self, reader: Reader) -> str:
        """What is not yet so, naming objects; told when the turn takes too long.

        A waiter of your own need not have it.
        """
        ...


class QuietWaiter:
    """Always content: that the controller has been quiet for a while is all that is asked."""

    name = "quiet"

    def condition(self, reader: Reader) -> bool:
        del reader
        return True

    def unmet(self, reader: Reader) -> str:
        del reader
        return ""


def listed(found: Iterable[str]) -> str:
    """The first few of what was found, and how many more there are."""
    rest = iter(found)
    shown = "; ".join(islice(rest, SHOWN))
    more = sum(1 for _ in rest)
    return f"{shown}; and {more} more" if more else shown


def name_of(obj: JsonObject) -> str:
    """An object in a message: ``Pod default/web-1``."""
    metadata = obj["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']} {place}{metadata['name']}"
