"""What the rule of Knative would have done: recorded load played to it, pass by pass.

A sample says how many requests there were under the name of the metric, ``concurrency`` (in flight)
or ``rps``, all pods together. The load is taken to be the same whatever the count.
"""

from collections.abc import Iterable

from msgspec import Struct

from kubescene.autoscalers.back_tests import (
    BackTestRow,
    FollowingPods,
    PodUsageSample,
    RecordedUsage,
    ReplicaBackTest,
    checked_usage,
    passes,
    start_of,
)
from kubescene.autoscalers.concurrency.plugin import (
    ROUTER,
    ConcurrencyAutoscaler,
    ConcurrencyDecision,
    Load,
    read_spec,
)
from kubescene.autoscalers.kpa import TICK
from kubescene.types import JsonObject, Nanoseconds


class ConcurrencyExplanation(Struct, frozen=True):
    """One decision beside the count before it."""

    current: int
    decision: ConcurrencyDecision

    def __str__(self) -> str:
        desired, reason = self.decision.pods, self.decision.reason
        if desired == self.current:
            return f"stays at {self.current}: {reason}"
        return f"{self.current} -> {desired}: {reason}"

    def to_dict(self) -> JsonObject:
        return {"reason": self.decision.reason, **self.decision.details}


def back_test(
    autoscaler: str,
    samples: Iterable[PodUsageSample],
    *,
    replicas: int | None = None,
    interval: Nanoseconds = TICK,
    startup: Nanoseconds = 0,
) -> ReplicaBackTest[ConcurrencyExplanation]:
    """Play load to a ConcurrencyAutoscaler from the first sample to the last.

    ``replicas`` is the count at the start, by default what the first sample says there were, or
    ``initialScale`` and ``minScale``. Raises `ConfigurationError` with the name of the field.
    """
    spec = read_spec(autoscaler)
    usage = checked_usage(samples, [spec.metric.value])
    start = start_of(usage, replicas, max(spec.initial_scale, spec.min_scale))
    following = FollowingPods(startup, start, usage[0].time)
    run = ConcurrencyAutoscaler(spec, Load(spec.stable_window, last_busy=usage[0].time))
    rows = (_pass(run, following, now, seen) for now, seen in passes(usage, interval))
    return ReplicaBackTest(tuple(rows), interval)


def _pass(
    run: ConcurrencyAutoscaler, following: FollowingPods, now: Nanoseconds, usage: RecordedUsage
) -> BackTestRow[ConcurrencyExplanation]:
    before, ready = len(following), following.ready(now)
    run.pods = {f"pod-{number}": following.is_ready(number, now) for number in range(before)}
    _hold(run.load, next(iter(run.pods)) if ready else ROUTER, usage.amounts[run.spec.metric], now)
    decision = run.recommend(now)
    following.scale(decision.pods, now)
    why = ConcurrencyExplanation(before, decision)
    return BackTestRow(now, before, ready, decision.pods, why, recorded=usage.replicas)


def _hold(load: Load, holder: str, total: int, now: Nanoseconds) -> None:
    """The whole load: the rule goes by totals, so that one pod may stand for all of them."""
    for other in [each for each in load.by_pod if each != holder]:
        load.remove(other, now)
    load.set(holder, total, now)
