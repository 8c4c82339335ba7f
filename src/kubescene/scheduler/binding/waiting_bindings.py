"""Bindings that wait, and which of them an event is to be told to.

A binding that waits for objects it can name is told of these alone; all others are told of every
event that their plugin registered for.
"""

from collections.abc import Iterable

from kubescene.api.records.changes import Change
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.framework.interfaces import Awaited, ClusterEvent


class WaitingBindings:
    """Bindings by the uid of their pod."""

    def __init__(self) -> None:
        self.all: dict[str, Binding] = {}
        self._keys: dict[str, tuple[Awaited, ...]] = {}
        self._by_key: dict[Awaited, dict[str, None]] = {}
        self._others: dict[str, None] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self.all

    def get(self, uid: str) -> Binding | None:
        return self.all.get(uid)

    def add(self, binding: Binding) -> None:
        """A binding waits, perhaps again and for something else."""
        uid = binding.pod.uid
        self.remove(uid)
        self.all[uid] = binding
        if not binding.awaited:
            self._others[uid] = None
            return
        self._keys[uid] = tuple(binding.awaited)
        for key in self._keys[uid]:
            self._by_key.setdefault(key, {})[uid] = None

    def remove(self, uid: str) -> None:
        """A binding waits no longer, if it did."""
        self.all.pop(uid, None)
        self._others.pop(uid, None)
        for key in self._keys.pop(uid, ()):
            waiting = self._by_key[key]
            del waiting[uid]
            if not waiting:
                del self._by_key[key]

    def awaiting(self, event: ClusterEvent, change: Change) -> Iterable[Binding]:
        """The bindings that wait for the object of a change."""
        if not self._by_key:
            return ()
        key = Awaited(event.resource, change.record.namespace, change.record.name)
        return [self.all[uid] for uid in self._by_key.get(key, ())]

    def others(self) -> Iterable[Binding]:
        """The bindings that do not say what they wait for."""
        return [self.all[uid] for uid in self._others]
