"""What a kubelet makes of the states of a pod's containers: restarts, the phase, the conditions."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from kubescene.types import JsonObject

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
RUNNING, PENDING, SUCCEEDED, FAILED = "Running", "Pending", "Succeeded", "Failed"
RESTARTING_ALL = "RestartingAllContainers"
"""Why containers end of a pod one of whose restart rules restarts them all."""
RESTART_ALL = "RestartAllContainers"
"""The action of such a rule."""
CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "AllContainersRestarting",
)
"""Those that are worked out here, in the order in which they are written."""


class ContainerProgress(Enum):
    """Where a container is, as far as the phase of its pod is concerned."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPED = "stopped"


class WantedCondition(NamedTuple):
    """A condition as it should be now."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""


def is_sidecar(container: JsonObject) -> bool:
    """Whether an init container is one that goes on beside the others."""
    return container.get("restartPolicy") == ALWAYS


def is_restarted(pod: JsonObject, container: JsonObject, exit_code: int) -> bool:
    """Whether a container that ended so is to begin again: by its rules, its policy, its pod's."""
    policy = container.get("restartPolicy")
    if policy is None:
        policy = pod["spec"].get("restartPolicy") or ALWAYS
    elif matching_rule(container, exit_code) is not None:
        return True
    return policy == ALWAYS or (policy == ON_FAILURE and exit_code != 0)


def matching_rule(container: JsonObject, exit_code: int) -> JsonObject | None:
    """The first of a container's restart rules that is about an exit code."""
    for rule in container.get("restartPolicyRules") or ():
        wanted = rule.get("exitCodes") or {}
        is_listed = exit_code in (wanted.get("values") or ())
        if wanted.get("operator") == ("In" if is_listed else "NotIn"):
            found: JsonObject = rule
            return found
    return None


def ended(status: JsonObject) -> JsonObject | None:
    """How a container has ended last, if it does not run."""
    state = status.get("state") or {}
    if "terminated" in state:
        found: JsonObject = state["terminated"]
        return found
    if "running" in state:
        return None
    last: JsonObject | None = (status.get("lastState") or {}).get("terminated")
    return last


def has_started(status: JsonObject) -> bool:
    """Whether a container runs, or has run."""
    return "running" in (status.get("state") or {}) or ended(status) is not None


def progress(status: JsonObject | None) -> ContainerProgress:
    if status is None:
        return ContainerProgress.UNKNOWN
    state = status.get("state") or {}
    if "running" in state:
        return ContainerProgress.RUNNING
    if ended(status) is not None:
        return ContainerProgress.STOPPED
    return ContainerProgress.WAITING if "waiting" in state else ContainerProgress.UNKNOWN


def phase_of(
    pod: JsonObject,
    statuses: Sequence[JsonObject],
    *,
    is_terminal: bool = False,
    is_initialized: bool = False,
) -> str:
    """The phase of a pod whose containers, init containers among them, are in these states.

    ``is_terminal``: none of them is restarted any more. ``is_initialized``: a container that is no
    init container runs.
    """
    known = {each["name"]: each for each in statuses}
    init = pod["spec"].get("initContainers") or ()
    pending, failed = _initialization(pod, init, known)
    if failed:
        return FAILED
    sidecars = [known.get(each["name"]) for each in init if is_sidecar(each)]
    if pending or (not is_initialized and any(map(_is_sidecar_pending, sidecars))):
        return PENDING
    mains = [(each, known.get(each["name"])) for each in pod["spec"]["containers"]]
    found = [progress(status) for _, status in mains]
    # Sidecars that have ended do not count.
    found += [each for each in map(progress, sidecars) if each is not ContainerProgress.STOPPED]
    if ContainerProgress.WAITING in found or ContainerProgress.UNKNOWN in found:
        return PENDING
    if ContainerProgress.RUNNING in found:
        return RUNNING
    stopped = [(each, status) for each, status in mains if status is not None]
    if not stopped:
        return PENDING
    if not is_terminal and any(_begins_again(pod, *each) for each in stopped):
        return RUNNING
    return SUCCEEDED if all(_has_succeeded(status) for _, status in stopped) else FAILED


def _begins_again(pod: JsonObject, container: JsonObject, status: JsonObject) -> bool:
    how = ended(status) or {}
    reason = how.get("reason")
    return reason == RESTARTING_ALL or is_restarted(pod, container, int(how.get("exitCode", 0)))


def _has_succeeded(status: JsonObject) -> bool:
    how = (status.get("state") or {}).get("terminated")
    return how is not None and int(how.get("exitCode", 0)) == 0


def _initialization(
    pod: JsonObject, init: Sequence[JsonObject], known: Mapping[str, JsonObject]
) -> tuple[bool, bool]:
    """Whether an init container that is no sidecar has still to run, and whether one has failed."""
    pending = failed = False
    for container in init:
        if is_sidecar(container):
            continue
        status = known.get(container["name"])
        if status is None or progress(status) is not ContainerProgress.STOPPED:
            pending = True
        elif _code(status) and not _begins_again(pod, container, status):
            failed = True
    return pending, failed


