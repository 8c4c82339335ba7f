"""What a new API server holds before anybody speaks to it, and what survives a wipe."""

from kubescene.actors import ENGINE
from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.policies.resources import RESOURCES as POLICIES
from kubescene.registry.interface import Registry
from kubescene.types import JsonObject

KEEP_ANNOTATION = "kubescene.dev/keep"

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
SYSTEM_PRIORITIES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}

NAMESPACES = GroupResource("", "namespaces")
PRIORITY_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
SCENARIOS = GroupResource("simulation.kube-scheduler-simulator.x-k8s.io", "scenarios")
LASTING = frozenset(
    {
        GroupResource("apiextensions.k8s.io", "customresourcedefinitions"),
        GroupResource("apiregistration.k8s.io", "apiservices"),
        GroupResource("rbac.authorization.k8s.io", "clusterroles"),
        GroupResource("rbac.authorization.k8s.io", "clusterrolebindings"),
        GroupResource("rbac.authorization.k8s.io", "roles"),
        GroupResource("rbac.authorization.k8s.io", "rolebindings"),
        *POLICIES,
        GroupResource("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        GroupResource("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    }
)
"""What the API server works with: it survives a wipe, unless a scenario made it."""


def bootstrap(registry: Registry) -> None:
    """Create the system namespaces, their service accounts and the system priority classes.

    Those that a restored world has stay as they are.
    """
    for name in SYSTEM_NAMESPACES:
        if registry.store.get(NAMESPACES, "", name) is None:
            registry.create(ENGINE, namespace(name))
    for name, (value, description) in SYSTEM_PRIORITIES.items():
        if registry.store.get(PRIORITY_CLASSES, "", name) is None:
            registry.create(ENGINE, priority_class(name, value, description))


def survives_wipe(resource: GroupResource, obj: JsonObject, *, of_a_scenario: bool = False) -> bool:
    """Whether a new scenario leaves this object alone; one ``of_a_scenario`` was made by another.

    What happens in a scenario must not depend on which ones were played before.
    """
    metadata = obj["metadata"]
    name = metadata["name"]
    if (metadata.get("annotations") or {}).get(KEEP_ANNOTATION) == "true":
        return True
    if resource == SCENARIOS:
        return True
    if resource in LASTING:
        return not of_a_scenario
    if resource == NAMESPACES:
        return name in SYSTEM_NAMESPACES
    if resource == GroupResource("", "serviceaccounts"):
        return metadata.get("namespace") in SYSTEM_NAMESPACES and name == "default"
    if resource == PRIORITY_CLASSES:
        return name in SYSTEM_PRIORITIES
    return False


def namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def priority_class(name: str, value: int, description: str) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description,
    }
