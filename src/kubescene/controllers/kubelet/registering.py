"""How a kubelet registers its node: labels by which pods are told where to go, and what it runs.

What the author of a node says already stays. In a served world only: the nodes of a scenario are
those of its file, to the last label.
"""

from collections.abc import Iterator

from kubescene.api.validation.names import label_value
from kubescene.client import ObjectRef
from kubescene.controllers.reconcile import Patch
from kubescene.types import JsonObject
from kubescene.version import KUBERNETES_VERSION, __version__

HOSTNAME, OS, ARCHITECTURE = (f"kubernetes.io/{each}" for each in ("hostname", "os", "arch"))
BETA = "beta."
"""Before the last two: names that kubelets still write beside them."""
USUAL_OS, USUAL_ARCHITECTURE = "linux", "amd64"


def registration(ref: ObjectRef, node: JsonObject) -> Iterator[Patch]:
    """What a kubelet writes of its node when it comes up."""
    if labels := labels_of(node):
        yield Patch(ref, {"metadata": {"labels": labels}})
    if status := status_of(node):
        yield Patch(ref, {"status": status}, subresource="status")


def labels_of(node: JsonObject) -> dict[str, str]:
    """The labels that a kubelet adds, without what can be no label, such as too long a name."""
    known = node["metadata"].get("labels") or {}
    info = (node.get("status") or {}).get("nodeInfo") or {}
    system = known.get(OS) or info.get("operatingSystem") or USUAL_OS
    machine = known.get(ARCHITECTURE) or info.get("architecture") or USUAL_ARCHITECTURE
    usual = {
        BETA + ARCHITECTURE: machine,
        BETA + OS: system,
        ARCHITECTURE: machine,
        HOSTNAME: node["metadata"]["name"],
        OS: system,
    }
    return {
        name: value for name, value in usual.items() if name not in known and not label_value(value)
    }


def status_of(node: JsonObject) -> JsonObject:
    """What it adds to the status: what the machine is. (Addresses are told by `addresses`.)"""
    labels = labels_of(node) | (node["metadata"].get("labels") or {})
    status, uid = node.get("status") or {}, node["metadata"]["uid"]
    known = {name: value for name, value in (status.get("nodeInfo") or {}).items() if value}
    info = {
        "machineID": uid.replace("-", ""),
        "systemUUID": uid,
        "bootID": uid,
        "kernelVersion": "6.12.0-kubescene",
        "osImage": f"Kubescene {__version__}",
        "containerRuntimeVersion": f"kubescene://{__version__}",
        "kubeletVersion": KUBERNETES_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": labels.get(OS, USUAL_OS),
        "architecture": labels.get(ARCHITECTURE, USUAL_ARCHITECTURE),
    }
    if all(name in known for name, value in info.items() if value):
        return {}
    return {"nodeInfo": info | known}
