"""Which decisions are shown: of a small run all, of a large one those that are worth a look.

First pods that wait (one for each reason, then more), pods for which others had to leave, pods that
came late; then some of the others, evenly over the run. How many are read is bounded, and so are
the verdicts on nodes in them.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest

from kubescene.reports.html.contents import Decision
from kubescene.reports.html.digesting import URGENCY, digested
from kubescene.reports.html.waits import grouped, late_of, waiting_of
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PENDING, PodEntry
from kubescene.results.sources import RunSource

PODS = 150
WAITING = 60
ALIKE = 3
PREEMPTORS = 40
LATE = 30
VERDICTS = 250_000
ATTEMPTS = 3
"""Of one pod: the first, the newest that made others leave, and the last."""


def decisions_of(source: RunSource) -> list[Decision]:
    """The most urgent first, then in the order of the run."""
    found: list[tuple[tuple[int, int, int], Decision]] = []
    left = VERDICTS
    for pod in islice(chosen(source.ledger), PODS):
        attempts = source.explain(pod.pod)
        waits = pod.state == PENDING
        for number in picked([bool(each.preemption) for each in attempts]):
            attempt = attempts[number - 1]
            last_waits = waits and number == len(attempts)
            decision = digested(
                attempt, number=number, attempts=len(attempts), last_waits=last_waits
            )
            found.append((place_of(decision), decision))
            left -= len(attempt.verdicts)
        if left <= 0:
            break
    found.sort(key=lambda pair: pair[0])
    return [decision for _, decision in found]


def picked(preempting: list[bool]) -> list[int]:
    """Which attempts at a pod are shown, counted from 1."""
    last = len(preempting)
    if last <= ATTEMPTS:
        return list(range(1, last + 1))
    made_room = [number for number in range(2, last) if preempting[number - 1]]
    return [1, *made_room[-1:], last]


def place_of(decision: Decision) -> tuple[int, int, int]:
    """Where it stands in the list: by urgency, then by step."""
    urgency = URGENCY.index(decision.tags[0]) if decision.tags else len(URGENCY)
    major, _, minor = decision.step.partition(".")
    return urgency, int(major), int(minor)


def chosen(ledger: Ledger) -> Iterator[PodEntry]:
    """Pods in the order in which they deserve attention, each name once."""
    seen: set[str] = set()
    preemptors = dict.fromkeys(each.preemptor for each in ledger.preemptions)
    by_name = {pod.pod: pod for pod in ledger.pods if pod.pod in preemptors}
    candidates = chain(
        islice(one_of_each(waiting_of(ledger)), WAITING),
        islice((by_name[name] for name in preemptors if name in by_name), PREEMPTORS),
        islice(late_of(ledger), LATE),
        spread(ledger.pods, PODS),
    )
    for pod in candidates:
        if pod.pod not in seen and (pod.attempts or pod.state == PENDING):
            seen.add(pod.pod)
            yield pod


def one_of_each(waiting: Iterable[PodEntry]) -> Iterator[PodEntry]:
    """The first of every group, then the second of every group, and so on: a few of each."""
    groups = [pods[:ALIKE] for _, pods in grouped(waiting)]
    return (pod for row in zip_longest(*groups) for pod in row if pod is not None)


def spread(pods: list[PodEntry], count: int) -> list[PodEntry]:
    """So many of them, at even distances."""
    every = max(1, -(-len(pods) // count))
    return pods[::every]
