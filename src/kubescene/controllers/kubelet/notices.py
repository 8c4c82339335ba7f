"""What a kubelet says in Events of what it does with containers."""

from collections.abc import Iterator

from kubescene.clock import MILLISECOND
from kubescene.durations import go_duration
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

KUBELET = "kubelet"
"""The stand-in's name."""


def started(pod: JsonObject) -> list[Notice]:
    """What a kubelet says of containers whose images it has already."""
    return [
        told
        for container in pod["spec"]["containers"]
        for told in (present(pod, container), *begun(pod, container))
    ]


def present(pod: JsonObject, container: JsonObject) -> Notice:
    there = f'Container image "{container.get("image", "")}" already present on machine'
    return notice(pod, container["name"], "Pulled", f"{there} and can be accessed by the pod")


def begun(pod: JsonObject, container: JsonObject) -> Iterator[Notice]:
    yield notice(pod, container["name"], "Created", "Container created")
    yield notice(pod, container["name"], "Started", "Container started")


def pulling(pod: JsonObject, container: JsonObject) -> Notice:
    return notice(
        pod, container["name"], "Pulling", f'Pulling image "{container.get("image", "")}"'
    )


def pulled(pod: JsonObject, container: JsonObject, time: int, waited: int, size: int) -> Notice:
    took, in_all = (go_duration(each - each % MILLISECOND) for each in (time, waited))
    said = f'Successfully pulled image "{container.get("image", "")}" in {took}'
    size_said = f"({in_all} including waiting). Image size: {size} bytes."
    return notice(pod, container["name"], "Pulled", f"{said} {size_said}")


def pull_failed(pod: JsonObject, container: JsonObject, error: str) -> Iterator[Notice]:
    said = f'Failed to pull image "{container.get("image", "")}": {error}'
    yield notice(pod, container["name"], "Failed", said, WARNING)
    yield notice(pod, container["name"], "Failed", "Error: ErrImagePull", WARNING)


def pull_backs_off(pod: JsonObject, container: JsonObject) -> Iterator[Notice]:
    said = f'Back-off pulling image "{container.get("image", "")}"'
    yield notice(pod, container["name"], "BackOff", said)
    yield notice(pod, container["name"], "Failed", "Error: ImagePullBackOff", WARNING)


def never_pulled(pod: JsonObject, container: JsonObject, message: str) -> Iterator[Notice]:
    yield notice(pod, container["name"], "ErrImageNeverPull", message, WARNING)
    yield notice(pod, container["name"], "Failed", "Error: ErrImageNeverPull", WARNING)


def backs_off(pod: JsonObject, name: str) -> Notice:
    metadata = pod["metadata"]
    whose = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    said = f"Back-off restarting failed container {name} in pod {whose}"
    return notice(pod, name, "BackOff", said, WARNING)


def stopping(pod: JsonObject) -> list[Notice]:
    """What it says of those that it stops; nothing, if they never ran."""
    status = pod["status"]
    told = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    running = [each["name"] for each in told if "running" in (each.get("state") or {})]
    if not told and status.get("phase") == "Running":
        running = [container["name"] for container in pod["spec"]["containers"]]
    return [killing(pod, name) for name in running]


def killing(pod: JsonObject, name: str, message: str = "") -> Notice:
    return notice(pod, name, "Killing", message or f"Stopping container {name}")


def notice(
    pod: JsonObject, container: str, reason: str, message: str, kind: str = NORMAL
) -> Notice:
    init = pod["spec"].get("initContainers") or ()
    field = "initContainers" if any(each["name"] == container for each in init) else "containers"
    about = regarding(pod, f"spec.{field}{{{container}}}")
    return Notice(about, kind, reason, message, KUBELET, host=pod["spec"]["nodeName"])


def of_pod(pod: JsonObject, reason: str, message: str, kind: str = NORMAL) -> Notice:
    return Notice(regarding(pod), kind, reason, message, KUBELET, host=pod["spec"]["nodeName"])
