"""What becomes of containers that end by themselves: exit codes, restarts, back-offs, deadlines.

`Lives.next_status` is asked about a pod that runs, whenever it is due, and says what its status is
now and when to ask again. Restarts wait as a kubelet lets them: the first begins at once, the next
10 s after the end before it, then twice as long each time up to 5 minutes, and from the beginning
after a container has run for 10 minutes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from kubescene.clock import MINUTE, SECOND, Streams, format_time, parse_time
from kubescene.clock.distributions import Distribution
from kubescene.controllers.kubelet.behaviour import PodBehaviour
from kubescene.controllers.kubelet.container_statuses import exited, restarted, waits
from kubescene.types import JsonObject

FIRST_BACK_OFF = 10 * SECOND
LONGEST_BACK_OFF = 5 * MINUTE
FORGOTTEN_AFTER = 2 * LONGEST_BACK_OFF
KILLED = 137
"""The exit code of a container that is not asked."""
READY_CONDITIONS = ("Ready", "ContainersReady")


class Course(NamedTuple):
    """What a pod's status becomes now (None: it stays), and when that is to be asked again."""

    status: JsonObject | None
    due: int | None


class BackOff(Struct, frozen=True):
    """How long the next restart of a container waits, and since when it is so."""

    wait: int
    since: int


