"""The ``scale`` subresource: replica fields of any kind as an autoscaling/v1 ``Scale``.

Built-in kinds keep them at fixed places, custom ones where their definition says. Reading
composes the view; writing puts the number back as a merge patch, bound to the version that was
read. The owner of the number is noted as one who came through ``scale``.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import structs

from kubescene.actors import Actor
from kubescene.api.options import NO_OPTIONS, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.schemas import strict_decoding
from kubescene.api.scheme import SCALE, ResourceType
from kubescene.api.selectors import SelectorError, from_label_selector, from_labels
from kubescene.errors import InvalidError, StatusCause
from kubescene.registry.base import RegistryBase
from kubescene.registry.custom_resources import ScalePaths
from kubescene.registry.patching import apply_patch
from kubescene.registry.writes import WriteRequest
from kubescene.types import JsonObject, JsonValue

SCALE_TYPE = ResourceType(gvk=SCALE.gvk, plural="scales", namespaced=True)
BUILT_IN = ScalePaths(("spec", "replicas"), ("status", "replicas"))

Inspect: TypeAlias = Callable[[JsonObject], JsonObject]


class Scales:
    """Reads and writes the ``Scale`` of objects. Kinds without one are answered with 404."""

    def __init__(self, registry: RegistryBase) -> None:
        self._registry = registry

    def get(self, resource_type: ResourceType, namespace: str, name: str) -> JsonObject:
        paths = self._paths(resource_type)
        return scale_of(self._registry.record(resource_type, namespace, name), paths)

    def view(self, record: Record, resource_type: ResourceType) -> JsonObject:
        """The ``Scale`` of a record that a write returned."""
        return scale_of(record, self._paths(resource_type))

    def update(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        scale: JsonObject,
        *,
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Give the object the replicas of a ``Scale``; a stale one is a conflict."""
        strict_decoding.check_types(scale, SCALE.gvk)
        scale = self._admitted(actor, resource_type, (namespace, name), scale, options)
        return self._registry.patch(
            actor,
            resource_type,
            namespace,
            name,
            replicas_patch(scale, self._paths(resource_type)),
            PatchType.MERGE,
            options=structs.replace(options, through=SCALE.name, is_admitted=True),
        )

    def patch(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType,
        *,
        options: WriteOptions = NO_OPTIONS,
        inspect: Inspect | None = None,
    ) -> Record:
        """Change the ``Scale`` as a patch says. ``inspect`` sees it before anything else does."""
        current = self.get(resource_type, namespace, name)
        scale = apply_patch(current, patch, patch_type, SCALE_TYPE)
        scale = inspect(scale) if inspect else scale
        return self.update(actor, resource_type, namespace, name, scale, options=options)

    def resize(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        replicas: int,
        *,
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Give the object this many replicas, whatever it has."""
        scale: JsonObject = {"metadata": {"name": name}, "spec": {"replicas": replicas}}
        return self.update(actor, resource_type, namespace, name, scale, options=options)

    def _admitted(
        self,
        actor: Actor,
        resource_type: ResourceType,
        key: tuple[str, str],
        scale: JsonObject,
        options: WriteOptions,
    ) -> JsonObject:
        registry = self._registry
        if registry.admission.is_quiet:
            return scale
        old = self.get(resource_type, *key)
        request = WriteRequest(actor, "update", resource_type, SCALE.name, options, scale)
        return registry.checks.admit_part(request, {**old, **scale}, key, old)

    def _paths(self, resource_type: ResourceType) -> ScalePaths:
        resource_type.subresource(SCALE.name)
        kind = self._registry.custom.of(resource_type.gvk)
        return (kind and kind.scale) or BUILT_IN


def scale_of(record: Record, paths: ScalePaths) -> JsonObject:
    """The ``Scale`` of an object."""
    obj = record.decode()
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": _dig(obj, paths.status_replicas) or 0}
    if selector := _selector(obj, paths):
        status["selector"] = selector
    return {
        "kind": SCALE.gvk.kind,
        "apiVersion": SCALE.gvk.api_version,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if (replicas := _dig(obj, paths.spec_replicas)) else {},
        "status": status,
    }


def replicas_patch(scale: JsonObject, paths: ScalePaths) -> JsonObject:
    """The merge patch that gives an object the replicas of its ``Scale``."""
    metadata = scale.get("metadata") or {}
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0 and paths is BUILT_IN:  # custom kinds say it in words of their own
        field, detail = "spec.replicas", "must be greater than or equal to 0"
        message = f"Invalid value: {replicas}: {detail}"
        raise InvalidError(
            f'Scale.autoscaling "{metadata.get("name", "")}" is invalid: {field}: {message}',
            name=metadata.get("name", ""),
            group="autoscaling",
            kind="Scale",
            causes=(StatusCause("FieldValueInvalid", message, field),),
        )
    patch: JsonValue = replicas
    for step in reversed(paths.spec_replicas):
        patch = {step: patch}
    kept = {key: metadata[key] for key in ("resourceVersion", "uid") if metadata.get(key)}
    result: JsonObject = {**patch, "metadata": kept} if kept else {**patch}
    return result


def _selector(obj: JsonObject, paths: ScalePaths) -> str:
    if paths.selector:
        return str(_dig(obj, paths.selector) or "")
    selector = _dig(obj, ("spec", "selector")) or {}
    try:
        if obj["kind"] == "ReplicationController":
            return str(from_labels(selector))
        return str(from_label_selector(selector))
    except SelectorError:
        return ""


def _dig(obj: JsonValue, path: tuple[str, ...]) -> JsonValue:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj
