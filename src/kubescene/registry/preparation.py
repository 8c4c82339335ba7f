"""What a kind's strategy does with an object before it is validated: once when it is made, and with
every change.

Objects arrive decoded, defaulted, admitted and with their system metadata; status and spec have
been kept apart already. Defaulting happens on every read and write, the first of these once. What
Services need is in `registry.services`.

To a pod that is created the server adds status, gate condition and merged label keys:
``matchLabelKeys`` and ``mismatchLabelKeys`` of pod affinity and ``matchLabelKeys`` of topology
spread are turned into selector requirements here, once, from the labels the pod has now; the
scheduler only reads the selectors.
"""

from collections.abc import Callable, Collection
from typing import TypeAlias

from kubescene.api.feature_gates import MAX_UNAVAILABLE_STATEFUL_SET
from kubescene.api.kinds import TEMPLATE_GENERATION
from kubescene.api.resource_requests import qos_class
from kubescene.api.scheme import ResourceType
from kubescene.clock import Clock, format_time
from kubescene.registry.custom_resources import CustomResources
from kubescene.registry.objects import with_metadata, with_part
from kubescene.registry.services import ServiceAddresses
from kubescene.registry.strategies import initial_status
from kubescene.store import Store
from kubescene.types import JsonObject

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def prepared_pod(pod: JsonObject, now: str) -> JsonObject:
    """A new pod: pending, with its quality of service, its selectors complete."""
    spec = pod["spec"]
    status: JsonObject = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [gated_condition(now)]
    if spec.get("affinity") or spec.get("topologySpreadConstraints"):
        merged = merged_selectors(spec, pod["metadata"].get("labels") or {})
        pod = with_part(pod, "spec", merged)
    return {**pod, "status": status}


def gated_condition(now: str) -> JsonObject:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def merged_selectors(spec: JsonObject, labels: dict[str, str]) -> JsonObject:
    """The spec whose selectors include the label keys; itself if it has none."""
    changes: JsonObject = {}
    if affinity := spec.get("affinity"):
        merged = _merged_affinity(affinity, labels)
        if merged is not affinity:
            changes["affinity"] = merged
    if constraints := spec.get("topologySpreadConstraints"):
        done = [with_label_keys(it, labels) for it in constraints]
        if any(new is not old for new, old in zip(done, constraints, strict=True)):
            changes["topologySpreadConstraints"] = done
    return {**spec, **changes} if changes else spec


def _merged_affinity(affinity: JsonObject, labels: dict[str, str]) -> JsonObject:
    for part in ("podAffinity", "podAntiAffinity"):
        if terms := affinity.get(part):
            terms = _each(terms, _PREFERRED, lambda it: _merged_preference(it, labels))
            terms = _each(terms, _REQUIRED, lambda it: with_label_keys(it, labels))
            if terms is not affinity[part]:
                affinity = {**affinity, part: terms}
    return affinity


def _each(obj: JsonObject, field: str, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    items = obj.get(field) or []
    done = [change(item) for item in items]
    changed = any(new is not old for new, old in zip(done, items, strict=True))
    return {**obj, field: done} if changed else obj


def _merged_preference(preference: JsonObject, labels: dict[str, str]) -> JsonObject:
    term = preference.get("podAffinityTerm") or {}
    merged = with_label_keys(term, labels)
    return preference if merged is term else {**preference, "podAffinityTerm": merged}


def with_label_keys(term: JsonObject, labels: dict[str, str]) -> JsonObject:
    """The term or constraint with a requirement for each key that the pod has.

    Without a selector it matches nothing, and nothing is added.
    """
    selector = term.get("labelSelector")
    wanted = [("In", key) for key in term.get("matchLabelKeys") or ()]
    wanted += [("NotIn", key) for key in term.get("mismatchLabelKeys") or ()]
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for operator, key in wanted
        if key in labels
    ]
    if selector is None or not added:
        return term
    expressions = [*(selector.get("matchExpressions") or ()), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}


CreateStep: TypeAlias = Callable[[JsonObject], JsonObject]
UpdateStep: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject]

