"""What a kubelet says in Events of what it does with containers."""

from kubescene.recording import NORMAL, Notice, regarding
from kubescene.types import JsonObject

KUBELET = "kubelet"
"""The stand-in's name."""


def started(pod: JsonObject) -> list[Notice]:
    """What a kubelet says of containers whose images it has already."""
    said = []
    for container in pod["spec"]["containers"]:
        name, image = container["name"], container.get("image", "")
        there = f'Container image "{image}" already present on machine'
        said += [
            notice(pod, name, "Pulled", f"{there} and can be accessed by the pod"),
            notice(pod, name, "Created", "Container created"),
            notice(pod, name, "Started", "Container started"),
        ]
    return said


def stopping(pod: JsonObject) -> list[Notice]:
    """What it says of those that it stops; nothing, if they never ran."""
    if pod["status"].get("phase") != "Running":
        return []
    names = [container["name"] for container in pod["spec"]["containers"]]
    return [notice(pod, name, "Killing", f"Stopping container {name}") for name in names]


def notice(pod: JsonObject, container: str, reason: str, message: str) -> Notice:
    about = regarding(pod, f"spec.containers{{{container}}}")
    return Notice(about, NORMAL, reason, message, KUBELET, host=pod["spec"]["nodeName"])
