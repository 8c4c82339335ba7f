"""API definitions as OpenAPI v3 schemas, taken from ``kubernetes-validate``.

That package holds the definitions of Kubernetes as JSON Schema, altered for its own use:
every optional type also allows null, ``apiVersion`` and ``kind`` are pinned by ``enum``, ``$ref``
points into ``$defs``, and the scalar types with two forms lost their format. All of that is
undone here. What OpenAPI v2 cannot say (``default``) is added from a short list; defaults that
are only Go's zero values say nothing and stay out.
"""

import json
from pathlib import Path
from typing import Any

JsonSchema = dict[str, Any]

OLD_REF = "#/$defs/"
NEW_REF = "#/components/schemas/"
SCHEMA_MAPS = ("properties", "patternProperties")
GVK = "x-kubernetes-group-version-kind"

TWO_FORMED = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "description": "A fixed-point number with an optional suffix, such as 500m, 2 or 1.5Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "description": "An int32 or a string, such as 8080, http or 25%.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}

DEFAULTS: dict[str, dict[str, Any]] = {
    "io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec": {"maxExpirationSeconds": 86400},
    "io.k8s.api.core.v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "kind": "Shared",
    },
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    "io.k8s.api.core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "io.k8s.api.core.v1.RBDPersistentVolumeSource": {
        "keyring": "/etc/ceph/keyring",
        "pool": "rbd",
        "user": "admin",
    },
    "io.k8s.api.core.v1.RBDVolumeSource": {
        "keyring": "/etc/ceph/keyring",
        "pool": "rbd",
        "user": "admin",
    },
    "io.k8s.api.core.v1.ReplicationControllerSpec": {"replicas": 1},
    "io.k8s.api.core.v1.ScaleIOPersistentVolumeSource": {
        "fsType": "xfs",
        "storageMode": "ThinProvisioned",
    },
    "io.k8s.api.core.v1.ScaleIOVolumeSource": {
        "fsType": "xfs",
        "storageMode": "ThinProvisioned",
    },
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
    "io.k8s.api.resource.v1.DeviceToleration": {"operator": "Equal"},
    "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequestSpec": {"limit": 100},
    "io.k8s.api.resource.v1beta1.DeviceToleration": {"operator": "Equal"},
    "io.k8s.api.resource.v1beta2.DeviceToleration": {"operator": "Equal"},
    "io.k8s.api.scheduling.v1alpha2.PodGroupSpec": {"disruptionMode": "Pod"},
}


def definitions(site_packages: Path, version: str) -> dict[str, JsonSchema]:
    """All definitions of one Kubernetes version by name, sorted."""
    folder = site_packages / "kubernetes_validate" / "kubernetes-json-schema"
    altered = json.loads((folder / f"{version}-local" / "_definitions.json").read_text())["$defs"]
    restored = {name: _restore(schema) for name, schema in sorted(altered.items())}
    restored.update(TWO_FORMED)
    for schema in restored.values():
        _unpin(schema)
    for name, defaults in DEFAULTS.items():
        for field, value in defaults.items():
            restored[name]["properties"][field]["default"] = value
    return restored


def _restore(schema: JsonSchema) -> JsonSchema:
    restored: JsonSchema = {}
    for key, value in sorted(schema.items()):
        if key == "type":
            restored[key] = _without_null(value)
        elif key in SCHEMA_MAPS:
            restored[key] = {name: _restore(field) for name, field in sorted(value.items())}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            restored[key] = _restore(value)
        elif key != "$ref":
            restored[key] = value
    return _with_reference(restored, schema.get("$ref"))


def _with_reference(schema: JsonSchema, reference: str | None) -> JsonSchema:
    """OpenAPI v3 ignores what stands beside a ``$ref``, so siblings go around an ``allOf``."""
    if reference is None:
        return schema
    target = {"$ref": reference.replace(OLD_REF, NEW_REF)}
    return {"allOf": [target], **schema} if schema else target


def _without_null(types: str | list[str]) -> str:
    if isinstance(types, str):
        return types
    (single,) = (t for t in types if t != "null")
    return single


def _unpin(schema: JsonSchema) -> None:
    for name in ("apiVersion", "kind"):
        if GVK in schema and name in schema.get("properties", {}):
            schema["properties"][name].pop("enum", None)