_NAME_LABEL = "kubernetes.io/metadata.name"
_SOURCES = ("dataSource", "dataSourceRef")
_KNOWN = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_ELECTION = ("strategy", "preferredHolder")
_NAMESPACE_FINALIZER = "kubernetes"
JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
JOB_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
JOB_SELECTED = "batch.kubernetes.io/controller-uid"


class Preparation:
    """The strategies of all kinds of one world; ``gates`` are feature gates that are on."""

    def __init__(
        self, store: Store, clock: Clock, custom: CustomResources, gates: Collection[str] = ()
    ) -> None:
        self._clock = clock
        self._custom = custom
        self._services = ServiceAddresses(store)
        self._creating: dict[tuple[str, str], CreateStep] = {
            ("", "Namespace"): named_namespace,
            ("", "PersistentVolumeClaim"): with_sources,
            ("", "Service"): self._services.create,
            ("apps", "DaemonSet"): first_generation,
            ("batch", "Job"): with_selector,
            ("coordination.k8s.io", "Lease"): lambda new: without_election(new, {}),
            ("apiextensions.k8s.io", "CustomResourceDefinition"): self._new_definition,
        }
        self._updating: dict[tuple[str, str], UpdateStep] = {
            ("", "Namespace"): with_old_finalizers,
            ("", "PersistentVolumeClaim"): lambda new, _: with_both_sources(new),
            ("", "Service"): self._services.update,
            ("apps", "DaemonSet"): next_generation,
            ("coordination.k8s.io", "Lease"): without_election,
            ("apiextensions.k8s.io", "CustomResourceDefinition"): self._changed_definition,
        }
        if MAX_UNAVAILABLE_STATEFUL_SET not in gates:
            self._creating["apps", "StatefulSet"] = one_at_a_time
            self._updating["apps", "StatefulSet"] = still_one_at_a_time

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


def prepare_namespace(namespace: JsonObject) -> JsonObject:
    """A new namespace is active, and waits for its content to be removed when deleted."""
    spec = namespace.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    if _NAMESPACE_FINALIZER not in finalizers:
        finalizers = [*finalizers, _NAMESPACE_FINALIZER]
    return {
        **namespace,
        "spec": {**spec, "finalizers": finalizers},
        "status": {"phase": "Active"},
    }


def with_old_finalizers(new: JsonObject, old: JsonObject) -> JsonObject:
    """Finalizers of a namespace change through its ``finalize`` subresource only."""
    finalizers = (old.get("spec") or {}).get("finalizers")
    spec = {k: v for k, v in (new.get("spec") or {}).items() if k != "finalizers"}
    return {**new, "spec": {**spec, "finalizers": finalizers} if finalizers else spec}


def with_sources(claim: JsonObject) -> JsonObject:
    """A new claim. A source in another namespace is behind a gate that is off: it is dropped.

    A ``dataSource`` that is neither claim nor snapshot was always ignored where it stands alone.
    """
    spec = claim["spec"]
    source, ref = (spec.get(name) for name in _SOURCES)
    if ref is not None and ref.get("namespace"):
        spec, ref = but(spec, "dataSourceRef"), None
    kind = ("", "") if source is None else (source.get("apiGroup") or "", source.get("kind"))
    if source is not None and ref is None and kind not in _KNOWN:
        spec = but(spec, "dataSource")
    return with_both_sources({**claim, "spec": spec})


def with_both_sources(claim: JsonObject) -> JsonObject:
    """The old and the new spelling of a claim's data source agree."""
    spec = claim["spec"]
    source, ref = (spec.get(name) for name in _SOURCES)
    if source and not ref:
        return {**claim, "spec": {**spec, "dataSourceRef": source}}
    if ref and not source and not ref.get("namespace"):
        return {**claim, "spec": {**spec, "dataSource": but(ref, "namespace")}}
    return claim


def but(obj: JsonObject, left_out: str) -> JsonObject:
    return {name: value for name, value in obj.items() if name != left_out}


