"""What a run needed of its nodes in sum, at the moment at which it needed most.

Two sorts of rows, for every set of groups that some pods are limited to: how much of a resource
their pods ask for together; and how many pods ask for at least so much of one, since a machine
holds only a whole number of these. Both are necessary whatever the scheduler does. Pods of
DaemonSets come with their nodes, and do not count; pods that nobody could limit by labels, taints
and amounts may go anywhere.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import orjson

from kubescene.api.resource_requests import PODS, pod_requests
from kubescene.api.selectors.daemon_fitness import DaemonFitness
from kubescene.controllers.builtin.nodes.node_groups import LABEL
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PodEntry
from kubescene.results.states import stored_spec
from kubescene.sizing.groups import SizedGroup
from kubescene.sizing.mixes import Need
from kubescene.timeline import Fact, ObjectCreated, ObjectKept
from kubescene.types import JsonObject

Where: TypeAlias = frozenset[int]
"""The groups that a pod may go to, by their places."""
Moment: TypeAlias = tuple[int, int]
"""An instant and a major step: what happens within is seen when it is over."""
DAEMONS = ("DaemonSet/", "Node/")
THRESHOLDS = 12
"""So many sizes of pods are looked at for each resource, those of the most pods."""


class PodShape(NamedTuple):
    """Pods for which the sums are alike."""

    where: Where
    requests: tuple[tuple[str, int], ...]


class Row(NamedTuple):
    """``size`` is 0 for the sum of a resource, else pods that ask for at least so much count."""

    where: Where
    resource: str
    size: int

    def weight(self, pod: PodShape) -> int:
        """What one such pod adds to it."""
        asked = dict(pod.requests).get(self.resource, 0)
        if not pod.where <= self.where:
            return 0
        return int(asked >= self.size) if self.size else asked

    def given(self, offers: Mapping[str, int]) -> int:
        """What a machine that offers this gives."""
        offered = offers.get(self.resource, 0)
        return offered // self.size if self.size else offered


def needs_of(facts: Iterable[Fact], ledger: Ledger, groups: Sequence[SizedGroup]) -> list[Need]:
    """Every need that is more than what other nodes than those of the groups offer."""
    specs = pod_specs(facts)
    lives = list(_lives(ledger, specs, groups))
    rows = _rows([pod for pod, _, _ in lives])
    peaks = _peaks(lives, rows)
    others = [each.allocatable for each in ledger.nodes if LABEL not in each.labels]
    found = []
    for row, peak in zip(rows, peaks, strict=True):
        amount = peak - sum(map(row.given, others))
        if amount > 0:
            gives = tuple(
                row.given(each.offers) if at in row.where else 0 for at, each in enumerate(groups)
            )
            found.append(Need(gives, amount, _words(row, amount, groups)))
    return found


def pod_specs(facts: Iterable[Fact]) -> dict[str, JsonObject]:
    """The spec of each pod by its uid, as it came; pods of one template share it."""
    known: dict[bytes, JsonObject] = {}
    found = {}
    for fact in facts:
        if isinstance(fact, ObjectCreated | ObjectKept) and fact.gvk.kind == "Pod":
            key = stored_spec(fact.record) or fact.record.unversioned_data
            if key not in known:
                known[key] = orjson.loads(fact.record.unversioned_data)["spec"]
            found[fact.uid] = known[key]
    return found


def _lives(
    ledger: Ledger, specs: Mapping[str, JsonObject], groups: Sequence[SizedGroup]
) -> Iterator[tuple[PodShape, Moment, Moment | None]]:
    """From when to when each pod needed room."""
    classes: dict[int, PodShape] = {}
    for pod in ledger.pods:
        spec = specs.get(pod.uid)
        if spec is None or pod.owner.startswith(DAEMONS) or pod.came_with_node:
            continue
        if pod.bound_step is None and not pod.failed_attempts:
            continue  # nobody looked for room
        if id(spec) not in classes:
            classes[id(spec)] = _class_of(spec, pod, groups)
        began_time, began = pod.created_time, pod.created_step
        if pod.bound_step is not None and pod.bound_time is not None:
            began_time, began = pod.bound_time, pod.bound_step
        ended = None
        if pod.ended_step is not None and pod.ended_time is not None:
            ended = pod.ended_time, pod.ended_step[0]
        yield classes[id(spec)], (began_time, began[0]), ended


def _class_of(spec: JsonObject, pod: PodEntry, groups: Sequence[SizedGroup]) -> PodShape:
    asked = {name: int(amount) for name, amount in pod_requests({"spec": spec}).items() if amount}
    if pod.requests:  # it may have been resized since
        asked = {name: min(each, pod.requests.get(name, 0)) for name, each in asked.items()}
    fitness = DaemonFitness(spec)
    where = frozenset(at for at, each in enumerate(groups) if each.takes(fitness, asked))
    return PodShape(where, tuple(sorted({**asked, PODS: 1}.items())))


def _rows(pods: Sequence[PodShape]) -> list[Row]:
    counts = Counter(pods)
    places = {each.where for each in counts}
    places |= {frozenset().union(*places)} if places else set()
    found = []
    for where in sorted(places, key=sorted):
        sizes: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for pod, count in counts.items():
            if pod.where <= where:
                for name, amount in pod.requests:
                    sizes[name][amount] += count
        for name in sorted(sizes):
            found.append(Row(where, name, 0))
            if name != PODS:
                usual = sorted(sizes[name].items(), key=lambda each: (-each[1], each[0]))
                found += [Row(where, name, size) for size, _ in usual[:THRESHOLDS] if size]
    return found


def _peaks(
    lives: Sequence[tuple[PodShape, Moment, Moment | None]], rows: Sequence[Row]
) -> list[int]:
    """The most of every row at any moment."""
    weights = {
        each: np.array([row.weight(each) for row in rows], dtype=np.int64)
        for each in dict.fromkeys(pod for pod, _, _ in lives)
    }
    changes: defaultdict[Moment, Counter[PodShape]] = defaultdict(Counter)
    for pod, began, ended in lives:
        changes[began][pod] += 1
        if ended is not None:
            changes[ended][pod] -= 1
    now = np.zeros(len(rows), dtype=np.int64)
    peak = now.copy()
    for moment in sorted(changes):
        for pod, count in changes[moment].items():
            now += weights[pod] * count
        np.maximum(peak, now, out=peak)
    return [int(each) for each in peak]


def _words(row: Row, amount: int, groups: Sequence[SizedGroup]) -> str:
    names = [groups[at].name for at in sorted(row.where)]
    among = "" if len(names) == len(groups) else f" of {', '.join(names) or 'no group'}"
    if row.size:
        return f"{amount} pods of {told(row.resource, row.size)} and more{among}"
    return f"{told(row.resource, amount)}{among}"


def told(resource: str, amount: int) -> str:
    """``cpu 2500m``, ``memory 3Gi``."""
    if resource == "cpu":
        return f"cpu {amount // 1000}" if amount % 1000 == 0 else f"cpu {amount}m"
    for unit, size in (("Gi", 2**30), ("Mi", 2**20)):
        if resource == "memory" and amount % size == 0:
            return f"{resource} {amount // size}{unit}"
    return f"{resource} {amount}"
