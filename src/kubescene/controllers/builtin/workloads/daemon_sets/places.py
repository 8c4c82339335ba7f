"""Where a DaemonSet's pods belong, and what there is on each node.

A node is looked at when it or a pod of it has changed, never because of another node: what was
found there is counted until then, so that a pass costs as much as has changed since the last one.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappush
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubescene.api.records.changes import Change
from kubescene.api.records.templates import target_of
from kubescene.api.selectors import LabelSelector
from kubescene.api.selectors.daemon_fitness import DaemonFitness, DaemonNode
from kubescene.clock import MINUTE, SECOND
from kubescene.controllers.builtin.workloads.controller_revisions import REVISION_LABEL
from kubescene.controllers.builtin.workloads.deployments.rolling import share
from kubescene.controllers.builtin.workloads.pod_tally import TERMINAL_PHASES, ready_since_of
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

GENERATION_LABEL = "pod-template-generation"
FIRST_BACK_OFF = SECOND
LONGEST_BACK_OFF = 15 * MINUTE
T = TypeVar("T")
IsPutOff: TypeAlias = Callable[[str], bool]
"""Whether a failed pod on this node has to wait before it is replaced."""


class DaemonPod(Struct, frozen=True, gc=False):
    """What matters of a pod. ``node`` is where it is, or where it asks to be."""

    name: str
    uid: str
    node: str
    bound: bool
    created: str
    hash: str
    generation: str
    phase: str
    ready_since: int | None
    deleting: bool

    def __deepcopy__(self, memo: object) -> "DaemonPod":
        return self  # nothing of it ever changes

    def is_available(self, delay: int, now: int) -> bool:
        """Whether it has been ready for so long."""
        since = self.ready_since
        return since is not None and (not delay or since + delay <= now)

    @property
    def age_order(self) -> tuple[bool, str, str]:
        """Pods with a node first, then the oldest."""
        return not self.bound, self.created, self.name


def daemon_pod(change: Change, known: DaemonPod | None) -> DaemonPod:
    """The pod after a change; what it was before spares decoding it."""
    record, labels = change.record, change.record.labels
    if known is not None and known.uid == record.uid:
        wanted, created = known.node, known.created
    else:
        pod = change.object
        wanted = target_of(pod["spec"])
        created = pod["metadata"].get("creationTimestamp", "")
    return DaemonPod(
        record.name,
        record.uid,
        record.node or wanted,
        bool(record.node),
        created,
        labels.get(REVISION_LABEL, ""),
        labels.get(GENERATION_LABEL, ""),
        record.phase,
        ready_since_of(record),
        record.deleting,
    )


class SurgeLimits(Struct, frozen=True):
    """How a set is updated. ``surge`` and ``unavailable`` are counts or percentages."""

    rolling: bool
    surge: int | str
    unavailable: int | str

    @property
    def surges(self) -> bool:
        return self.rolling and share(self.surge, 100, rounded_up=True) > 0

    def resolved(self, desired: int) -> tuple[int, int]:
        """Surge and unavailable, both rounded up; never both zero."""
        surge = share(self.surge, desired, rounded_up=True)
        unavailable = share(self.unavailable, desired, rounded_up=True)
        return (surge, unavailable) if surge or unavailable else (0, min(desired, 1))


def limits_of(spec: JsonObject) -> SurgeLimits:
    strategy = spec.get("updateStrategy") or {}
    pace = strategy.get("rollingUpdate") or {}
    rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    return SurgeLimits(rolling, pace.get("maxSurge", 0), pace.get("maxUnavailable", 1))


class Revision(Struct, frozen=True):
    """What pods have to be made from: the hash of the template and its number."""

    hash: str
    generation: str

    def made(self, pod: DaemonPod) -> bool:
        return pod.hash == self.hash or (
            bool(self.generation) and pod.generation == self.generation
        )


class FailedPodsBackOff(Struct, frozen=True):
    """How long failed pods of a node have to wait, since when."""

    length: int
    since: int

    def is_over(self, now: int) -> bool:
        return now - self.since >= self.length

    def next(self, now: int) -> "FailedPodsBackOff":
        if now - self.since > 2 * LONGEST_BACK_OFF:
            return FailedPodsBackOff(FIRST_BACK_OFF, now)
        return FailedPodsBackOff(min(2 * self.length, LONGEST_BACK_OFF), now)


class DaemonHistory(Struct, frozen=True):
    """The revisions of a set: the hash of the one with this template, and all others."""

    template: JsonObject
    hash: str
    old: list[JsonObject]

    def is_of(self, template: JsonObject) -> bool:
        return template is self.template or template == self.template


class DaemonPlace(Struct, frozen=True):
    """What was found on a node, counted until the next look. Numbers are 0 or 1."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    unavailable: int = 0
    """It takes from what may be unavailable in an update."""
    surging: int = 0
    """A new pod beside an old one is not available yet."""
    needs: bool = False
    """A pod is missing."""
    old: str = ""
    """An old pod that is available: one to be updated when it may."""
    broken: str = ""
    """An old pod that is not available: it is replaced in any case."""
    outdone: str = ""
    """An old pod beside a new one that is available."""
    surplus: tuple[str, ...] = ()
    """Pods that have to go."""

    def __deepcopy__(self, memo: object) -> "DaemonPlace":
        return self  # nothing of it ever changes


