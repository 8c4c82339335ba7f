"""Who waits and why: pods with the same message are one group, and its reasons are counted."""

import re
from collections.abc import Iterable

from kubescene.reports.amounts import seconds, told_duration
from kubescene.reports.html.contents import LateBinding, Reason, WaitingView
from kubescene.reports.words import counted
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PENDING, PodEntry

GROUPS = 30
NAMED = 40
LATE = 10
_COUNTED = re.compile(r"0/(?P<nodes>\d+) nodes are available: (?P<said>.*)", re.DOTALL)
_PART = re.compile(r"(\d+) (.+?)(?:, (?=\d+ )|$)", re.DOTALL)
_AFTER = re.compile(r"\.(?: (?=[^\d\s])|$)")


def waiting_of(ledger: Ledger) -> list[PodEntry]:
    """Pods that have no node at the end, in the order of their creation."""
    return [pod for pod in ledger.pods if pod.state == PENDING]


def grouped(pods: Iterable[PodEntry]) -> list[tuple[str, list[PodEntry]]]:
    """By message, the largest group first."""
    groups: dict[str, list[PodEntry]] = {}
    for pod in pods:
        groups.setdefault(why(pod), []).append(pod)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def why(pod: PodEntry) -> str:
    """The message of the last attempt, or why there was none."""
    if pod.message:
        return pod.message
    if pod.gates:
        return f"it waits for its scheduling gates: {', '.join(pod.gates)}"
    return f"no scheduler has tried to place it (schedulerName {pod.scheduler!r})"


def told_group(message: str, pods: list[PodEntry], decision: int | None) -> WaitingView:
    nodes, reasons, rest = parted(message)
    return WaitingView(
        message=message,
        total=len(pods),
        pods=tuple(pod.pod for pod in pods[:NAMED]),
        attempts=max(pod.attempts for pod in pods),
        nodes=nodes,
        reasons=reasons,
        rest=rest,
        decision=decision,
    )


def parted(message: str) -> tuple[int, tuple[Reason, ...], str]:
    """A scheduler's message as how many nodes there are, what they said, and the rest.

    Without reasons if the message is not of that form, or if putting them together again would not
    give it back.
    """
    found = _COUNTED.fullmatch(message)
    if found is None:
        return 0, (), ""
    said, _, rest = _AFTER.sub("\n", found["said"], count=1).partition("\n")
    parts = [Reason(int(count), text) for count, text in _PART.findall(said)]
    if ", ".join(f"{part.nodes} {part.text}" for part in parts) != said:
        return 0, (), ""
    parts.sort(key=lambda part: -part.nodes)
    return int(found["nodes"]), tuple(parts), rest


def late_of(ledger: Ledger) -> list[PodEntry]:
    """Pods that were bound after a failed attempt or a while; who waited longest comes first."""
    waited = [
        pod
        for pod in ledger.pods
        if pod.bound_time is not None and (pod.failed_attempts or pod.bound_time > pod.created_time)
    ]
    waited.sort(key=lambda pod: (*_span(pod), pod.failed_attempts), reverse=True)
    return waited


def _span(pod: PodEntry) -> tuple[int, int]:
    bound = pod.bound_step or pod.created_step
    time = (pod.bound_time or pod.created_time) - pod.created_time
    return time, bound.major - pod.created_step.major


def told_late(pod: PodEntry) -> LateBinding:
    time, steps = _span(pod)
    waited = (
        told_duration(seconds(time)) if time else (counted(steps, "step") if steps else "a moment")
    )
    return LateBinding(
        pod=pod.pod,
        node=pod.node,
        waited=waited,
        attempts=pod.attempts,
        created=str(pod.created_step),
        bound=str(pod.bound_step),
    )
