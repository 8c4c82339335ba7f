"""Which pods go first when a controller has too many.

The order of kube-controller-manager: unassigned before assigned, pending before running, not ready
before ready, lower deletion cost, crowded nodes, ready for a shorter time, more restarts, newer.
The two times are compared in buckets of powers of two, so that small differences do not decide.
Of equals the newest goes: names are made by lot, and nothing shall depend on them.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cmp_to_key
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, TypeAlias

from msgspec import Struct

from kubescene.clock import parse_time
from kubescene.controllers.builtin.workloads.pod_tally import owned_pod, ready_since
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"0|[1-9]\d*|-\d+", re.ASCII)
Rank: TypeAlias = tuple[int, ...]
"""What the order looks at before times: the lowest goes first."""
Traits: TypeAlias = tuple[str, Rank, tuple[Any, ...]]
"""What a company shares: the uid of the set, `RankedPod.kind` and `RankedPod.likeness`."""
FEW = 64
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class RankedPod(Struct, frozen=True):
    """What the order looks at. ``kind`` decides before nodes and times, ``restarts`` among these.

    ``place`` says which of the pods it is, in the order in which they came.
    """

    kind: Rank
    node: str
    ready_at: int | None
    restarts: tuple[int, int]
    created_at: int
    uid: str
    place: int

    @property
    def likeness(self) -> tuple[Any, ...]:
        """Pods of one rank that share this are equals."""
        return self.ready_at, self.restarts, self.created_at


def ranked(pod: JsonObject, place: int) -> RankedPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    node, ready_at = pod["spec"].get("nodeName", ""), ready_since(status)
    phase = _PHASES.get(status.get("phase", ""), 1)
    kind = (bool(node), phase, ready_at is not None, deletion_cost(metadata))
    created_at = parse_time(metadata["creationTimestamp"])
    return RankedPod(kind, node, ready_at, most_restarts(pod), created_at, metadata["uid"], place)


class Company:
    """Pods of a set on one node (or on none) that only their age tells apart."""

    __slots__ = ("_heap", "pods")

    def __init__(self) -> None:
        self.pods: dict[ObjectKey, RankedPod] = {}
        self._heap: list[tuple[int, ObjectKey]] = []
        """Holds all of them once somebody has asked, and some that have left."""

    def add(self, key: ObjectKey, pod: RankedPod) -> None:
        self.pods[key] = pod
        if self._heap:
            heappush(self._heap, (-pod.place, key))

    def newest(self) -> tuple[int, ObjectKey]:
        """Of all that are there, of which there is at least one, and its place below zero."""
        if not self._heap or len(self._heap) > 2 * len(self.pods) + FEW:
            self._heap = [(-pod.place, key) for key, pod in self.pods.items()]
            heapify(self._heap)
        while not self._is_here(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0]

    def _is_here(self, place: int, key: ObjectKey) -> bool:
        pod = self.pods.get(key)
        return pod is not None and pod.place == -place


class Equals:
    """Companies on nodes that are equally crowded: again only age tells their pods apart."""

    __slots__ = ("_heap", "companies")

    def __init__(self) -> None:
        self.companies: dict[str, Company] = {}
        """By their node."""
        self._heap: list[tuple[int, str]] = []
        """Once somebody has asked: of every company one that is no older than its newest pod."""

    def add(self, node: str, company: Company) -> None:
        """A company is here, or has one more pod."""
        self.companies[node] = company
        if self._heap:
            heappush(self._heap, (company.newest()[0], node))

    def newest(self) -> ObjectKey:
        """Of all pods; there is at least one."""
        if not self._heap or len(self._heap) > 2 * len(self.companies) + FEW:
            self._heap = [(each.newest()[0], node) for node, each in self.companies.items()]
            heapify(self._heap)
        while True:
            place, node = self._heap[0]
            company = self.companies.get(node)
            if company is None:
                heappop(self._heap)
                continue
            newest, key = company.newest()
            if newest == place:
                return key
            heapreplace(self._heap, (newest, node))


class DeletionOrder:
    """The active pods of related sets, in the order in which they would go.

    Kept up as pods change: who goes first is found among few, however many there are. If it
    ``relieves_nodes``, those go sooner whose node has more of all these pods. That is another rank
    for all pods of a node whenever one comes or leaves: its companies get it when somebody asks.
    """

    def __init__(self, *, relieves_nodes: bool) -> None:
        self._relieves_nodes = relieves_nodes
        self._pods: dict[ObjectKey, tuple[str, RankedPod]] = {}
        self._on_node: defaultdict[str, dict[Traits, Company]] = defaultdict(dict)
        self._counts: Counter[str] = Counter()
        """How many of the pods are on a node."""
        self._crowds: dict[str, int] = {}
        """How many there were when somebody last asked: the ranks of its companies have that."""
        self._unsettled: dict[str, None] = {}
        """Nodes to which pods have come, or that pods have left, since then."""
        self._ranks: defaultdict[str, dict[Rank, dict[Any, Equals]]] = defaultdict(dict)
        """By the uid of the set; what is in them is found by `RankedPod.likeness`."""
        self._places = 0

    def put(self, owner: str, key: ObjectKey, pod: JsonObject) -> None:
        """A pod of a set is like this now."""
        if not owned_pod(pod, ()).active:
            self.remove(key)
            return
        known, before = self._pods.get(key, ("", None))
        is_known = known == owner and before is not None and before.uid == pod["metadata"]["uid"]
        if not is_known or before is None:
            self._places += 1
            self.remove(key)
            self._add(owner, key, ranked(pod, self._places))
            return
        new = ranked(pod, before.place)
        if new.node != before.node:
            self.remove(key)
            self._add(owner, key, new)
        elif new != before:
            self._leave(key)
            self._pods[key] = (owner, new)
            self._enter(key)

    def remove(self, key: ObjectKey) -> None:
        """A pod is gone, or goes, or belongs to none of the sets any more."""
        if key not in self._pods:
            return
        self._leave(key)
        self._note(self._pods.pop(key)[1].node, -1)

    def first(self, owner: str, count: int, now: int) -> list[ObjectKey]:
        """So many pods of a set that go first, or all."""
        self._settle()
        ranks, found = self._ranks[owner], list[ObjectKey]()
        if count == 1 and ranks:
            return first_of(ranks[min(ranks)], 1, now)
        for rank in sorted(ranks):
            if len(found) < count:
                found += first_of(ranks[rank], count - len(found), now)
        return found

    def _add(self, owner: str, key: ObjectKey, pod: RankedPod) -> None:
        self._pods[key] = (owner, pod)
        self._enter(key)
        self._note(pod.node, 1)

    def _note(self, node: str, more: int) -> None:
        # Pods without a node make no difference to each other.
        if node and self._relieves_nodes:
            self._counts[node] += more
            self._unsettled[node] = None

    def _settle(self) -> None:
        """Give the rank that they have now to companies on nodes with more or fewer pods."""
        for node in self._unsettled:
            count, companies = self._counts[node], self._on_node[node]
            if count == self._crowds.get(node, 0):
                continue
            for owner, kind, likeness in companies:
                self._leave_rank(owner, kind, likeness, node)
            self._crowds[node] = count
            for traits, company in companies.items():
                self._enter_rank(traits, node, company)
        self._unsettled.clear()

    def _enter(self, key: ObjectKey) -> None:
        owner, pod = self._pods[key]
        traits, companies = (owner, pod.kind, pod.likeness), self._on_node[pod.node]
        if (company := companies.get(traits)) is None:
            company = companies[traits] = Company()
        company.add(key, pod)
        self._enter_rank(traits, pod.node, company)

    def _leave(self, key: ObjectKey) -> None:
        owner, pod = self._pods[key]
        traits, companies = (owner, pod.kind, pod.likeness), self._on_node[pod.node]
        company = companies[traits]
        del company.pods[key]
        if not company.pods:
            del companies[traits]
            self._leave_rank(*traits, pod.node)

    def _enter_rank(self, traits: Traits, node: str, company: Company) -> None:
        owner, kind, likeness = traits
        equals = self._ranks[owner].setdefault((*kind, -self._crowds.get(node, 0)), {})
        if (there := equals.get(likeness)) is None:
            there = equals[likeness] = Equals()
        there.add(node, company)

    def _leave_rank(self, owner: str, kind: Rank, likeness: Any, node: str) -> None:
        ranks, rank = self._ranks[owner], (*kind, -self._crowds.get(node, 0))
        equals = ranks[rank]
        companies = equals[likeness].companies
        del companies[node]
        if not companies:
            del equals[likeness]
        if not equals:
            del ranks[rank]


def first_of(equals: Mapping[Any, Equals], count: int, now: int) -> list[ObjectKey]:
    """So many pods of one rank."""
    if count == 1 and len(equals) == 1:
        return [each.newest() for each in equals.values()]
    companies = [each for some in equals.values() for each in some.companies.values()]
    pods = [each for some in companies for each in some.pods.items()]
    pods.sort(key=lambda each: each[1].place, reverse=True)
    if len(equals) > 1:

        def differ(one: tuple[ObjectKey, RankedPod], other: tuple[ObjectKey, RankedPod]) -> int:
            return compare(one[1], other[1], now)

        pods.sort(key=cmp_to_key(differ))
    return [key for key, _ in pods[:count]]


def compare(one: RankedPod, other: RankedPod, now: int) -> int:
    """Negative if ``one`` is to be deleted before ``other`` of its rank; the first difference
    decides.
    """
    if one.ready_at is not None and other.ready_at is not None and one.ready_at != other.ready_at:
        return compare_ages(one, other, bucket(now - one.ready_at), bucket(now - other.ready_at))
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_at != other.created_at:
        ages = bucket(now - one.created_at), bucket(now - other.created_at)
        return compare_ages(one, other, *ages)
    return 0


def compare_ages(one: RankedPod, other: RankedPod, age: int, other_age: int) -> int:
    """The younger first; ages that are much the same leave it to the uid."""
    if age != other_age:
        return age - other_age
    return -1 if one.uid < other.uid else 1


def deletion_cost(metadata: JsonObject) -> int:
    """The annotation as int32; anything unreadable counts as zero, a leading zero included."""
    text = (metadata.get("annotations") or {}).get(DELETION_COST, "0")
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def most_restarts(pod: JsonObject) -> tuple[int, int]:
    """The highest restart count among the containers, and among the sidecars."""
    status = pod.get("status") or {}
    before = pod["spec"].get("initContainers") or ()
    sidecars = {c["name"] for c in before if c.get("restartPolicy") == "Always"}
    regular = [int(s.get("restartCount", 0)) for s in status.get("containerStatuses") or ()]
    beside = [
        int(s.get("restartCount", 0))
        for s in status.get("initContainerStatuses") or ()
        if s["name"] in sidecars
    ]
    return max(regular, default=0), max(beside, default=0)


def bucket(age: int) -> int:
    """The power of two below an age in nanoseconds; zero for no age at all."""
    return age.bit_length() if age > 0 else 0
