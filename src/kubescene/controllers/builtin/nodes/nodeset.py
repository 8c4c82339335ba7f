"""NodeSets: KEP-140's example of a controller that works before the scheduling starts.

A NodeSet is to Nodes what a ReplicaSet is to Pods: ``spec.replicas`` nodes made from
``spec.template``, named ``<set>-0``, ``<set>-1`` ... Scaled down, those with the highest numbers
go. Nodes that somebody else created are left alone: a name that is taken is told in the status.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from kubescene.api.kinds import NODE
from kubescene.api.options import WriteOptions
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.templates import Blueprint, HostBlueprint, named, says_host
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.authoring import ObjectReconciler, controller_of
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Write,
)
from kubescene.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    InvalidError,
    NotFoundError,
)
from kubescene.types import JsonObject

GROUP = "kubescene.dev"
NODE_SET = GroupVersionKind(GROUP, "v1alpha1", "NodeSet")
LABEL = f"{GROUP}/node-set"
BURST = 500
"""So many nodes are made or deleted in one pass, as a ReplicaSet does with pods."""
REFUSALS = (AlreadyExistsError, BadRequestError, InvalidError)

_COUNT: JsonObject = {"type": "integer", "minimum": 0, "maximum": 100_000}
_KEPT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPEC: JsonObject = {
    "type": "object",
    "description": "How many nodes, and what they are like.",
    "required": ["template"],
    "properties": {
        "replicas": {**_COUNT, "default": 1, "description": "How many nodes there should be."},
        "template": {
            "type": "object",
            "description": "The nodes: metadata.labels, metadata.annotations, spec and status.",
            "properties": {
                "metadata": {
                    "type": "object",
                    "properties": {
                        name: {"type": "object", "additionalProperties": {"type": "string"}}
                        for name in ("labels", "annotations")
                    },
                },
                "spec": _KEPT,
                "status": _KEPT,
            },
        },
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "replicas": {**_COUNT, "description": "How many nodes there are."},
        "observedGeneration": {"type": "integer"},
        "message": {"type": "string", "description": "Why there are no more."},
    },
}
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"nodesets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": NODE_SET.kind,
            "listKind": "NodeSetList",
            "plural": "nodesets",
            "singular": "nodeset",
        },
        "versions": [
            {
                "name": NODE_SET.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
                ],
            }
        ],
    },
}


class NodeSetReconciler(ObjectReconciler):
    """Keeps every NodeSet at ``spec.replicas``. It remembers which nodes belong to which set."""

    name = "nodeset"
    kinds = (NODE_SET, NODE)
    definitions = (DEFINITION,)

    def __init__(self) -> None:
        self._nodes: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._sets: dict[str, ObjectKey] = {}
        self._failures: dict[ObjectKey, str] = {}

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record, gone = change.record, change.type is ChangeType.DELETED
        key = ObjectKey(record.namespace, record.name)
        if record.resource.resource != "nodes":
            if gone:
                self._sets.pop(record.uid, None)
            else:
                self._sets[record.uid] = key
            return (key,)
        if not record.owner or change.type is ChangeType.MODIFIED:
            return ()
        if gone:
            self._nodes[record.owner].pop(record.name, None)
        else:
            self._nodes[record.owner][record.name] = None
        return (self._sets[record.owner],) if record.owner in self._sets else ()

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        node_set = _found(key, reader)
        if node_set is None or node_set["metadata"].get("deletionTimestamp"):
            self._failures.pop(key, None)
            return NOTHING
        nodes = self._nodes[node_set["metadata"]["uid"]]
        if writes := changes(node_set, nodes):
            return Plan(writes[:BURST])
        return Plan(self._status(key, node_set))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A node that cannot be made is told in the status, not the end of everything."""
        del now
        if isinstance(error, NotFoundError):
            return NOTHING
        node_set = _found(key, reader)
        if node_set is None or not isinstance(write, Create) or not isinstance(error, REFUSALS):
            raise error
        self._failures[key] = error.message
        return Plan(self._status(key, node_set))

    def _status(self, key: ObjectKey, node_set: JsonObject) -> list[Write]:
        status: JsonObject = {
            "replicas": len(self._nodes[node_set["metadata"]["uid"]]),
            "observedGeneration": node_set["metadata"].get("generation", 0),
            "message": self._failures.pop(key, None),
        }
        told = node_set.get("status") or {}
        if all(told.get(name) == value for name, value in status.items()):
            return []
        ref = ObjectRef(NODE_SET, key.name)
        return [Patch(ref, {"status": status}, subresource="status")]


def changes(node_set: JsonObject, nodes: Collection[str]) -> list[Write]:
    """What is missing, or too much: numbers below ``replicas`` are filled, the highest go first."""
    wanted = node_set["spec"].get("replicas", 1)
    prefix = node_set["metadata"]["name"]
    names = {f"{prefix}-{number}": None for number in range(wanted)}
    missing = [name for name in names if name not in nodes]
    surplus = sorted((name for name in nodes if name not in names), key=by_number, reverse=True)
    return [
        *created(node_set, missing[:BURST]),
        *(Delete(ObjectRef(NODE, name)) for name in surplus),
    ]


def created(node_set: JsonObject, names: Iterable[str]) -> Iterator[Create]:
    """The nodes of these names, all of them alike."""
    body = made_from(node_set, "")
    is_host = says_host(body)
    blueprint = HostBlueprint(body) if is_host else Blueprint(body)
    options = WriteOptions(blueprint=blueprint)
    for name in names:
        yield Create(named(body, name, is_host=is_host), options=options)


def by_number(name: str) -> tuple[int, str]:
    number = name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else -1, name)


def made_from(node_set: JsonObject, name: str) -> JsonObject:
    """One node of the set. It says which host it is, as nodes do."""
    template = node_set["spec"]["template"]
    given = template.get("metadata") or {}
    labels = {"kubernetes.io/hostname": name, LABEL: node_set["metadata"]["name"]}
    metadata: JsonObject = {
        "name": name,
        "labels": {**labels, **(given.get("labels") or {})},
        "ownerReferences": [controller_of(node_set)],
    }
    if annotations := given.get("annotations"):
        metadata["annotations"] = annotations
    parts = {part: template[part] for part in ("spec", "status") if part in template}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **parts}


def _found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    """The set; None if it is gone, or its kind is: somebody may delete the definition."""
    try:
        return reader.find(ObjectRef(NODE_SET, key.name))
    except BadRequestError:
        return None
