"""What autoscalers decided, put in order for people."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from kubescene.clock import MINUTE
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.world.decisions import AutoscalerDecision, SizeDecision

START = 2 * MINUTE
"""So long after its start a world may have no metrics, and nobody wonders."""


def kept_for(
    decisions: Sequence[AutoscalerDecision],
) -> list[tuple[str, list[AutoscalerDecision]]]:
    """Decisions that left the number as it was, by their reasons: the most frequent first."""
    by_reason: dict[str, list[AutoscalerDecision]] = {}
    for each in decisions:
        if each.after == each.before:
            by_reason.setdefault(each.reason, []).append(each)
    return sorted(by_reason.items(), key=lambda item: -len(item[1]))


def early_failures(decisions: Sequence[AutoscalerDecision]) -> int:
    """How many decisions failed before there were metrics for the first time; 0 if for long."""
    failed = list(takewhile(lambda each: "error" in each.details, decisions))
    ended = len(failed) < len(decisions) and bool(failed) and failed[-1].time < START
    return len(failed) if ended else 0


class Reserved(NamedTuple):
    """What all replicas request together from ``time`` on: millicores, bytes, and how many."""

    time: int
    cpu: int
    memory: int
    replicas: int


def reserved_over_time(result: TrafficResult) -> list[Reserved]:
    """From launch to end. Until its last resize a replica is shown with its mean CPU before."""
    changes: dict[int, list[tuple[int, int, int]]] = {}
    for each in result.replicas:
        memory, cpu, since = each.memory, each.cpu, each.launched_at
        if each.resized_at > since:
            cpu = each.cpu_before // (each.resized_at - since)
            changes.setdefault(each.resized_at, []).append((each.cpu - cpu, 0, 0))
        changes.setdefault(since, []).append((cpu, memory, 1))
        if each.terminated_at >= 0:
            changes.setdefault(each.terminated_at, []).append((-each.cpu, -memory, -1))
    found, held = [], [0, 0, 0]
    for time in sorted(changes):
        for change in changes[time]:
            held = [level + more for level, more in zip(held, change, strict=True)]
        found.append(Reserved(time, *held))
    return found


def size_changes(sizes: Sequence[SizeDecision]) -> list[SizeDecision]:
    """Recommendations of another target than the one before, and those that moved somebody."""
    found: list[SizeDecision] = []
    targets: list[tuple[str, int]] = []
    for each in sizes:
        own = [(part.resource_name, part.target) for part in each.resources]
        if own != targets or each.evicted or each.resized:
            found.append(each)
        targets = own
    return found
