"""Rows of pods: how many containers are ready, and the one word for their state."""

from collections.abc import Iterable
from dataclasses import dataclass

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    Cells,
    TableColumns,
    age,
    dig,
    human_duration,
    is_true,
    name_of,
    text,
    wide,
)
from kubescene.clock.timestamps import parse_time
from kubescene.types import JsonObject, Nanoseconds

_COMPLETED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def pod_row(pod: JsonObject, now: Nanoseconds) -> Cells:
    state = pod_state(pod)
    restarts = str(state.restarts.count)
    if state.restarts.count and state.restarts.last:
        restarts += f" ({human_duration(now - state.restarts.last)} ago)"
    return [
        name_of(pod),
        f"{state.ready}/{_total_containers(pod)}",
        state.reason,
        restarts,
        age(pod, now),
        _ip(pod),
        dig(pod, "spec.nodeName") or NONE,
        dig(pod, "status.nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


def row_conditions(pod: JsonObject) -> list[JsonObject]:
    phase = dig(pod, "status.phase", "")
    if phase not in _COMPLETED:
        return []
    message = _COMPLETED[phase]
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


@dataclass(slots=True)
class Restarts:
    """Restarts so far, and the instant of the last one (0 if none is known)."""

    count: int = 0
    last: Nanoseconds = 0

    def add(self, status: JsonObject) -> None:
        self.count += status.get("restartCount") or 0
        if finished := dig(status, "lastState.terminated.finishedAt"):
            self.last = max(self.last, parse_time(finished))


@dataclass(slots=True)
class PodSummary:
    """What the READY, STATUS and RESTARTS columns tell."""

    reason: str
    ready: int
    restarts: Restarts


def pod_state(pod: JsonObject) -> PodSummary:
    """Init containers speak first; once they are done, the last container with news does."""
    all_restarts, sidecar_restarts = Restarts(), Restarts()
    state = PodSummary(_scheduling_reason(pod), 0, all_restarts)
    init_reason = _follow_init_containers(pod, state, sidecar_restarts)
    state.reason = init_reason or state.reason
    if not init_reason or is_true(pod, "Initialized"):
        state.restarts = sidecar_restarts
        _follow_containers(pod, state)
    state.reason = _deletion_reason(pod) or state.reason
    return state


def _scheduling_reason(pod: JsonObject) -> str:
    for condition in dig(pod, "status.conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(dig(pod, "status.reason") or dig(pod, "status.phase", ""))


def _follow_init_containers(pod: JsonObject, state: PodSummary, sidecar_restarts: Restarts) -> str:
    """Why initialization is not over; empty if it is."""
    sidecars = _sidecars(pod)
    total = len(dig(pod, "spec.initContainers", ()))
    for position, status in enumerate(dig(pod, "status.initContainerStatuses", ())):
        is_sidecar = status.get("name") in sidecars
        state.restarts.add(status)
        if is_sidecar:
            sidecar_restarts.add(status)
        terminated = dig(status, "state.terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and status.get("started"):
            state.ready += bool(status.get("ready"))
            continue
        return _init_reason(status, f"{position}/{total}")
    return ""


def _init_reason(status: JsonObject, progress: str) -> str:
    terminated = dig(status, "state.terminated")
    if terminated is not None:
        return f"Init:{_termination(terminated)}"
    waiting = dig(status, "state.waiting.reason", "")
    return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else f"Init:{progress}"


def _follow_containers(pod: JsonObject, state: PodSummary) -> None:
    is_running, failure = False, ""
    for status in reversed(dig(pod, "status.containerStatuses", ())):
        state.restarts.add(status)
        terminated = dig(status, "state.terminated")
        if waiting := dig(status, "state.waiting.reason"):
            state.reason = waiting
        elif terminated is not None:
            state.reason = _termination(terminated)
            failure = state.reason if terminated.get("exitCode") else failure
        elif status.get("ready") and dig(status, "state.running") is not None:
            is_running = True
            state.ready += 1
    if state.reason == "Completed":
        state.reason = _partly_completed(pod, is_running=is_running, failure=failure)


def _partly_completed(pod: JsonObject, *, is_running: bool, failure: str) -> str:
    if is_running and is_true(pod, "Ready"):
        return "Running"
    return failure or ("NotReady" if is_running else "Completed")


def _termination(terminated: JsonObject) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _deletion_reason(pod: JsonObject) -> str:
    if dig(pod, "metadata.deletionTimestamp") is None:
        return ""
    if dig(pod, "status.reason") == "NodeLost":
        return "Unknown"
    return "" if dig(pod, "status.phase") in _COMPLETED else "Terminating"


def _total_containers(pod: JsonObject) -> int:
    return len(dig(pod, "spec.containers", ())) + len(_sidecars(pod))


def _sidecars(pod: JsonObject) -> list[str]:
    containers: Iterable[JsonObject] = dig(pod, "spec.initContainers", ())
    return [c.get("name", "") for c in containers if c.get("restartPolicy") == "Always"]


def _ip(pod: JsonObject) -> str:
    """The old single field wins where it contradicts the list."""
    addresses = dig(pod, "status.podIPs", ())
    first = addresses[0].get("ip") if addresses else ""
    return dig(pod, "status.podIP") or first or NONE


def _readiness_gates(pod: JsonObject) -> str:
    gates = dig(pod, "spec.readinessGates", ())
    passed = sum(is_true(pod, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


POD = TableColumns(
    (
        NAME,
        text("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        text("Status", "The aggregate status of the containers in this pod."),
        text(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last "
            "container in this pod has restarted.",
        ),
        AGE,
        wide("IP", "@core.v1.PodStatus.podIP"),
        wide("Node", "@core.v1.PodSpec.nodeName"),
        wide("Nominated Node", "@core.v1.PodStatus.nominatedNodeName"),
        wide("Readiness Gates", "@core.v1.PodSpec.readinessGates"),
    ),
    pod_row,
    row_conditions,
)
