"""How long pods wait for a node.

A pod that never had one is *censored*: it would have waited longer than was seen. Percentiles take
that into account (Kaplan and Meier's estimate); one that cannot be known is absent. Pods that came
with a node never waited and are not counted.
"""

from collections import Counter
from functools import partial
from typing import NamedTuple

from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import Measure, Value
from kubescene.results.over_time.scaling import ToldRun

SECOND = 10**9


class Waits(NamedTuple):
    """How many pods waited how long: those that were bound, the others, and all in major steps."""

    bound: Counter[int]
    unbound: Counter[int]
    steps: Counter[int]

    @property
    def all(self) -> Counter[int]:
        return self.bound + self.unbound


def waits(source: ToldRun) -> Waits:
    """All pods that did not come with a node."""
    ledger = source.ledger
    pods = [pod for pod in ledger.pods if not pod.came_with_node]
    until = ledger.time
    return Waits(
        bound=Counter([pod.pending_until(until) for pod in pods if not pod.is_censored]),
        unbound=Counter([pod.pending_until(until) for pod in pods if pod.is_censored]),
        steps=Counter([pod.pending_steps(ledger.step) for pod in pods]),
    )


def total(spans: Counter[int]) -> int:
    return sum(span * often for span, often in spans.items())


def mean_seconds(waits: Waits) -> Value:
    spans = waits.all
    return total(spans) / SECOND / spans.total() if spans else None


def longest(waits: Waits) -> Value:
    spans = waits.all
    return max(spans) / SECOND if spans else None


def percentile(waits: Waits, *, percent: int) -> Value:
    """The shortest time within which so many percent are bound."""
    time = bound_within(waits.bound, waits.unbound, percent)
    return None if time is None else time / SECOND


def bound_within(bound: Counter[int], unbound: Counter[int], percent: int) -> int | None:
    """When the estimated share of those still waiting falls to 1 - percent; None: never.

    Who is last seen at a moment was at risk when others were bound then. Between two such moments
    the estimate is a plain share, ``left`` of ``group``, times what it was before.
    """
    group = left = sum(bound.values()) + sum(unbound.values())
    before = 1.0
    for time in sorted(bound.keys() | unbound.keys()):
        left -= bound[time]
        if bound[time] and before * left * 100 <= (100 - percent) * group:
            return time
        if unbound[time]:
            before *= left / group
            group = left = left - unbound[time]
    return None


def mean_steps(waits: Waits) -> Value:
    return total(waits.steps) / waits.steps.total() if waits.steps else None


def most_steps(waits: Waits) -> Value:
    return max(waits.steps, default=None)


def never_bound(ledger: Ledger) -> int:
    return sum(pod.is_censored for pod in ledger.pods)


MEASURES = (
    Measure(
        name="pods_never_bound",
        meaning="Pods that never had a node, whether they still wait or are gone.",
        formula="pods_created - pods_ever_bound",
        unit="pods",
        of=never_bound,
    ),
    Measure(
        name="pending_seconds_mean",
        meaning=(
            "Virtual time that a pod waited for its first node, on average; one that never had one "
            "counts until the end, or until it was gone."
        ),
        formula="mean over pods of min(first bound, ended, end of run) - created",
        unit="seconds",
        basis=waits,
        of=mean_seconds,
    ),
    *(
        Measure(
            name=f"pending_seconds_p{percent}",
            meaning=(
                f"Virtual time within which {percent} % of the pods have a node, those that never "
                "had one being censored; absent if so many never had one that it is not known."
            ),
            formula=f"smallest t with S(t) <= 1 - {percent}/100, S by Kaplan-Meier",
            unit="seconds",
            basis=waits,
            of=partial(percentile, percent=percent),
        )
        for percent in (50, 90, 95, 99)
    ),
    Measure(
        name="pending_seconds_max",
        meaning="The longest time that any pod was seen waiting, whether it got a node or not.",
        formula="max over pods of min(first bound, ended, end of run) - created",
        unit="seconds",
        basis=waits,
        of=longest,
    ),
    Measure(
        name="pending_steps_mean",
        meaning="Major steps that a pod waited, on average; 0 if bound in the step it came in.",
        formula="mean over pods of major step of first bound (or ended, or the last) - of created",
        unit="steps",
        basis=waits,
        of=mean_steps,
    ),
    Measure(
        name="pending_steps_max",
        meaning="The most major steps that any pod was seen waiting.",
        formula="max over pods of the same",
        unit="steps",
        basis=waits,
        of=most_steps,
    ),
)
