"""What a new scenario takes away from an API server that is not ours, and whether it may.

A wipe is refused unless the namespace ``kube-system`` says that the cluster is disposable. Even
then what the server itself owns stays, and so does everything in the system namespaces that
Kubescene did not write, and whatever is marked to be kept.
"""

from kubescene.api.kinds import NAMESPACE
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource
from kubescene.errors import ScenarioError
from kubescene.registry.bootstrap import survives_wipe
from kubescene.types import JsonObject

DISPOSABLE = "kubescene.dev/disposable"
SYSTEM = "kube-system"
NAMESPACES = GroupResource("", "namespaces")
SYSTEM_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})

_GROUPS_OF_SERVER = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiregistration.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
    }
)
_RESOURCES_OF_SERVER = frozenset(
    {
        GroupResource("networking.k8s.io", "ipaddresses"),
        GroupResource("networking.k8s.io", "servicecidrs"),
    }
)
_OBJECTS_OF_SERVER = frozenset(
    {
        (GroupResource("", "services"), "default", "kubernetes"),
        (GroupResource("", "endpoints"), "default", "kubernetes"),
        (GroupResource("discovery.k8s.io", "endpointslices"), "default", "kubernetes"),
    }
)
_CERTIFICATES = (GroupResource("", "configmaps"), "kube-root-ca.crt")

NOT_DISPOSABLE = (
    f"a scenario begins by deleting all that is there, and this cluster does not allow that: its "
    f'namespace {SYSTEM} does not carry {DISPOSABLE}: "true". If nothing in it is worth keeping, '
    f"say so with: kubectl annotate namespace {SYSTEM} {DISPOSABLE}=true"
)


def check_disposable(system: JsonObject | None) -> None:
    """Raises unless the namespace ``kube-system``, as given, allows a wipe."""
    if not is_disposable(system):
        raise ScenarioError(NOT_DISPOSABLE)


def is_disposable(system: JsonObject | None) -> bool:
    """Whether an annotation or a label says so."""
    metadata = (system or {}).get("metadata") or {}
    said = (metadata.get("annotations"), metadata.get("labels"))
    return any((each or {}).get(DISPOSABLE) == "true" for each in said)


def survives(record: Record, obj: JsonObject, *, is_ours: bool) -> bool:
    """Whether a new scenario leaves this object of a real server alone."""
    if survives_wipe(record.resource, obj) or is_of_server(record):
        return True
    return record.namespace in SYSTEM_NAMESPACES and not is_ours


def is_of_server(record: Record) -> bool:
    """Whether a server made it for itself, and would make it again."""
    resource = record.resource
    return (
        resource.group in _GROUPS_OF_SERVER
        or resource in _RESOURCES_OF_SERVER
        or (resource, record.namespace, record.name) in _OBJECTS_OF_SERVER
        or (resource, record.name) == _CERTIFICATES
    )


def order_of_wipe(resource: GroupResource) -> tuple[bool, GroupResource]:
    """Namespaces go last: nothing is left in them then."""
    return resource == NAMESPACES, resource


def needs_release(obj: JsonObject) -> bool:
    """Whether finalizers would hold the object."""
    return bool(obj["metadata"].get("finalizers"))


def finalized(namespace: JsonObject) -> JsonObject:
    """A namespace that nothing holds any more."""
    gvk = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind}
    metadata = {"name": namespace["metadata"]["name"], "uid": namespace["metadata"]["uid"]}
    return {**gvk, "metadata": metadata, "spec": {"finalizers": []}}
