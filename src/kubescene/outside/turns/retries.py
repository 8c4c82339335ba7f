"""In which order a scheduler outside tries again what it has failed at.

When nobody holds it, it takes such pods by itself, one after the other, and binds them by threads
that race: in which order it decided cannot be seen. But its queue is known: by priority, and then
by their last failure.
"""

from typing import TypeAlias

from kubescene.api.kinds import POD
from kubescene.client import ObjectRef, Reader

Place: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


class Retries:
    """What one scheduler has failed at."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._failures: dict[Place, int] = {}
        self._count = 0

    def failed(self, place: Place) -> None:
        self._count += 1
        self._failures[place] = self._count

    def rank(self, place: Place) -> tuple[int, int]:
        """What comes first has the lower one."""
        namespace, name = place
        pod = self._reader.find(ObjectRef(POD, name, namespace))
        priority = 0 if pod is None else pod["spec"].get("priority") or 0
        return -priority, self._failures.get(place, 0)
