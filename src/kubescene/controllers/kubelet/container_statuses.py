"""Statuses of containers as the kubelet stand-in writes them.

A container's resources are told from the first change of its pod on. Before, they are those of the
spec, and telling so for every pod would cost more than it says.
"""

from kubescene.durations import go_duration
from kubescene.types import JsonObject


def container_status(container: JsonObject, now: str, *, ready: bool) -> JsonObject:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
    }


def terminated(status: JsonObject, now: str) -> JsonObject:
    """A container's status after it has ended well."""
    began = ((status.get("state") or {}).get("running") or {}).get("startedAt", now)
    state = {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": now}
    return {**status, "ready": False, "started": False, "state": {"terminated": state}}


def debugged(pod: JsonObject, now: str) -> JsonObject:
    """What changes in the status of a running pod that gets ephemeral containers."""
    told = pod["status"].get("ephemeralContainerStatuses") or []
    known = {it["name"] for it in told}
    added = [
        container_status(it, now, ready=False)
        for it in pod["spec"].get("ephemeralContainers") or ()
        if it["name"] not in known
    ]
    return {"ephemeralContainerStatuses": [*told, *added]} if added else {}


def with_resources(statuses: list[JsonObject], pod: JsonObject) -> list[JsonObject]:
    """The statuses of a pod's containers with what these were given, if that was ever changed."""
    if generation_of(pod) < 2:
        return statuses
    asked = {it["name"]: it.get("resources") or {} for it in pod["spec"]["containers"]}
    return [it if "resources" in it else granted(it, asked.get(it["name"], {})) for it in statuses]


def granted(status: JsonObject, resources: JsonObject) -> JsonObject:
    known = {key: value for key, value in status.items() if key != "allocatedResources"}
    requests = resources.get("requests")
    allocated = {"allocatedResources": requests} if requests else {}
    return {**known, **allocated, "resources": resources}


def generation_of(pod: JsonObject) -> int:
    return int(pod["metadata"].get("generation", 0))


def exited(status: JsonObject, code: int, now: str, reason: str = "Error") -> JsonObject:
    """A container's status after it has ended with an exit code, and why, if that is not zero."""
    ended = terminated(status, now)
    state = ended["state"]["terminated"]
    if code:
        state = {**state, "exitCode": code, "reason": reason}
    return {**ended, "state": {"terminated": state}}


def waiting(container: JsonObject, reason: str) -> JsonObject:
    """A container's status before it has been started for the first time."""
    status = container_status(container, "", ready=False)
    return {**status, "started": False, "state": {"waiting": {"reason": reason}}}


def waits_for(status: JsonObject, reason: str, message: str = "") -> JsonObject:
    """A container's status while something keeps it from being started."""
    state = status.get("state") or {}
    last = {"terminated": state["terminated"]} if "terminated" in state else status["lastState"]
    told = {"reason": reason, "message": message} if message else {"reason": reason}
    changed = {"ready": False, "started": False, "state": {"waiting": told}, "lastState": last}
    return {**status, **changed}


def first_started(status: JsonObject, now: str) -> JsonObject:
    """A container's status when it runs for the first time."""
    state = {"running": {"startedAt": now}}
    return {**status, "ready": False, "started": True, "state": state}


def not_located(status: JsonObject) -> JsonObject:
    """A container's status if its pod has ended before it was started."""
    state = {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }
    return {**status, "ready": False, "started": False, "state": {"terminated": state}}


def restarted(status: JsonObject, now: str, *, ready: bool) -> JsonObject:
    """A container's status when it begins once more."""
    last = status["state"] if "terminated" in status["state"] else status["lastState"]
    return {
        **status,
        "ready": ready,
        "started": True,
        "restartCount": int(status.get("restartCount", 0)) + 1,
        "state": {"running": {"startedAt": now}},
        "lastState": last,
    }


def waits(status: JsonObject, pod: JsonObject, wait: int) -> JsonObject:
    """A container's status while its next start is put off."""
    if "waiting" in status["state"]:
        return status
    metadata = pod["metadata"]
    whose = f"container={status['name']} pod={metadata['name']}_{metadata['namespace']}"
    message = f"back-off {go_duration(wait)} restarting failed {whose}({metadata['uid']})"
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    return {**status, "state": state, "lastState": status["state"]}
