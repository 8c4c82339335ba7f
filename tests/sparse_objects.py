"""Objects with something left out: of every kind, whatever can be left out of a whole one.

The whole ones are in ``registry/data/full_objects.yaml``. Left out is each member in turn, at any
depth; each object and each item of a list is emptied in turn; and of every kind there is one with
a name alone. Of every kind with a status there is also a whole status, made up from its type, of
which likewise everything is left out in turn.
"""

import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubescene.api.builtin import builtin_scheme
from kubescene.api.schemas.builtin_types import ApiField, ApiType, api_type
from kubescene.api.scheme import GroupVersionKind

DATA = Path(__file__).parent / "registry" / "data"
WHOLE, OWN = DATA / "full_objects.yaml", DATA / "own_objects.yaml"
KEPT = frozenset({"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace"})
"""Without these it is not a sparse object but none."""


class Sparse(NamedTuple):
    """One object and how it was made: ``v1/Pod/a -spec.containers[0].name``."""

    label: str
    object: dict[str, Any]

    @property
    def title(self) -> str:
        """Kind and name of the whole object: ``v1/Pod/a``."""
        return self.label.partition(" ")[0]


@cache
def whole_objects() -> tuple[Sparse, ...]:
    """The objects of which nothing is left out."""
    found = yaml.safe_load(WHOLE.read_text())["objects"]
    return tuple(Sparse(_title(each), each) for each in found)


@cache
def own_objects() -> tuple[Sparse, ...]:
    """Whole objects of the kinds that come with Kubescene."""
    found = yaml.safe_load(OWN.read_text())["objects"]
    return tuple(Sparse(_title(each), each) for each in found)


@cache
def sparse_objects() -> tuple[Sparse, ...]:
    """All of them, the whole ones included, each once."""
    return (*_named_alone(), *(it for whole in whole_objects() for it in variants(whole)))


def _named_alone() -> Iterator[Sparse]:
    for resource_type in builtin_scheme():
        if "create" in resource_type.verbs:
            gvk = resource_type.gvk
            bare = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "a"}}
            yield Sparse(f"{gvk.api_version}/{gvk.kind} name-alone", bare)


@cache
def sparse_statuses() -> tuple[tuple[Sparse, Sparse], ...]:
    """Statuses with something left out, each beside the whole object that it is of."""
    with_status = {each.gvk for each in builtin_scheme() if each.has_status}
    found, seen = [], set()
    for whole in whole_objects():
        gvk = GroupVersionKind.of(whole.object["apiVersion"], whole.object["kind"])
        if gvk in with_status and gvk not in seen:
            seen.add(gvk)
            statuses = variants(Sparse(f"{whole.label} status", {"status": whole_status(gvk)}))
            found += [(whole, each) for each in statuses]
    return tuple(found)


def whole_status(gvk: GroupVersionKind) -> dict[str, Any]:
    """A status with every field of its type."""
    kind = api_type(gvk)
    assert kind is not None
    status = kind.fields["status"].element
    assert status is not None
    return _members(status, SAID | SAID_OF.get(gvk.kind, {}))


