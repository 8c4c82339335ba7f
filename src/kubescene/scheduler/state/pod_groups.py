"""Pod groups: which pods belong together, and how far each of them has come.

A pod names its group in ``spec.schedulingGroup.podGroupName``. Of every group the scheduler knows
the pods that are on a node (*assigned*), those that it has promised one (*assumed*) and the others
(*unscheduled*). Only followed while the gate GenericWorkload is on.
"""

from collections.abc import Collection

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.scheduler.state.pod_kinds import DEFAULT_SCHEDULER, group_of
from kubescene.types import ReadOnlyObject

_ENDED = frozenset({"Succeeded", "Failed"})


class PodGroup:
    """The pods of one group that the scheduler knows, in order of arrival."""

    __slots__ = ("_assigned", "_assumed", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, Record] = {}
        self._assigned: dict[str, None] = {}
        self._assumed: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def scheduled(self) -> int:
        """How many have a node, be it a promised one."""
        return len(self._assigned) + len(self._assumed)

    @property
    def assumed(self) -> list[str]:
        """The uids of those that have been promised a node."""
        return [*self._assumed]

    def unscheduled(self) -> list[Record]:
        return [
            record
            for uid, record in self._pods.items()
            if uid not in self._assigned and uid not in self._assumed
        ]

    def put(self, record: Record) -> None:
        """A pod is there, or has changed."""
        self._pods[record.uid] = record
        if record.node:
            self._assigned[record.uid] = None
            self._assumed.pop(record.uid, None)

    def remove(self, uid: str) -> None:
        for pods in (self._pods, self._assigned, self._assumed):
            pods.pop(uid, None)

    def assume(self, uid: str) -> None:
        if uid in self._pods and uid not in self._assigned:
            self._assumed[uid] = None

    def forget(self, uid: str) -> None:
        self._assumed.pop(uid, None)


class PodGroups:
    """All groups of one scheduler, by namespace and name."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self._scheduler_names = frozenset(scheduler_names)
        self._groups: dict[tuple[str, str], PodGroup] = {}

    def get(self, namespace: str, name: str) -> PodGroup:
        """A group; one that nobody belongs to is empty."""
        return self._groups.get((namespace, name)) or PodGroup()

    def changed(self, change: Change) -> None:
        """A watch of pods brings a change."""
        record, spec = change.record, change.object.get("spec") or {}
        key = (record.namespace, group_of(spec))
        if not key[1]:
            return
        if change.type is ChangeType.DELETED or record.phase in _ENDED:
            self._remove(key, record.uid)
        elif record.node or self._is_ours(spec):
            self._groups.setdefault(key, PodGroup()).put(record)

    def assume(self, namespace: str, name: str, uid: str) -> None:
        self.get(namespace, name).assume(uid)

    def forget(self, namespace: str, name: str, uid: str) -> None:
        self.get(namespace, name).forget(uid)

    def _is_ours(self, spec: ReadOnlyObject) -> bool:
        return (spec.get("schedulerName") or DEFAULT_SCHEDULER) in self._scheduler_names

    def _remove(self, key: tuple[str, str], uid: str) -> None:
        if (group := self._groups.get(key)) is not None:
            group.remove(uid)
            if not len(group):
                del self._groups[key]