class Lives:
    """The containers of all pods that have a behaviour, or a deadline."""

    def __init__(self, streams: Streams, ready_delay: int = 0) -> None:
        self._streams = streams
        self._ready_delay = ready_delay
        self._back_offs: dict[str, dict[str, BackOff]] = {}
        """By uid of the pod, then by container."""

    def forget(self, uid: str) -> None:
        self._back_offs.pop(uid, None)

    def next_status(self, pod: JsonObject, behaviour: PodBehaviour, now: int) -> Course:
        """What has become of a running pod until now."""
        deadline = deadline_of(pod)
        if deadline is not None and deadline <= now:
            return Course(deadline_exceeded(pod, now), None)
        before = pod["status"].get("containerStatuses") or []
        after, dues = [], [] if deadline is None else [deadline]
        for each in before:
            status, due = self._container(pod, behaviour, each, now)
            after.append(status)
            if due is not None:
                dues.append(due)
        phase = phase_of(pod, after)
        due = min(dues, default=None) if phase == "Running" else None
        return Course(told(pod, after, phase, now) if after != before else None, due)

    def _container(
        self, pod: JsonObject, behaviour: PodBehaviour, status: JsonObject, now: int
    ) -> tuple[JsonObject, int | None]:
        """What a container's status is by now, and when it changes next."""
        name, state = status["name"], status.get("state") or {}
        if (running := state.get("running")) is not None:
            begun = parse_time(running.get("startedAt") or format_time(now))
            ends = self._end(pod, behaviour, status, begun)
            if ends is None or ends > now:
                return self._readied(status, begun, ends, now)
            code = self._draw(pod, status, "exit-code", behaviour.of(name).exit_code) or 0
            status = exited(status, code, format_time(now))
            if not is_restarted(pod, code):
                return status, None
        elif "waiting" not in state or "terminated" not in (status.get("lastState") or {}):
            return status, None
        return self._restart(pod, behaviour, status, now)

    def _restart(
        self, pod: JsonObject, behaviour: PodBehaviour, status: JsonObject, now: int
    ) -> tuple[JsonObject, int | None]:
        """Let a container that has ended begin again, or wait for that."""
        state = status["state"].get("terminated") or status["lastState"]["terminated"]
        ended = parse_time(state["finishedAt"])
        back_offs = self._back_offs.setdefault(pod["metadata"]["uid"], {})
        known = back_offs.get(status["name"])
        if known is not None and ended - known.since > FORGOTTEN_AFTER:
            known = None
        if known is not None and ended + known.wait > now:
            return waits(status, pod, known.wait), ended + known.wait
        wait = FIRST_BACK_OFF if known is None else min(2 * known.wait, LONGEST_BACK_OFF)
        back_offs[status["name"]] = BackOff(wait, now)
        begun = restarted(status, format_time(now), ready=self._ready_delay == 0)
        return self._container(pod, behaviour, begun, now)

    def _readied(
        self, status: JsonObject, begun: int, ends: int | None, now: int
    ) -> tuple[JsonObject, int | None]:
        """A container that goes on running: it becomes ready in time."""
        if status.get("ready"):
            return status, ends
        ready = begun + self._ready_delay
        if ready <= now:
            return {**status, "ready": True}, ends
        return status, ready if ends is None else min(ready, ends)

    def _end(
        self, pod: JsonObject, behaviour: PodBehaviour, status: JsonObject, begun: int
    ) -> int | None:
        run_time = behaviour.of(status["name"]).run_time
        if run_time is None:
            return None
        drawn = self._draw(pod, status, "run-time", run_time)
        assert drawn is not None
        return begun + drawn

    def _draw(
        self, pod: JsonObject, status: JsonObject, what: str, amount: Distribution | None
    ) -> int | None:
        """An amount of one run of a container: the same, however often and by whom it is asked."""
        if amount is None:
            return None
        metadata = pod["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}@{metadata['creationTimestamp']}"
        run = f"{status['name']}/{status.get('restartCount', 0)}"
        return amount.draw(self._streams.single(f"pods/{name}/{run}/{what}"))


def is_restarted(pod: JsonObject, exit_code: int) -> bool:
    """Whether the pod's policy wants a container that ended so to begin again."""
    policy = pod["spec"].get("restartPolicy") or "Always"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def deadline_of(pod: JsonObject) -> int | None:
    """When a pod has been active for too long."""
    seconds, start = pod["spec"].get("activeDeadlineSeconds"), pod["status"].get("startTime")
    if seconds is None or start is None:
        return None
    return parse_time(start) + int(seconds) * SECOND


def deadline_exceeded(pod: JsonObject, now: int) -> JsonObject:
    """The status of a pod that is ended since its time is over."""
    time = format_time(now)
    statuses = pod["status"].get("containerStatuses") or []
    ended = [
        each if "terminated" in (each.get("state") or {}) else exited(each, KILLED, time)
        for each in statuses
    ]
    return {
        **told(pod, ended, "Failed", now),
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
    }


def phase_of(pod: JsonObject, statuses: Sequence[JsonObject]) -> str:
    """The phase of a pod whose containers have all been started once."""
    codes = [terminated_code(each) for each in statuses]
    if not statuses or None in codes:
        return "Running"
    if any(code is not None and is_restarted(pod, code) for code in codes):
        return "Running"
    return "Succeeded" if not any(codes) else "Failed"


def terminated_code(status: JsonObject) -> int | None:
    """The exit code of a container that has ended and does not wait to begin again."""
    ended = (status.get("state") or {}).get("terminated")
    return None if ended is None else int(ended.get("exitCode", 0))


def told(pod: JsonObject, statuses: list[JsonObject], phase: str, now: int) -> JsonObject:
    """What a kubelet writes of a pod whose containers are in these states."""
    unready = [each["name"] for each in statuses if not each.get("ready")]
    if phase == "Succeeded":
        reason = {"reason": "PodCompleted"}
    elif phase == "Failed":
        reason = {"reason": "PodFailed"}
    else:
        listed = " ".join(unready)
        message = f"containers with unready status: [{listed}]"
        reason = {"reason": "ContainersNotReady", "message": message}
    is_ready = phase == "Running" and not unready
    conditions = [
        condition(each, is_ready=is_ready, reason=reason, now=format_time(now))
        if each.get("type") in READY_CONDITIONS
        else each
        for each in pod["status"].get("conditions") or ()
    ]
    return {"phase": phase, "conditions": conditions, "containerStatuses": statuses}


def condition(before: JsonObject, *, is_ready: bool, reason: JsonObject, now: str) -> JsonObject:
    """A condition about readiness as it is now; its time changes with its status only."""
    status = str(is_ready)
    since = before.get("lastTransitionTime") if before.get("status") == status else now
    changed = {"type": before["type"], "status": status, "lastTransitionTime": since or now}
    return changed if is_ready else {**changed, **reason}