def _is_sidecar_pending(status: JsonObject | None) -> bool:
    if status is None:
        return False
    where = progress(status)
    return (
        where is ContainerProgress.WAITING
        or (where is ContainerProgress.RUNNING and not status.get("started"))
        or where is ContainerProgress.UNKNOWN
    )


def _code(status: JsonObject) -> int:
    return int((ended(status) or {}).get("exitCode", 0))


def conditions_told(
    pod: JsonObject, phase: str, init: Sequence[JsonObject], mains: Sequence[JsonObject]
) -> Iterator[WantedCondition]:
    """Whether a pod is initialized and ready, and why not."""
    containers_ready = _containers_ready(pod, phase, init, mains)
    yield _initialized(pod, phase, init, mains)
    yield containers_ready._replace(type="Ready") if not containers_ready.status else _ready(pod)
    yield containers_ready
    containers = (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
    if any(may_restart_all(each) for each in containers):
        yield _all_restarting(phase, (*init, *mains))


def may_restart_all(container: JsonObject) -> bool:
    """Whether the end of a container may restart all others of its pod."""
    rules = container.get("restartPolicyRules") or ()
    return any(each.get("action") == RESTART_ALL for each in rules)


def _all_restarting(phase: str, statuses: Sequence[JsonObject]) -> WantedCondition:
    name = "AllContainersRestarting"
    if phase in (SUCCEEDED, FAILED):
        return WantedCondition(name, False, "PodCompleted" if phase == SUCCEEDED else "PodFailed")
    states = [each.get("state") or {} for each in statuses]
    has_begun = any("running" in each for each in states)
    if not has_begun and any(
        (each.get("waiting") or {}).get("reason") == RESTARTING_ALL for each in states
    ):
        message = "container exited with restart policy rule"
        return WantedCondition(name, True, "RestartAllContainersStarted", message)
    return WantedCondition(name, False)


def _initialized(
    pod: JsonObject, phase: str, init: Sequence[JsonObject], mains: Sequence[JsonObject]
) -> WantedCondition:
    name = "Initialized"
    if phase == SUCCEEDED:
        return WantedCondition(name, True, "PodCompleted")
    if any(has_started(each) for each in mains):
        return WantedCondition(name, True)
    sidecars = {
        each["name"] for each in pod["spec"].get("initContainers") or () if is_sidecar(each)
    }
    missing = [
        each["name"]
        for each in init
        if not each.get("started" if each["name"] in sidecars else "ready")
    ]
    if not missing:
        return WantedCondition(name, True)
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return WantedCondition(name, False, "ContainersNotInitialized", message)


def _containers_ready(
    pod: JsonObject, phase: str, init: Sequence[JsonObject], mains: Sequence[JsonObject]
) -> WantedCondition:
    name = "ContainersReady"
    if phase in (SUCCEEDED, FAILED):
        return WantedCondition(name, False, "PodCompleted" if phase == SUCCEEDED else "PodFailed")
    sidecars = {
        each["name"] for each in pod["spec"].get("initContainers") or () if is_sidecar(each)
    }
    asked = [*(each for each in init if each["name"] in sidecars), *mains]
    unready = [each["name"] for each in asked if not each.get("ready")]
    if not unready:
        return WantedCondition(name, True)
    message = f"containers with unready status: [{' '.join(unready)}]"
    return WantedCondition(name, False, "ContainersNotReady", message)


def _ready(pod: JsonObject) -> WantedCondition:
    """Whether a pod whose containers are ready is so, too: its readiness gates say."""
    known = {each["type"]: each for each in pod["status"].get("conditions") or ()}
    closed = []
    for gate in pod["spec"].get("readinessGates") or ():
        wanted = gate["conditionType"]
        if wanted not in known:
            closed.append(
                f'corresponding condition of pod readiness gate "{wanted}" does not exist.'
            )
        elif (status := known[wanted].get("status")) != "True":
            closed.append(
                f'the status of pod readiness gate "{wanted}" is not "True", but {status}'
            )
    if closed:
        return WantedCondition("Ready", False, "ReadinessGatesNotReady", ", ".join(closed))
    return WantedCondition("Ready", True)


def with_conditions(
    before: Sequence[JsonObject], told: Sequence[WantedCondition], now: str
) -> list[JsonObject]:
    """A pod's conditions: a time changes only with its status, those of others stay."""
    known = {each.get("type"): each for each in before}
    made = [_condition(each, known.get(each.type), now) for each in told]
    return [*made, *(each for each in before if each.get("type") not in CONDITIONS)]


def _condition(told: WantedCondition, before: JsonObject | None, now: str) -> JsonObject:
    status = str(told.status)
    since = before.get("lastTransitionTime") if before and before.get("status") == status else now
    condition: dict[str, Any] = {
        "type": told.type,
        "status": status,
        "lastTransitionTime": since or now,
    }
    if told.reason:
        condition["reason"] = told.reason
    if told.message:
        condition["message"] = told.message
    return condition
