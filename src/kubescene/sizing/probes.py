"""One try: a run with some machines, and what is kept of it.

It *holds* if nobody is left waiting: at the end of every step, and whenever time goes on, no pod
waits for which a scheduler has found no node, and none that nobody would make again had to give
way to another.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from kubescene.controllers.builtin.nodes.node_groups import LABEL
from kubescene.errors import KubesceneError
from kubescene.results.ledger import Ledger
from kubescene.results.opening import open_run
from kubescene.runs.local import RunResult, play
from kubescene.runs.requests import RunRequest
from kubescene.scheduler.framework.explain import Explain
from kubescene.sizing.groups import Mix, SizedGroup
from kubescene.sizing.mixes import Need
from kubescene.sizing.needs import needs_of
from kubescene.timeline import Fact, ObjectDeleted, PodScheduled, PodUnscheduled

KEPT = 20
"""So many waiting pods are named."""
REASON = re.compile(r"\d+ ((?:node\(s\) |Insufficient |Too many )[^,.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingTry:
    """What is to be played. ``first`` is the step from which on nobody shall wait."""

    request: RunRequest
    groups: Sequence[SizedGroup]
    first: int


class Tried(Struct, frozen=True, kw_only=True):
    """What came of it."""

    mix: Mix = ()
    """How many machines of each group there were in the end."""
    waiting: int = 0
    pods: list[tuple[str, str]] = []
    """Some of those that were left waiting, and the scheduler's last words about each."""
    needs: list[Need] = []
    error: str = ""

    @property
    def holds(self) -> bool:
        return not self.waiting and not self.error

    @property
    def reasons(self) -> list[str]:
        """Why pods wait, in words of the scheduler, the most frequent first."""
        found = Counter(each for _, why in self.pods for each in dict.fromkeys(reasons_in(why)))
        return [name for name, _ in sorted(found.items(), key=lambda each: (-each[1], each[0]))]


def reasons_in(message: str) -> list[str]:
    """The reasons that a scheduler counts nodes by."""
    told = message.partition(" preemption:")[0]
    return [each.removeprefix("Insufficient ").strip() for each in REASON.findall(told)]


def tried(job: SizingTry) -> Tried:
    """Play it; also that it failed is an outcome."""
    scheduler = replace(job.request.scheduler, explain=Explain.OFF)
    try:
        result = play(replace(job.request, scheduler=scheduler))
    except KubesceneError as error:
        return Tried(error=" ".join(str(error).split()))
    if not result.ok:
        return Tried(error=" ".join(result.message.split()) or f"it ended {result.phase}")
    return outcome_of(result, job)


def outcome_of(result: RunResult, job: SizingTry) -> Tried:
    ledger = open_run(result).ledger
    left = dict(left_waiting(result.log, ledger, job.first))
    there = Counter(each.labels.get(LABEL) for each in ledger.standing())
    return Tried(
        mix=tuple(there[each.name] for each in job.groups),
        waiting=len(left),
        pods=sorted(left.items())[:KEPT],
        needs=needs_of(result.log, ledger, job.groups),
    )


def left_waiting(facts: Iterable[Fact], ledger: Ledger, first: int) -> Iterator[tuple[str, str]]:
    """Pods that were left waiting, and why: the last time counts."""
    refused: dict[str, str] = {}
    now = (0, 0)
    for fact in facts:
        if not isinstance(fact, PodUnscheduled | PodScheduled | ObjectDeleted):
            continue
        moment = (fact.time, fact.step[0])
        if moment != now:
            if now[1] >= first:
                yield from refused.items()
            now, refused = moment, {}
        pod = f"{fact.namespace}/{fact.name}"
        if isinstance(fact, PodUnscheduled):
            refused[pod] = fact.message
        elif isinstance(fact, PodScheduled) or fact.gvk.kind == "Pod":
            refused.pop(pod, None)
    yield from refused.items()
    for each in ledger.pods:
        if each.preempted_by and not each.owner:
            yield each.pod, f"it had to give way to {each.preempted_by}"
