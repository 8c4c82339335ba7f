"""Probes of a container: when they are made, how they turn out, and what a kubelet makes of that.

Nothing is asked: how an application answers at a time after its start is data (`ProbeAnswers`), so
all of a probe's answers are a handful of stretches in which it passes or fails, and the instants at
which a threshold is reached are worked out from these.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from kubescene.clock import SECOND
from kubescene.types import JsonObject

STARTUP, READINESS, LIVENESS = "startupProbe", "readinessProbe", "livenessProbe"
PROBES = (STARTUP, READINESS, LIVENESS)
PERIOD, FAILURES, SUCCESSES = 10, 3, 1
"""Kubernetes' defaults of periodSeconds, failureThreshold and successThreshold."""


class ProbeAnswers(Struct, frozen=True):
    """How one run of a container answers a probe, by nanoseconds since its start.

    It passes from ``pass_after`` on, but for ``failing``: from one age on, for so long (None: for
    good).
    """

    pass_after: int = 0
    failing: tuple[tuple[int, int | None], ...] = ()

    def passes(self, age: int) -> bool:
        if age < self.pass_after:
            return False
        return not any(
            after <= age and (long is None or age < after + long) for after, long in self.failing
        )

    def edges(self) -> list[int]:
        """Ages at which the answer may change, the first of which is zero."""
        found = {0, self.pass_after}
        for after, long in self.failing:
            found.add(after)
            if long is not None:
                found.add(after + long)
        return sorted(found)


ALWAYS_PASSES = ProbeAnswers()


class ProbeSchedule(Struct, frozen=True):
    """When a probe of a container's spec is made, and how many answers count."""

    delay: int
    period: int
    failures: int
    successes: int
    grace: int | None
    """Nanoseconds that a container has to end when it fails; None: those of its pod."""
    silence: str
    """What a kubelet says of an answer that fails, as far as the spec tells."""


class ProbeStretch(NamedTuple):
    """Probes in a row with one answer: at ``first``, and each ``period`` after; None: for ever."""

    first: int
    probes: int | None
    passes: bool


class Flip(NamedTuple):
    """From this instant on a kubelet takes the probe for passed, or failed."""

    at: int
    passes: bool


def schedule_of(container: JsonObject, kind: str) -> ProbeSchedule | None:
    """When a container's probe of a kind is made; None if it has none."""
    probe = container.get(kind)
    if not probe:
        return None
    grace = probe.get("terminationGracePeriodSeconds")
    return ProbeSchedule(
        int(probe.get("initialDelaySeconds") or 0) * SECOND,
        max(int(probe.get("periodSeconds") or PERIOD), 1) * SECOND,
        max(int(probe.get("failureThreshold") or FAILURES), 1),
        max(int(probe.get("successThreshold") or SUCCESSES), 1),
        None if grace is None else int(grace) * SECOND,
        _silence(probe),
    )


def _silence(probe: JsonObject) -> str:
    if "httpGet" in probe:
        return "HTTP probe failed with statuscode: 503"
    if "tcpSocket" in probe:
        return f"dial tcp :{probe['tcpSocket'].get('port')}: connect: connection refused"
    if "grpc" in probe:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return ""


def stretches(
    schedule: ProbeSchedule, answers: ProbeAnswers, begun: int, since: int
) -> list[ProbeStretch]:
    """All probes of a container that has begun at an instant and is probed ``since`` another."""
    first = max(begun + schedule.delay, since)
    edges = answers.edges()
    found: list[ProbeStretch] = []
    for place, edge in enumerate(edges):
        start = _next_probe(first, schedule.period, max(begun + edge, first))
        count = None
        if place + 1 < len(edges):
            end = _next_probe(first, schedule.period, max(begun + edges[place + 1], first))
            count = (end - start) // schedule.period
        if count != 0:
            found.append(ProbeStretch(start, count, answers.passes(edge)))
    return found


def _next_probe(first: int, period: int, at: int) -> int:
    """The first probe that is not before an instant."""
    return at + (first - at) % period


def flips(
    schedule: ProbeSchedule, row: Sequence[ProbeStretch], *, passed: bool | None
) -> Iterator[Flip]:
    """When as many answers in a row have come as change a kubelet's mind, which is ``passed``."""
    last, run = None, 0
    for stretch in row:
        run = run if stretch.passes is last else 0
        last = stretch.passes
        wanted = (schedule.successes if last else schedule.failures) - run
        reached = stretch.probes is None or stretch.probes >= wanted
        if last is not passed and wanted > 0 and reached:
            passed = last
            yield Flip(stretch.first + (wanted - 1) * schedule.period, last)
        run += stretch.probes or 0


def failures(
    schedule: ProbeSchedule, row: Sequence[ProbeStretch], after: int, until: int
) -> Iterator[int]:
    """Instants of probes that fail, after one instant and not after another."""
    for stretch in row:
        if stretch.passes:
            continue
        last = until
        if stretch.probes is not None:
            last = min(until, stretch.first + (stretch.probes - 1) * schedule.period)
        at = max(stretch.first, _next_probe(stretch.first, schedule.period, after + 1))
        while at <= last:
            yield at
            at += schedule.period
