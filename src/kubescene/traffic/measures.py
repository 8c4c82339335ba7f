"""The measures of a run: how well requests were served, and what it cost.

All of them are made of integers and one division at the end, so that they are equal everywhere.
Percentiles are of the nearest rank: the smallest value that has the share at or below it.
"""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from kubescene.clock import MINUTE, SECOND
from kubescene.clock.batches import Integers
from kubescene.flows.fields import Objective
from kubescene.flows.percentiles import nearest_rank, percentile_of_all
from kubescene.flows.records import RequestColumns, RequestOutcome
from kubescene.traffic.world.decisions import AutoscalerDecision
from kubescene.traffic.world.worlds import ReplicaCount, ReplicaRecord

HOUR_S = 3600


class TrafficSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a run amounts to. Times are in seconds.

    - ``failed``: timed out, refused (no replica was active) or killed (its replica ended).
    - ``open``: still inside when the run ended; in no other count.
    - ``response_...``: response times of those served alone, from arrival to completion.
    - ``all_response_...``: of all that ended, where a failure counts as its time-out, whenever it
      was told: a run that fails more is not faster. None if nothing ended, or where the rank falls
      on a failure and requests have no time-out.
    - ``slo_minutes``: minutes in which fewer than the objective's share of the requests that
      arrived succeeded within its response time; ``minutes`` is how many had requests at all.
    - ``replica_hours``: from launch to end. ``cpu_hours``: the same, times the CPU that each
      replica had. ``cpu_used_hours``: CPU that requests really used.
    - ``reversals``: how often the desired number changed its direction.
    - ``time_to_scale``: from a decision for more replicas until so many were active, whether or
      not they were enough; those that were overtaken by a decision for fewer do not count.
    """

    requests: int
    succeeded: int
    failed: int
    timed_out: int
    refused: int
    killed: int
    open: int
    response_mean_s: float
    response_p50_s: float
    response_p90_s: float
    response_p95_s: float
    response_p99_s: float
    response_max_s: float
    all_response_p50_s: float | None
    all_response_p90_s: float | None
    all_response_p95_s: float | None
    all_response_p99_s: float | None
    minutes: int
    slo_minutes: int
    replicas_least: int
    replicas_most: int
    replica_hours: float
    cpu_hours: float
    cpu_used_hours: float
    decisions: int
    scale_ups: int
    scale_downs: int
    reversals: int
    time_to_scale_mean_s: float
    time_to_scale_max_s: float
    evictions: int
    oom_kills: int = 0


class Story(msgspec.Struct, frozen=True):
    """What a summary is made of."""

    end: int
    columns: RequestColumns
    replicas: Sequence[ReplicaRecord]
    counts: Sequence[ReplicaCount]
    decisions: Sequence[AutoscalerDecision]
    evictions: int
    used: int
    objective: Objective
    timeout: int
    """Of requests; negative: they have none."""


def summarize(story: Story) -> TrafficSummary:
    columns = story.columns
    outcomes = np.bincount(columns.outcome, minlength=len(RequestOutcome)).tolist()
    times = np.sort((columns.completed - columns.arrived)[columns.outcome == RequestOutcome.OK])
    failed = sum(outcomes) - outcomes[RequestOutcome.OK] - outcomes[RequestOutcome.OPEN]
    changes = [each for each in story.decisions if each.after != each.before]
    waits = scaling_times(story.decisions, story.counts)
    minutes, missed = slo_minutes(columns, story.objective)
    active = [each.active for each in story.counts]
    return TrafficSummary(
        requests=columns.count,
        succeeded=outcomes[RequestOutcome.OK],
        failed=failed,
        timed_out=outcomes[RequestOutcome.TIMEOUT],
        refused=outcomes[RequestOutcome.REFUSED],
        killed=outcomes[RequestOutcome.KILLED],
        open=outcomes[RequestOutcome.OPEN],
        response_mean_s=mean_s(times),
        response_p50_s=percentile_s(times, 50),
        response_p90_s=percentile_s(times, 90),
        response_p95_s=percentile_s(times, 95),
        response_p99_s=percentile_s(times, 99),
        response_max_s=percentile_s(times, 100),
        all_response_p50_s=all_percentile_s(times, failed, story.timeout, 50),
        all_response_p90_s=all_percentile_s(times, failed, story.timeout, 90),
        all_response_p95_s=all_percentile_s(times, failed, story.timeout, 95),
        all_response_p99_s=all_percentile_s(times, failed, story.timeout, 99),
        minutes=minutes,
        slo_minutes=missed,
        replicas_least=min(active, default=0),
        replicas_most=max(active, default=0),
        replica_hours=hours(sum(lifetime(each, story.end) for each in story.replicas)),
        cpu_hours=hours(sum(reserved(each, story.end) for each in story.replicas), 1000),
        cpu_used_hours=hours(story.used, 1000),
        decisions=len(story.decisions),
        scale_ups=sum(each.after > each.before for each in changes),
        scale_downs=sum(each.after < each.before for each in changes),
        reversals=reversals(changes),
        time_to_scale_mean_s=sum(waits) / len(waits) / SECOND if waits else 0.0,
        time_to_scale_max_s=max(waits, default=0) / SECOND,
        evictions=story.evictions,
        oom_kills=sum(each.restarts for each in story.replicas),
    )


def mean_s(times: Integers) -> float:
    return int(times.sum()) / (len(times) * SECOND) if len(times) else 0.0


def percentile_s(sorted_times: Integers, percent: float) -> float:
    """The nearest rank, in seconds; 0 where there is nothing."""
    if not len(sorted_times):
        return 0.0
    return int(sorted_times[nearest_rank(len(sorted_times), percent) - 1]) / SECOND


def all_percentile_s(served: Integers, failed: int, timeout: int, percent: float) -> float | None:
    """Of all that ended, failures at their time-outs; None where that is not known."""
    found = percentile_of_all(served, failed, timeout, percent)
    return None if found is None else found / SECOND


def lifetime(replica: ReplicaRecord, end: int) -> int:
    ended = end if replica.terminated_at < 0 else min(replica.terminated_at, end)
    return max(ended - replica.launched_at, 0)


def reserved(replica: ReplicaRecord, end: int) -> int:
    """The CPU that a replica had for itself, used or not, in millicore-nanoseconds."""
    since = max(replica.resized_at, replica.launched_at)
    ended = replica.launched_at + lifetime(replica, end)
    return replica.cpu_before + replica.cpu * max(ended - since, 0)


def hours(amount: int, divisor: int = 1) -> float:
    return amount / (SECOND * HOUR_S * divisor)


def slo_minutes(columns: RequestColumns, objective: Objective) -> tuple[int, int]:
    """Minutes with requests, and those of them that missed the objective."""
    closed = columns.outcome != RequestOutcome.OPEN
    minute = (columns.arrived // MINUTE)[closed]
    fast = columns.completed - columns.arrived <= objective.response_time
    good = (fast & (columns.outcome == RequestOutcome.OK))[closed]
    came = np.bincount(minute)
    kept = np.bincount(minute[good], minlength=len(came))
    share = round(objective.percentile * 1000)
    missed = kept * 100_000 < came * share
    return int(np.count_nonzero(came)), int(np.count_nonzero(missed))


def reversals(changes: Sequence[AutoscalerDecision]) -> int:
    ups = [each.after > each.before for each in changes]
    return sum(here != there for here, there in pairwise(ups))


def scaling_times(
    decisions: Sequence[AutoscalerDecision], counts: Sequence[ReplicaCount]
) -> list[int]:
    """For each decision for more replicas: how long until so many were active."""
    waits = []
    place = 0
    for index, decision in enumerate(decisions):
        if decision.after <= decision.before:
            continue
        undone = next(
            (each.time for each in decisions[index + 1 :] if each.after < decision.after), None
        )
        while place < len(counts) and counts[place].time < decision.time:
            place += 1
        for count in counts[place:]:
            if undone is not None and count.time >= undone:
                break
            if count.active >= decision.after:
                waits.append(count.time - decision.time)
                break
    return waits
