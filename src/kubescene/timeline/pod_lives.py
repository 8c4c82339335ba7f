"""What the status of a pod tells of its containers: that they have ended, or begun once more.

Most writes of a status tell neither. So what was sent is looked at first, and the pod is decoded
only where there is something to tell.
"""

from collections.abc import Iterator
from typing import Any

from kubescene.api.records import Record
from kubescene.instruments import ObjectWrite
from kubescene.types import JsonObject

FINAL_PHASES = ("Succeeded", "Failed")
"""Of pods that are through: what they asked for is free again."""


def named(pod: Record) -> dict[str, str]:
    """What every fact about the life of a pod says."""
    return {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "node": pod.node}


def has_finished(write: ObjectWrite) -> bool:
    """Whether a pod whose phase is final came to that by this write."""
    return write.previous is None or write.previous.phase not in FINAL_PHASES


def final_state(pod: Record) -> dict[str, Any]:
    """How a pod has ended."""
    status = pod.decode().get("status") or {}
    containers = status.get("containerStatuses") or ()
    codes = [code for code in map(exit_code, containers) if code is not None]
    return {
        "phase": pod.phase,
        "reason": status.get("reason") or "",
        "exit_code": next(filter(None, codes), 0) if codes else None,
        "restarts": restarts(containers),
    }


def told_containers(write: ObjectWrite) -> Any:
    """Containers that have begun more than once, if the writer says so; else nothing."""
    body = write.body if isinstance(write.body, dict) else write.record.decode()
    listed = (body.get("status") or {}).get("containerStatuses") or ()
    return [each for each in listed if each.get("restartCount")]


def restarted_containers(write: ObjectWrite, told: list[JsonObject]) -> Iterator[dict[str, Any]]:
    """Of these, what a `PodRestarted` says of each that has begun since the state before."""
    before = write.previous.decode() if write.previous is not None else {}
    known = {
        each["name"]: each.get("restartCount", 0)
        for each in (before.get("status") or {}).get("containerStatuses") or ()
    }
    total = sum(known.values())
    for each in told:
        since = each["restartCount"] - known.get(each["name"], 0)
        if since > 0:
            total += since
            last = (each.get("lastState") or {}).get("terminated") or {}
            yield {
                "container": each["name"],
                "restarts": total,
                "exit_code": last.get("exitCode"),
                "reason": last.get("reason") or "",
            }


def restarts(containers: Any) -> int:
    """How often containers have begun once more."""
    return sum(each.get("restartCount", 0) for each in containers)


def exit_code(container: JsonObject) -> int | None:
    """With which a container has ended."""
    ended = (container.get("state") or {}).get("terminated")
    return None if ended is None else int(ended.get("exitCode", 0))
