"""The parts of a pod that plugins sign: pods that are signed alike may be scheduled as a batch.

Order does not matter where plugins do not look at it. What no plugin of a profile signs may differ
from pod to pod.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.types import ReadOnlyObject

Part: TypeAlias = Mapping[str, Any]
"""Named pieces of a signature. Plugins that sign the same piece give it the same name."""

NOTHING: Part = {}

_NOT_LOOKED_AT = ("configMap", "secret")
"""Volumes that differ from pod to pod and matter to no plugin."""


def tolerations(signature: PodSignature) -> Part:
    listed = sorted(signature.pod_class.tolerations, key=_by_key_and_value)
    return {"tolerations": listed}


def resources(signature: PodSignature) -> Part:
    return {"resources": signature.pod_class.requests}


def labels(signature: PodSignature) -> Part:
    return {"labels": signature.labels}


def volumes(signature: PodSignature) -> Part:
    sources = [
        {name: value for name, value in volume.items() if name != "name"}
        for volume in signature.volumes
        if not any(kind in volume for kind in _NOT_LOOKED_AT)
    ]
    return {"volumes": _sorted(sources)}


def host_ports(signature: PodSignature) -> Part:
    """Their numbers, whatever the protocol and address."""
    return {"hostPorts": sorted({port.number.port for port in signature.pod_class.host_ports})}


def images(names: Iterable[str]) -> Part:
    return {"images": sorted(set(names))}


def node_affinity(signature: PodSignature) -> Part:
    spec = signature.pod_class.spec
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    weighed = [
        {"weight": each.get("weight"), "term": _term(each.get("preference") or {})}
        for each in preferred
    ]
    return {
        "required": _sorted(map(_term, required.get("nodeSelectorTerms") or ())),
        "preferred": _sorted(weighed),
        "nodeSelector": spec.get("nodeSelector"),
    }


def encoded(parts: Mapping[str, Any]) -> bytes:
    """Equal for equal parts."""
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)


def _term(term: ReadOnlyObject) -> dict[str, list[str]]:
    return {
        kind: _sorted(_requirement(each) for each in term.get(kind) or ())
        for kind in ("matchExpressions", "matchFields")
    }


def _requirement(requirement: ReadOnlyObject) -> dict[str, Any]:
    return {**requirement, "values": sorted(requirement.get("values") or ())}


def _sorted(items: Iterable[Any]) -> list[str]:
    return sorted(orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode() for item in items)


def _by_key_and_value(toleration: ReadOnlyObject) -> tuple[str, str]:
    return toleration.get("key") or "", toleration.get("value") or ""