def with_selector(job: JsonObject) -> JsonObject:
    """A new Job that selects the pods which carry its uid, and a template that labels them so."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return job
    generated = dict.fromkeys(JOB_NAME_LABELS, metadata.get("name", ""))
    generated |= dict.fromkeys(JOB_UID_LABELS, metadata["uid"])
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    labels = {**generated, **(inner.get("labels") or {})}
    selector = spec.get("selector") or {}
    matched = {JOB_SELECTED: metadata["uid"], **(selector.get("matchLabels") or {})}
    changes = {
        "selector": {**selector, "matchLabels": matched},
        "template": {**template, "metadata": {**inner, "labels": labels}},
    }
    if metadata.get("labels") is inner.get("labels") and inner.get("labels"):
        # Labels that were those of the template for want of others stay those of the template.
        metadata = {**metadata, "labels": labels}
    return {**job, "metadata": metadata, "spec": {**spec, **changes}}


def selecting_its_own(job: JsonObject) -> JsonObject:
    """A Job like one that was made before, by its new name and uid in place of the other's.

    It has no labels and no selector of these names but those that were generated.
    """
    metadata, spec = job["metadata"], job["spec"]
    template, selector = spec["template"], spec["selector"]
    inner = template["metadata"]
    labels = {
        **inner["labels"],
        **dict.fromkeys(JOB_NAME_LABELS, metadata["name"]),
        **dict.fromkeys(JOB_UID_LABELS, metadata["uid"]),
    }
    if (metadata.get("labels") or {}).keys() & labels.keys() >= {*JOB_NAME_LABELS, *JOB_UID_LABELS}:
        metadata = {**metadata, "labels": labels}
    matched = {**selector["matchLabels"], JOB_SELECTED: metadata["uid"]}
    changes = {
        "selector": {**selector, "matchLabels": matched},
        "template": {**template, "metadata": {**inner, "labels": labels}},
    }
    return {**job, "metadata": metadata, "spec": {**spec, **changes}}


def first_generation(daemon_set: JsonObject) -> JsonObject:
    """A new DaemonSet: its first template, or the number it was given."""
    given = _annotations(daemon_set).get(TEMPLATE_GENERATION, "0")
    return _with_generation(daemon_set, max(_number(given), 1))


def next_generation(daemon_set: JsonObject, old: JsonObject) -> JsonObject:
    """A changed DaemonSet; what the client said about the annotation does not count."""
    before = _number(_annotations(old).get(TEMPLATE_GENERATION, "0"))
    changed = daemon_set["spec"].get("template") != old["spec"].get("template")
    return _with_generation(daemon_set, before + changed)


def one_at_a_time(stateful_set: JsonObject) -> JsonObject:
    """A new StatefulSet without the field of a feature gate that is off."""
    spec = stateful_set["spec"]
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    if "maxUnavailable" not in rolling:
        return stateful_set
    rolling = {name: each for name, each in rolling.items() if name != "maxUnavailable"}
    spec = {**spec, "updateStrategy": {**strategy, "rollingUpdate": rolling}}
    return {**stateful_set, "spec": spec}


def still_one_at_a_time(stateful_set: JsonObject, old: JsonObject) -> JsonObject:
    """A changed StatefulSet; one that has the field already keeps it."""
    before = (old["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return stateful_set if "maxUnavailable" in before else one_at_a_time(stateful_set)


def without_election(lease: JsonObject, old: JsonObject) -> JsonObject:
    """A Lease without the fields of coordinated election, whose gate is off; old ones stay."""
    spec, before = lease.get("spec") or {}, old.get("spec") or {}
    dropped = [name for name in _ELECTION if name in spec and name not in before]
    if not dropped:
        return lease
    return {**lease, "spec": {name: each for name, each in spec.items() if name not in dropped}}


def _with_generation(daemon_set: JsonObject, number: int) -> JsonObject:
    annotations = _annotations(daemon_set)
    if annotations.get(TEMPLATE_GENERATION) == str(number):
        return daemon_set
    return with_metadata(daemon_set, annotations={**annotations, TEMPLATE_GENERATION: str(number)})


def _annotations(obj: JsonObject) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
