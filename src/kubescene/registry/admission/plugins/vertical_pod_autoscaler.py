"""The webhook of the vertical pod autoscaler: what new pods get, and which VPAs are refused.

A pod gets what the VPA of its topmost controller recommends when it is created, or the
PluginAutoscaler that has a size for it. It does nothing, and costs two looks, as long as there is
none. The rules (`kubescene.autoscalers.vertical`) are loaded with the first.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubescene.api.patching.patches import json_patch
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.errors import NotFoundError
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.plugins.limit_ranger import LIMIT_RANGES
from kubescene.registry.objects import with_part
from kubescene.store import Store
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.autoscalers.vertical.controlling import Candidate
    from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler

KIND, GROUP = "VerticalPodAutoscaler", "autoscaling.k8s.io"
AUTOSCALERS = GroupResource(GROUP, "verticalpodautoscalers")
PLUGINS = GroupResource("kubescene.dev", "pluginautoscalers")
DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")


class VerticalAdmission:
    """What a pod gets also depends on who owns its owner, which is settled before it creates."""

    name = "VerticalPodAutoscaler"
    reads = (AUTOSCALERS, PLUGINS, LIMIT_RANGES)
    is_quiet = True
    kinds = ("Pod", KIND)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.is_create("Pod"):
            store = request.store
            is_sized = store.count(AUTOSCALERS) or store.count(PLUGINS)
            return self._sized(request) if is_sized else request.obj
        spec = request.obj.get("spec", {}) if is_write_of_vpa(request) else None
        # What is no object is not looked at before the definition refuses it.
        if not isinstance(spec, dict) or "updatePolicy" in spec:
            return request.obj
        return with_part(request.obj, "spec", {**spec, "updatePolicy": {"updateMode": "Recreate"}})

    def validate(self, request: AdmissionRequest) -> None:
        if not is_write_of_vpa(request):
            return
        from kubescene.autoscalers.vertical.objects import VerticalPodAutoscalerError, read_vpa

        try:
            read_vpa(without_status(request.obj))
        except VerticalPodAutoscalerError as error:
            raise request.forbidden(
                f'admission webhook "vpa.k8s.io" denied the request: {error}'
            ) from error

    def _sized(self, request: AdmissionRequest) -> JsonObject:
        from kubescene.autoscalers.vertical.admission import pod_patches, resize_patches
        from kubescene.autoscalers.vertical.limits import limit_ranges

        vpa = self._controlling(request)
        if vpa is None:
            return request.obj
        store = request.store
        ranges = [store.decoded(each) for each in store.list(LIMIT_RANGES, request.namespace)]
        patch = pod_patches if vpa.kind == KIND else resize_patches
        patches = patch(vpa, request.obj, limit_ranges(ranges))
        patched: JsonObject = json_patch(request.obj, patches)
        return patched

    def _controlling(self, request: AdmissionRequest) -> "VerticalPodAutoscaler | None":
        from kubescene.autoscalers.vertical.controlling import controlling, for_admission
        from kubescene.autoscalers.vertical.targets import controller_of, topmost_of

        owner = controller_of(request.obj)
        if owner is None:
            return None
        candidates = for_admission(self._candidates(request))
        if not candidates:
            return None
        stored = StoredWorkloads(request.store)
        pod = with_part(
            request.obj, "metadata", {**request.obj["metadata"], "namespace": request.namespace}
        )
        top = topmost_of(owner, request.namespace, stored)
        return controlling(pod, candidates, {(owner.kind, owner.name): top})

    def _candidates(self, request: AdmissionRequest) -> "Iterator[Candidate]":
        from kubescene.autoscalers.vertical.controlling import Candidate
        from kubescene.autoscalers.vertical.objects import VerticalPodAutoscalerError, decode_vpa
        from kubescene.autoscalers.vertical.targets import TargetError, selector_of

        store = request.store
        for record in store.list(AUTOSCALERS, request.namespace):
            try:
                vpa = decode_vpa(store.decoded(record))
                yield Candidate(vpa, selector_of(vpa, StoredWorkloads(store)))
            except (VerticalPodAutoscalerError, TargetError):
                continue
        yield from self._plugged(request)

    def _plugged(self, request: AdmissionRequest) -> "Iterator[Candidate]":
        """Autoscalers behind the interface whose size new pods get."""
        from kubescene.autoscalers.vertical.controlling import Candidate
        from kubescene.autoscalers.vertical.objects import VerticalPodAutoscalerError
        from kubescene.autoscalers.vertical.plugged import as_vertical
        from kubescene.autoscalers.vertical.targets import TargetError, selector_of

        store = request.store
        for record in store.list(PLUGINS, request.namespace):
            obj = store.decoded(record)
            if not (obj.get("status") or {}).get("admit"):
                continue
            try:
                vpa = as_vertical(obj, request.obj)
                if vpa is not None:
                    yield Candidate(vpa, selector_of(vpa, StoredWorkloads(store)))
            except (ValueError, VerticalPodAutoscalerError, TargetError):
                continue


def is_write_of_vpa(request: AdmissionRequest) -> bool:
    kind = request.resource_type
    return (
        request.verb in ("create", "update")
        and not request.subresource
        and kind.kind == KIND
        and kind.named_resource == AUTOSCALERS
    )


def without_status(obj: JsonObject) -> JsonObject:
    return {name: part for name, part in obj.items() if name != "status"}


class StoredWorkloads:
    """What owners and targets of pods are looked up in: the store, by the definitions in it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, kind: GroupVersionKind, name: str, namespace: str) -> JsonObject | None:
        plural = self._plural(kind)
        record = self._store.get(GroupResource(kind.group, plural), namespace, name)
        return None if record is None else self._store.decoded(record)

    def scale(self, kind: GroupVersionKind, name: str, namespace: str) -> JsonObject:
        found, path = self.find(kind, name, namespace), self._selector_path(kind)
        if found is None or path is None:
            raise NotFoundError(f'{kind.kind} "{name}" not found')
        selector: object = found
        for step in path.strip(".").split(".") if path else ():
            selector = selector.get(step) if isinstance(selector, dict) else None
        return {"status": {"selector": selector if isinstance(selector, str) else ""}}

    def _plural(self, kind: GroupVersionKind) -> str:
        definition = self._definition(kind)
        if definition is None:
            return f"{kind.kind.lower()}s"
        plural: str = definition["spec"]["names"]["plural"]
        return plural

    def _selector_path(self, kind: GroupVersionKind) -> str | None:
        """Where a custom kind's scale has its selector; None if it has no scale."""
        definition = self._definition(kind)
        if definition is None:
            return None
        for version in definition["spec"]["versions"]:
            scale = (version.get("subresources") or {}).get("scale")
            if version["name"] == kind.version and scale is not None:
                return str(scale.get("labelSelectorPath") or "")
        return None

    def _definition(self, kind: GroupVersionKind) -> JsonObject | None:
        for record in self._store.list(DEFINITIONS):
            definition = self._store.decoded(record)
            spec = definition["spec"]
            if (spec["group"], spec["names"]["kind"]) == (kind.group, kind.kind):
                return definition
        return None
