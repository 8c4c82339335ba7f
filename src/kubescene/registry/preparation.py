"""What a kind's strategy does with an object before it is validated: once when it is made, and with
every change.

Here is only who does what; the doing is in the modules named after it. Objects arrive decoded,
defaulted, admitted and with their system metadata; status and spec have been kept apart already.
"""

from collections.abc import Callable
from typing import TypeAlias

from kubescene.api.defaulting.creation import prepare_namespace
from kubescene.api.scheme import ResourceType
from kubescene.clock import Clock, format_time
from kubescene.registry.custom_resources import CustomResources
from kubescene.registry.daemonset_generations import first_generation, next_generation
from kubescene.registry.job_selectors import with_selector
from kubescene.registry.objects import with_metadata
from kubescene.registry.pod_creation import prepared_pod
from kubescene.registry.services import ServiceAddresses
from kubescene.registry.strategies import initial_status
from kubescene.store import Store
from kubescene.types import JsonObject

CreateStep: TypeAlias = Callable[[JsonObject], JsonObject]
UpdateStep: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject]

_NAME_LABEL = "kubernetes.io/metadata.name"
_SOURCES = ("dataSource", "dataSourceRef")
_KNOWN = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


class Preparation:
    """The strategies of all kinds of one world."""

    def __init__(self, store: Store, clock: Clock, custom: CustomResources) -> None:
        self._clock = clock
        self._custom = custom
        self._services = ServiceAddresses(store)
        self._creating: dict[tuple[str, str], CreateStep] = {
            ("", "Namespace"): named_namespace,
            ("", "PersistentVolumeClaim"): with_sources,
            ("", "Service"): self._services.create,
            ("apps", "DaemonSet"): first_generation,
            ("batch", "Job"): with_selector,
            ("apiextensions.k8s.io", "CustomResourceDefinition"): self._new_definition,
        }
        self._updating: dict[tuple[str, str], UpdateStep] = {
            ("", "Namespace"): with_old_finalizers,
            ("", "PersistentVolumeClaim"): lambda new, _: with_both_sources(new),
            ("", "Service"): self._services.update,
            ("apps", "DaemonSet"): next_generation,
            ("apiextensions.k8s.io", "CustomResourceDefinition"): self._changed_definition,
        }

    def create(self, obj: JsonObject, resource_type: ResourceType) -> JsonObject:
        """A new object, ready to be validated."""
        group, _, kind = resource_type.gvk
        if kind == "Pod" and not group:
            return prepared_pod(obj, format_time(self._clock.now()))
        obj = initial_status(obj, resource_type)
        step = None if resource_type.custom else self._creating.get((group, kind))
        return obj if step is None else step(obj)

    def update(self, new: JsonObject, old: JsonObject, resource_type: ResourceType) -> JsonObject:
        """A changed object, ready to be validated."""
        group, _, kind = resource_type.gvk
        step = None if resource_type.custom else self._updating.get((group, kind))
        return new if step is None else step(new, old)

    def _new_definition(self, definition: JsonObject) -> JsonObject:
        return self._complete_definition(definition, {})

    def _changed_definition(self, new: JsonObject, old: JsonObject) -> JsonObject:
        return self._complete_definition(new, old.get("status") or {})

    def _complete_definition(self, definition: JsonObject, status: JsonObject) -> JsonObject:
        spec = definition.get("spec") or {}
        if not isinstance(spec.get("names"), dict) or not spec.get("group"):
            return definition  # validation will say what is missing
        return self._custom.completed(definition, status, format_time(self._clock.now()))


def named_namespace(namespace: JsonObject) -> JsonObject:
    """A new namespace, labelled with its name even if the server made the name up."""
    metadata = namespace["metadata"]
    labels = {**(metadata.get("labels") or {}), _NAME_LABEL: metadata.get("name", "")}
    return prepare_namespace(with_metadata(namespace, labels=labels))


def with_old_finalizers(new: JsonObject, old: JsonObject) -> JsonObject:
    """Finalizers of a namespace change through its ``finalize`` subresource only."""
    finalizers = (old.get("spec") or {}).get("finalizers")
    spec = {k: v for k, v in (new.get("spec") or {}).items() if k != "finalizers"}
    return {**new, "spec": {**spec, "finalizers": finalizers} if finalizers else spec}


def with_sources(claim: JsonObject) -> JsonObject:
    """A new claim. A data source of old that is neither claim nor snapshot was always ignored."""
    source = claim["spec"].get("dataSource")
    if source is not None and (source.get("apiGroup") or "", source.get("kind")) not in _KNOWN:
        spec = {name: value for name, value in claim["spec"].items() if name != "dataSource"}
        claim = {**claim, "spec": spec}
    return with_both_sources(claim)


def with_both_sources(claim: JsonObject) -> JsonObject:
    """The old and the new spelling of a claim's data source agree."""
    spec = claim["spec"]
    source, ref = (spec.get(name) for name in _SOURCES)
    if source and not ref:
        return {**claim, "spec": {**spec, "dataSourceRef": source}}
    if ref and not source and "namespace" not in ref:
        return {**claim, "spec": {**spec, "dataSource": ref}}
    return claim