SCALARS = {"s": "a", "y": "YQ==", "i": 1, "l": 1, "f": 1.5, "b": True, "q": "1", "x": 1, "a": {}}
TIMES = {"t": "2026-01-01T00:00:00Z", "m": "2026-01-01T00:00:00.000000Z"}
SAID = {
    "ip": "1.2.3.4",
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "driver": "d.x",
    "pool": "p",
    "phase": "Running",
    "key": "k",
    "operator": "Exists",
    "encodingVersion": "v1",
    "decodableVersions": ["v1"],
    "servedVersions": ["v1"],
    "completedIndexes": "0",
    "resource": "pods",
    "effect": "NoSchedule",
}
"""What a field of some name may say; others say ``a``."""
_RESULT = {"request": "q", "driver": "d.x", "pool": "p", "device": "e"}
_TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
SAID_OF: dict[str, dict[str, Any]] = {
    "Namespace": {"phase": "Active"},
    "Node": {"declaredFeatures": ["A"]},
    "PersistentVolumeClaim": {
        "phase": "Bound",
        "allocatedResources": {"storage": "1Gi"},
        "allocatedResourceStatuses": {"storage": "NodeResizePending"},
    },
    "PersistentVolume": {"phase": "Bound"},
    "Pod": {
        "health": "Healthy",
        "hostIP": "1.2.3.4",
        "podIP": "1.2.3.4",
        "hostIPs": [{"ip": "1.2.3.4"}],
        "podIPs": [{"ip": "1.2.3.4"}],
    },
    "ResourceQuota": {"hard": {"cpu": "1"}, "used": {"cpu": "1"}},
    "Service": {"ipMode": "VIP"},
    "HorizontalPodAutoscaler": {
        "currentMetrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "current": {"averageUtilization": 1, "averageValue": "1"},
                },
            }
        ]
    },
    "Job": {"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]}},
    "CustomResourceDefinition": {
        "acceptedNames": {
            "plural": "things",
            "singular": "thing",
            "kind": "Thing",
            "listKind": "ThingList",
            "shortNames": ["t"],
            "categories": ["all"],
        },
        "storedVersions": ["v1"],
    },
    "ResourceClaim": {
        "allocation": {
            "devices": {"results": [_RESULT]},
            "nodeSelector": {"nodeSelectorTerms": [_TERM]},
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        },
        "devices": [
            {
                "driver": "d.x",
                "pool": "p",
                "device": "e",
                "data": {"a": 1},
                "networkData": {
                    "interfaceName": "i",
                    "ips": ["1.2.3.4/24"],
                    "hardwareAddress": "h",
                },
            }
        ],
    },
    "StorageVersionMigration": {"resourceVersion": "1"},
    "StorageVersion": {"commonEncodingVersion": "v1"},
}
"""The same where kinds differ."""
LEFT_OUT = frozenset(
    {
        "selector",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "qosClass",
        "certificate",
        "completionTime",
        "completedIndexes",
        "failedIndexes",
    }
)
"""What needs more than a status to be right."""


def _made_up(name: str, field: ApiField, said: dict[str, Any]) -> Any:
    shape = field.shape
    if name in said:
        return said[name]
    if shape.startswith("["):
        return [_made_up("", _inner(field), said)]
    if shape.startswith("{"):
        return {"a": _made_up("", _inner(field), said)}
    if shape == "#":
        assert field.element is not None
        return _members(field.element, said)
    return (SCALARS | TIMES)[shape]


def _members(kind: ApiType, said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _made_up(name, field, said)
        for name, field in kind.fields.items()
        if name not in LEFT_OUT
    }


def _inner(field: ApiField) -> ApiField:
    return ApiField(field.shape[1:], field.element)


def variants(whole: Sparse) -> Iterator[Sparse]:
    yield whole
    for steps in _places(whole.object):
        path = _spelled(steps)
        if path in KEPT:
            continue
        if isinstance(steps[-1], str):
            yield Sparse(f"{whole.label} -{path}", _without(whole.object, steps))
        found = _at(whole.object, steps)
        if isinstance(found, dict | list) and found:
            yield Sparse(f"{whole.label} {path}={type(found)()}", _emptied(whole.object, steps))


def _places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where there is something, from the outside in."""
    if not isinstance(value, dict | list):
        return
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*above, key)
        yield from _places(child, (*above, key))


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _without(obj: dict[str, Any], steps: tuple[str | int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = pickle.loads(pickle.dumps(obj))
    del _at(made, steps[:-1])[steps[-1]]
    return made


def _emptied(obj: dict[str, Any], steps: tuple[str | int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = pickle.loads(pickle.dumps(obj))
    holder = _at(made, steps[:-1])
    holder[steps[-1]] = type(holder[steps[-1]])()
    return made


def _title(obj: dict[str, Any]) -> str:
    return "/".join((obj["apiVersion"], obj["kind"], obj["metadata"].get("name", "-")))


def _spelled(steps: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")
