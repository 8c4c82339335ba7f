"""Operations that write through a part of an object: bind, evict, replace a status, scale.

What happens is told in KEP-140's words: a bind, a status and a scale are patches, an eviction is a
deletion, each under the id of the operation that asked for it.
"""

from typing import Any

from msgspec import structs

from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin, WriteOptions
from kubescene.api.patching.patches import PatchType, json_patch, merge_patch
from kubescene.api.scheme import SCALE, Scheme
from kubescene.api.text.encoding import encode
from kubescene.client import Client, ObjectRef
from kubescene.errors import BadRequestError, NotFoundError
from kubescene.scenario.options import delete_options
from kubescene.types import JsonObject

PARTS = {("v1", "Binding"): "binding", ("policy/v1", "Eviction"): "eviction"}
"""Kinds that nobody stores: creating one does something to a pod."""


def part_of(subresource: str, obj: JsonObject) -> str:
    """The subresource that an object is written through; empty for one that is created."""
    return subresource or PARTS.get((obj["apiVersion"], obj["kind"]), "")


class SubresourceWriter:
    """Writes as the engine, through one client."""

    def __init__(self, client: Client, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme

    def write(self, part: str, obj: JsonObject, options: WriteOptions) -> None:
        """``binding`` and ``eviction`` are posted, ``status`` and ``scale`` are replaced."""
        patch: JsonObject
        if part == "binding":
            patch = {"spec": {"nodeName": (obj.get("target") or {}).get("name", "")}}
            self._client.create(obj, options=retold(options, self._pod(obj), part, patch))
        elif part == "eviction":
            pod = self._pod(obj)
            origin = retold(options, pod, part).origin
            deletion = delete_options(obj.get("deleteOptions"))
            self._client.evict(pod, options=deletion, origin=origin)
        elif part == SCALE.name:
            scaled, replicas = self._scaled(obj), replicas_of(obj)
            told = retold(options, scaled, part, {"spec": {"replicas": replicas}})
            self._client.scale(scaled, replicas, options=told)
        else:
            patch = {"status": obj.get("status")}
            told = retold(options, self._named(obj), part, patch)
            self._client.update(obj, subresource=part, options=told)

    def scale(
        self, ref: ObjectRef, patch: Any, patch_type: PatchType, options: WriteOptions
    ) -> None:
        """Patch the ``Scale`` of an object: all that it can change is ``spec.replicas``."""
        scale = self._client.get_scale(ref)
        apply = json_patch if patch_type is PatchType.JSON else merge_patch
        self._client.scale(ref, replicas_of(apply(scale, patch)), options=options)

    def _scaled(self, obj: JsonObject) -> ObjectRef:
        """What an object given to ``scale`` scales; a Scale names it, but does not say its kind."""
        if not is_scale(obj):
            return self._named(obj)
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or "default"
        types = {each.group_resource: each for each in self._scheme if each.namespaced}
        refs = [
            ObjectRef(each.gvk, name, namespace)
            for each in types.values()
            if SCALE.name in each.subresources
        ]
        found = [ref for ref in refs if self._client.find(ref) is not None]
        if not found:
            raise NotFoundError(f'nothing that can be scaled is called "{namespace}/{name}"')
        if len(found) > 1:
            kinds = ", ".join(ref.gvk.kind for ref in found)
            raise BadRequestError(
                f'"{namespace}/{name}" is the name of several objects ({kinds}): give apiVersion '
                "and kind of the one to scale instead of a Scale"
            )
        return found[0]

    def _pod(self, obj: JsonObject) -> ObjectRef:
        metadata = obj.get("metadata") or {}
        return ObjectRef(POD, metadata.get("name", ""), metadata.get("namespace") or "default")

    def _named(self, obj: JsonObject) -> ObjectRef:
        resource_type = self._scheme.of_kind(obj["apiVersion"], obj["kind"])
        metadata = obj["metadata"]
        namespace = (metadata.get("namespace") or "default") if resource_type.namespaced else ""
        return ObjectRef(resource_type.gvk, metadata["name"], namespace)


def is_scale(obj: JsonObject) -> bool:
    return (obj["apiVersion"], obj["kind"]) == (SCALE.gvk.api_version, SCALE.gvk.kind)


def replicas_of(scale: Any) -> int:
    """The number that a ``Scale`` asks for; none is zero, as in Kubernetes."""
    spec = scale.get("spec") if isinstance(scale, dict) else None
    replicas = (spec if isinstance(spec, dict) else {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequestError(f"spec.replicas of a Scale must be a number, not {replicas!r}")
    return replicas


def retold(
    options: WriteOptions, ref: ObjectRef, part: str, patch: JsonObject | None = None
) -> WriteOptions:
    """The options with an operation as KEP-140 would tell what is done."""
    if options.origin is None:
        return options
    metadata = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    types = {"apiVersion": ref.gvk.api_version, "kind": ref.gvk.kind}
    asked: JsonObject = {"typeMeta": types, "objectMeta": metadata, "subresource": part}
    if patch is not None:
        asked |= {"patch": encode(patch).decode(), "patchType": PatchType.MERGE.value}
    return structs.replace(options, origin=OperationOrigin(options.origin.id, encode(asked)))
