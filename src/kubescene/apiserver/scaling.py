"""The ``scale`` subresource: replica fields of any kind as an autoscaling/v1 ``Scale``.

Built-in kinds keep them at fixed places, custom ones where their definition says. Reading
composes the view; writing puts the number back as a merge patch, bound to the version that was
read.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kubescene.api.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import SCALE, ResourceType
from kubescene.api.selectors import SelectorError, from_label_selector, from_labels
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.routes import Target
from kubescene.apiserver.validating import check_kind
from kubescene.apiserver.writing import Writes, as_object, check_name, write_options
from kubescene.errors import BadRequestError, Cause, InvalidError
from kubescene.registry.custom_resources import ScalePaths
from kubescene.registry.patching import apply_patch
from kubescene.types import JsonObject, JsonValue

SCALE_TYPE = ResourceType(gvk=SCALE.gvk, plural="scales", namespaced=True)

ChangeScale: TypeAlias = Callable[[JsonObject], JsonObject]


BUILT_IN = ScalePaths(("spec", "replicas"), ("status", "replicas"))


@dataclass(frozen=True, slots=True)
class Scaling:
    """Serves ``scale``."""

    verbs: Writes

    async def serve(self, target: Target, request: Request) -> Response:
        if request.method == "GET":
            record = self.verbs.registry.record(target.resource_type, target.namespace, target.name)
            return json_response(scale_of(record, self._paths(target.resource_type)))
        if request.method == "PUT":
            scale = await self._read(target, request)
            return await self._write(target, request, lambda _: scale)
        patch_type, patch = await self.verbs.read_patch(request, SCALE_TYPE)

        def change(old: JsonObject) -> JsonObject:
            patched = apply_patch(old, patch, patch_type, SCALE_TYPE)
            self.verbs.fields.check_patched(patched, SCALE_TYPE, request, patch)
            return self.verbs.fields.decoded(patched, SCALE_TYPE, request)

        return await self._write(target, request, change)

    async def _read(self, target: Target, request: Request) -> JsonObject:
        body = as_object((await self.verbs.read_body(request)).value)
        scale = self.verbs.fields.decoded(check_kind(body, SCALE.gvk), SCALE_TYPE, request)
        if not isinstance(scale.get("metadata"), dict):
            raise BadRequestError("name must be provided")
        check_name(scale, target)
        return scale

    async def _write(self, target: Target, request: Request, change: ChangeScale) -> Response:
        options, registry = replace(write_options(request), through="scale"), self.verbs.registry
        paths = self._paths(target.resource_type)

        def command() -> Record:
            record = registry.record(target.resource_type, target.namespace, target.name)
            scale = change(scale_of(record, paths))
            return registry.patch(
                request.actor,
                target.resource_type,
                target.namespace,
                target.name,
                replicas_patch(scale, paths),
                PatchType.MERGE,
                options=options,
            )

        return json_response(scale_of(await self.verbs.engine.submit(command), paths))

    def _paths(self, resource_type: ResourceType) -> ScalePaths:
        kind = self.verbs.registry.custom.of(resource_type.gvk)
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
    metadata = scale["metadata"]
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        field, detail = "spec.replicas", "must be greater than or equal to 0"
        message = f"Invalid value: {replicas}: {detail}"
        raise InvalidError(
            f'Scale.autoscaling "{metadata.get("name", "")}" is invalid: {field}: {message}',
            name=metadata.get("name", ""),
            group="autoscaling",
            kind="Scale",
            causes=(Cause("FieldValueInvalid", message, field),),
        )
    patch: JsonValue = replicas
    for step in reversed(paths.spec_replicas):
        patch = {step: patch}
    kept = {key: metadata[key] for key in ("resourceVersion", "uid") if metadata.get(key)}
    result: JsonObject = {**patch, "metadata": kept}
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