NOTHING_THERE = DaemonPlace()
COUNTED = (
    "desired",
    "current",
    "misscheduled",
    "ready",
    "available",
    "updated",
    "unavailable",
    "surging",
)


class Daemon:
    """One DaemonSet: its pods by node, and what was found on each node."""

    def __init__(self, key: ObjectKey, selector: LabelSelector) -> None:
        self.key = key
        self.selector = selector
        self.spec: JsonObject | None = None
        self.revision = Revision("", "")
        self.history: DaemonHistory | None = None
        self.back_offs: dict[str, FailedPodsBackOff] = {}
        """How long failed pods of a node have to wait."""
        self.fitness = DaemonFitness({})
        self.limits = SurgeLimits(rolling=False, surge=0, unavailable=0)
        self.delay = 0
        self.pods: dict[str, DaemonPod] = {}
        self.hashes: Counter[str] = Counter()
        self.strays: dict[str, None] = {}
        self.dirty: dict[str, None] = {}
        """Nodes to look at."""
        self.due: list[tuple[int, str]] = []
        """A heap of nodes to look at later: a pod becomes available, or may be replaced."""
        self.totals: Counter[str] = Counter()
        self.missing: dict[str, None] = {}
        """Nodes that need a pod."""
        self.surplus: dict[str, tuple[str, ...]] = {}
        """Pods that have to go, by node; so are the following three."""
        self.old: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.outdone: dict[str, str] = {}
        self._places: dict[str, DaemonPlace] = {}
        self._by_node: dict[str, dict[str, DaemonPod]] = {}

    # -- pods ------------------------------------------------------------------------------

    def only_binds(self, pod: DaemonPod) -> bool:
        """Whether a pod alone on its node has been bound to it, and nothing else has changed.

        Nothing comes of that, unless there is more to look at.
        """
        old = self.pods.get(pod.name)
        return (
            old is not None
            and not self.dirty
            and pod.node not in self.surplus
            and not old.bound
            and len(self._by_node.get(pod.node, ())) == 1
            and replace(old, bound=True) == pod
        )

    def put(self, pod: DaemonPod, *, matches: bool) -> None:
        self.remove(pod.name)
        if not matches:
            self.strays[pod.name] = None
            return
        self.pods[pod.name] = pod
        self.hashes[pod.hash] += 1
        if pod.node:
            self._by_node.setdefault(pod.node, {})[pod.name] = pod
            self.dirty[pod.node] = None

    def remove(self, name: str) -> None:
        self.strays.pop(name, None)
        pod = self.pods.pop(name, None)
        if pod is None:
            return
        self.hashes[pod.hash] -= 1
        if pod.node:
            there = self._by_node[pod.node]
            del there[name]
            if not there:
                del self._by_node[pod.node]
            self.dirty[pod.node] = None

    def wakes_for(self, node: DaemonNode) -> bool:
        """Whether a pod has to be made or removed on a node that has changed."""
        if self.spec is None:
            return True
        run, stay = self.fitness.of(node)
        return not stay if node.name in self._by_node else run

    # -- looking ---------------------------------------------------------------------------

    def renew(self, spec: JsonObject, revision: Revision, nodes: Iterable[str]) -> None:
        """Look everywhere again if the set or its revision has changed."""
        if spec is not self.spec and spec != self.spec:
            self.fitness = DaemonFitness(spec["template"]["spec"])
            self.limits = limits_of(spec)
            self.delay = int(spec.get("minReadySeconds") or 0) * SECOND
        elif revision == self.revision:
            self.spec = spec
            return
        self.spec, self.revision = spec, revision
        self.dirty = dict.fromkeys((*nodes, *self._by_node, *self._places))

    def look(self, name: str, node: DaemonNode | None, now: int, put_off: IsPutOff) -> None:
        """Find out what there is on a node and what has to be done there."""
        place = self._place(name, node, now, put_off)
        before = self._places.get(name, NOTHING_THERE)
        if place == before:
            return
        totals = self.totals
        for count in COUNTED:
            totals[count] += getattr(place, count) - getattr(before, count)
        if place == NOTHING_THERE:
            del self._places[name]
        else:
            self._places[name] = place
        keep(self.missing, name, None, there=place.needs)
        keep(self.surplus, name, place.surplus, there=bool(place.surplus))
        keep(self.old, name, place.old, there=bool(place.old))
        keep(self.broken, name, place.broken, there=bool(place.broken))
        keep(self.outdone, name, place.outdone, there=bool(place.outdone))

    def _place(
        self, name: str, node: DaemonNode | None, now: int, put_off: IsPutOff
    ) -> DaemonPlace:
        found = self._by_node.get(name)
        pods = (
            [each for each in found.values() if not (each.deleting and is_over(each))]
            if found
            else []
        )
        run, stay = self.fitness.of(node)
        place: dict[str, object] = {}
        if node is None:
            place["surplus"] = tuple(each.name for each in pods if not each.bound and is_kept(each))
        elif stay:
            place["needs"], place["surplus"] = self._kept(name, pods, run, now, put_off)
        else:
            place["surplus"] = tuple(each.name for each in pods if is_kept(each))
        if run:
            place |= self._counts(pods, now)
        elif node is not None and pods:
            place["misscheduled"] = 1
        if (run or pods) and self.limits.rolling:
            place |= self._update(pods, now)
        if self.delay:
            self._note_times(name, pods, now)
        return DaemonPlace(**place)  # type: ignore[arg-type]

    def _counts(self, pods: list[DaemonPod], now: int) -> dict[str, object]:
        """What the status counts: a node is as its oldest pod."""
        if not pods:
            return {"desired": 1}
        first = min(pods, key=lambda each: each.age_order)
        return {
            "desired": 1,
            "current": 1,
            "ready": int(first.ready_since is not None),
            "available": int(first.is_available(self.delay, now)),
            "updated": int(self.revision.made(first)),
        }

    def _kept(
        self, name: str, pods: list[DaemonPod], run: bool, now: int, put_off: IsPutOff
    ) -> tuple[bool, tuple[str, ...]]:
        """Whether a pod is missing on a node that pods may be on, and which have to go."""
        if run and not pods:
            return True, ()
        surplus = []
        running = []
        for pod in pods:
            if pod.deleting:
                continue
            if pod.phase == "Failed" and put_off(pod.name):
                continue
            if is_over(pod):
                surplus.append(pod.name)
            else:
                running.append(pod)
        running.sort(key=lambda each: each.age_order)
        if not self.limits.surges:
            return False, (*surplus, *(each.name for each in running[1:]))
        if len(running) <= 1:
            return run and not running, tuple(surplus)
        return False, (*surplus, *self._too_many(running, now))

    def _too_many(self, running: list[DaemonPod], now: int) -> list[str]:
        """Of several pods on a node one old and one new may stay, until the new one can do it."""
        new = next((each for each in running if each.hash == self.revision.hash), None)
        old = next((each for each in running if each.hash != self.revision.hash), None)
        going = [each.name for each in running if each is not new and each is not old]
        if (
            new is not None
            and old is not None
            and (old.ready_since is None or new.is_available(self.delay, now))
        ):
            going.append(old.name)
        return going

    def _update(self, pods: list[DaemonPod], now: int) -> dict[str, object]:
        """What a node means for a rolling update."""
        living = [each for each in pods if not each.deleting]
        new = [each for each in living if self.revision.made(each)]
        old = [each for each in living if not self.revision.made(each)]
        if self.limits.surges:
            return self._surge(new, old, now)
        if len(new) > 1 or len(old) > 1 or bool(new) == bool(old):
            return {"unavailable": 1}  # Pods are made or removed there first.
        if new:
            return {"unavailable": int(not new[0].is_available(self.delay, now))}
        if old[0].is_available(self.delay, now):
            return {"old": old[0].name}
        return {"unavailable": 1, "broken": old[0].name}

    def _surge(self, new: list[DaemonPod], old: list[DaemonPod], now: int) -> dict[str, object]:
        if len(new) > 1 or len(old) > 1:
            return {"surging": 1}
        if not old:
            return {}
        if not new:
            is_available = old[0].is_available(self.delay, now)
            return {"old" if is_available else "broken": old[0].name}
        if new[0].is_available(self.delay, now):
            return {"outdone": old[0].name}
        return {"surging": 1}

    def _note_times(self, name: str, pods: list[DaemonPod], now: int) -> None:
        """Look again when a pod has been ready for long enough."""
        since = (each.ready_since for each in pods)
        due = [each + self.delay for each in since if each is not None and each + self.delay > now]
        if due:
            heappush(self.due, (min(due), name))


def is_over(pod: DaemonPod) -> bool:
    return pod.phase in TERMINAL_PHASES


def is_kept(pod: DaemonPod) -> bool:
    return not pod.deleting


def keep(kept: dict[str, T], name: str, value: T, *, there: bool) -> None:
    """Note something of a node, in the place that it had, or that there is nothing."""
    if there:
        kept[name] = value
    else:
        kept.pop(name, None)
