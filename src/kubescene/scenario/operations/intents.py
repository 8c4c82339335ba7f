"""What a history asks for: of all that changed, what controllers here would not do by themselves.

A history shows states. Pods of a Deployment that appear, a node that is written into a pod, a
status: these are what controllers did there, and what they do here is to be seen. What is left is
what people, programs and clouds did: objects of their own came, were changed, were deleted; nodes
came, failed, went. That is played.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubescene.api.patching.patches import diff_merge_patch
from kubescene.api.scheme import Scheme
from kubescene.client import ObjectRef
from kubescene.durations import go_duration
from kubescene.errors import ApiError
from kubescene.histories.history import RecordedChange, RecordedEvent, RecordedHistory
from kubescene.histories.survey import CONTROLLERS, PodEnd, Survey
from kubescene.scenario.conversion import cleaned, is_static
from kubescene.scenario.reading.arrival_plans import RUN_TIME_ANNOTATION
from kubescene.scenario.spec import OperationKind
from kubescene.types import JsonObject

EXIT_CODE_ANNOTATION = f"{RUN_TIME_ANNOTATION.partition('/')[0]}/exit-code"
NEVER = frozenset(
    {"ControllerRevision", "Endpoints", "EndpointSlice", "Event", "Lease", "Scenario", "Secret"}
)
ROOT_CERTIFICATES = ("ConfigMap", "kube-root-ca.crt")
PROVISIONED = "pv.kubernetes.io/provisioned-by"
OF_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that a controller makes of what a node's conditions say."""
BY_CONTROLLERS: Mapping[str, tuple[str, ...]] = {
    "Namespace": ("finalizers",),
    "Node": ("podCIDR", "podCIDRs", "providerID"),
    "PersistentVolume": ("claimRef",),
    "PersistentVolumeClaim": ("volumeName",),
    "Pod": ("nodeName",),
    "ServiceAccount": (),
}
"""Members of specs that controllers fill in."""
ANNOTATIONS_BY_CONTROLLERS = (
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "node.alpha.kubernetes.io/",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/",
    "volumes.kubernetes.io/",
)
BY_A_CONTROLLER = frozenset(
    {
        "DeletionByPodGC",
        "DeletionByTaintManager",
        "PreemptionByScheduler",
        "TerminationByKubelet",
    }
)
"""Reasons of the condition DisruptionTarget: nobody outside wanted that pod to go."""
POLICIES = {"foregroundDeletion": "Foreground", "orphan": "Orphan"}


class Intent(NamedTuple):
    """A write of somebody who is not a controller here, and when. ``place`` is of its change."""

    at: int
    kind: OperationKind
    ref: ObjectRef
    body: JsonObject
    """The object, the merge patch, or the options of the deletion."""
    place: str
    subresource: str = ""


class KnownObject:
    """What has to be known of an object that is there."""

    __slots__ = ("form", "is_effect", "is_leaving", "status", "uid")

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.is_effect = False
        """Whether a controller made it."""
        self.is_leaving = False
        self.form: JsonObject = {}
        """Whatever of it others than controllers write."""
        self.status: JsonObject = {}
        """Of a node: what its status says that nobody here would."""


class Intents:
    """The writes of a history, read while one iterates; ``left_out`` counts what is not played."""

    def __init__(self, history: RecordedHistory, scheme: Scheme, survey: Survey) -> None:
        self._history = history
        self._scheme = scheme
        self._survey = survey
        self._known: dict[ObjectRef, KnownObject] = {}
        self._did_others = False
        self._last = 0
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Intent]:
        for obj in self._history.objects:
            ref = self._ref(obj)
            if ref is not None:
                self._learn(ref, obj)
        yield from self._of_first_state()
        for change in self._history.changes:
            yield from self._of(change)

    def _of_first_state(self) -> Iterator[Intent]:
        """Pods that are there and will end: how long they go on is told of them."""
        for ref, known in self._known.items():
            end = self._survey.ends.get(known.uid)
            if ref.gvk.kind == "Pod" and end is not None and not known.is_effect:
                patch = {"metadata": {"annotations": annotations_of(end)}}
                at = self._history.began_at
                yield Intent(at, OperationKind.PATCH, ref, patch, "the first state")

    def _of(self, change: RecordedChange) -> Iterator[Intent]:
        ref = self._ref(change.object)
        if ref is None:
            return
        found = [*self._writes(ref, change)]
        if not found:
            self._did_others = True
        for intent in found:
            yield intent._replace(at=self._instant(intent.at))

    def _instant(self, at: int) -> int:
        """What controllers did between two changes of one instant, they do between them here."""
        if self._did_others and at <= self._last:
            at = self._last + 1
        self._last, self._did_others = max(at, self._last), False
        return self._last

    def _writes(self, ref: ObjectRef, change: RecordedChange) -> Iterator[Intent]:
        known = self._known.get(ref)
        uid = str(change.object["metadata"].get("uid") or "")
        if change.event is RecordedEvent.DELETE:
            if known is None:
                known = self._learn(ref, change.object)
            if not uid or known.uid in ("", uid):
                yield from self._ended(ref, known, change)
            return
        if known is not None and uid and known.uid not in ("", uid):
            yield from self._ended(ref, known, change)  # it went while nobody looked
            change, known = change._replace(event=RecordedEvent.ADD), None
        if known is None:
            yield from self._came(ref, change)
        else:
            yield from self._changed(ref, known, change)
        yield from self._leaving(ref, change)

    def _came(self, ref: ObjectRef, change: RecordedChange) -> Iterator[Intent]:
        known = self._learn(ref, change.object)
        if known.is_effect:
            return
        if change.event is RecordedEvent.UPDATE:  # it was there before anybody looked
            if any(known.form.values()):
                yield Intent(change.at, OperationKind.PATCH, ref, known.form, change.place)
            return
        obj = created_form(change.object)
        end = self._survey.end_of(change.object)
        if end is not None:
            obj = with_end(obj, end)
        yield Intent(change.at, OperationKind.CREATE, ref, obj, change.place)

    def _changed(
        self, ref: ObjectRef, known: KnownObject, change: RecordedChange
    ) -> Iterator[Intent]:
        before, status = known.form, known.status
        if known.is_effect:
            return
        self._remember(known, change.object)
        if patch := diff_merge_patch(before, known.form):
            yield Intent(change.at, OperationKind.PATCH, ref, patch, change.place)
        if status != known.status:
            told = {"status": node_status(change.object, whole=True)}
            yield Intent(change.at, OperationKind.PATCH, ref, told, change.place, "status")

    def _leaving(self, ref: ObjectRef, change: RecordedChange) -> Iterator[Intent]:
        """Its deletion was asked for: it may stay for a while."""
        known, metadata = self._known[ref], change.object["metadata"]
        if known.is_leaving or not metadata.get("deletionTimestamp"):
            return
        known.is_leaving = True
        if not known.is_effect and not is_disrupted(change.object):
            options: JsonObject = {}
            if ref.gvk.kind == "Pod" and "deletionGracePeriodSeconds" in metadata:
                options["gracePeriodSeconds"] = metadata["deletionGracePeriodSeconds"]
            for finalizer in metadata.get("finalizers") or ():
                if finalizer in POLICIES:
                    options["propagationPolicy"] = POLICIES[finalizer]
            yield Intent(change.at, OperationKind.DELETE, ref, options, change.place)

    def _ended(
        self, ref: ObjectRef, known: KnownObject, change: RecordedChange
    ) -> Iterator[Intent]:
        del self._known[ref]
        if not (known.is_leaving or known.is_effect or is_disrupted(change.object)):
            options = {"gracePeriodSeconds": 0} if ref.gvk.kind == "Pod" else {}
            yield Intent(change.at, OperationKind.DELETE, ref, options, change.place)

    # -- what is known ---------------------------------------------------------------------------

    def _ref(self, obj: JsonObject) -> ObjectRef | None:
        """What names it; None if nobody here knows or plays such objects."""
        api_version, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
        if kind in NEVER:
            self.left_out[f"{kind}: it is never played"] += 1
            return None
        try:
            resource_type = self._scheme.of_kind(api_version, kind)
        except ApiError:
            self.left_out[f"{kind} ({api_version}): nobody here knows the kind"] += 1
            return None
        namespace = (metadata.get("namespace") or "default") if resource_type.namespaced else ""
        return ObjectRef(resource_type.gvk, metadata["name"], namespace)

    def _learn(self, ref: ObjectRef, obj: JsonObject) -> KnownObject:
        known = self._known[ref] = KnownObject(str(obj["metadata"].get("uid") or ""))
        known.is_effect = self._is_effect(obj)
        if not known.is_effect:
            self._remember(known, obj)
        return known

    def _remember(self, known: KnownObject, obj: JsonObject) -> None:
        known.form = authored(obj)
        if obj["kind"] == "Node":
            known.status = node_status(obj, whole=False)

    def _is_effect(self, obj: JsonObject) -> bool:
        """Whether a controller that is here made it; its owner may be heard of later."""
        metadata = obj["metadata"]
        if (obj["kind"], metadata["name"]) == ROOT_CERTIFICATES:
            return True
        if obj["kind"] == "PersistentVolume" and PROVISIONED in (metadata.get("annotations") or {}):
            return True
        return any(
            owner.get("controller")
            and owner.get("kind") in CONTROLLERS
            and owner.get("uid") in self._survey.controllers
            for owner in metadata.get("ownerReferences") or ()
        )


def authored(obj: JsonObject) -> JsonObject:
    """What others than controllers say of an object that exists: labels, annotations, the rest."""
    form = created_form(obj)
    metadata = {
        name: form["metadata"][name]
        for name in ("annotations", "labels")
        if name in form["metadata"]
    }
    rest = {k: v for k, v in form.items() if k not in ("apiVersion", "kind", "metadata", "status")}
    return {"metadata": metadata, **rest}


def created_form(obj: JsonObject) -> JsonObject:
    """The object as its author would create it."""
    form = cleaned(obj, placed=is_static(obj))
    kind, spec, metadata = obj["kind"], form.get("spec"), form["metadata"]
    if isinstance(annotations := metadata.get("annotations"), Mapping):
        kept = {
            k: v for k, v in annotations.items() if not k.startswith(ANNOTATIONS_BY_CONTROLLERS)
        }
        metadata = {**metadata, "annotations": kept}
        form = {**form, "metadata": metadata}
    if not isinstance(spec, Mapping):
        return form
    dropped = () if kind == "Pod" and is_static(obj) else BY_CONTROLLERS.get(kind, ())
    spec = {name: part for name, part in spec.items() if name not in dropped}
    if kind == "Node" and isinstance(spec.get("taints"), list):
        taints = [each for each in spec["taints"] if not is_of_conditions(each)]
        spec = {**{k: v for k, v in spec.items() if k != "taints"}, **_if("taints", taints)}
    return {**form, "spec": spec}


def _if(name: str, value: Any) -> JsonObject:
    return {name: value} if value else {}


def is_of_conditions(taint: Any) -> bool:
    return isinstance(taint, Mapping) and str(taint.get("key")).startswith(OF_CONDITIONS)


def node_status(node: JsonObject, *, whole: bool) -> JsonObject:
    """Room and conditions; unless ``whole`` without what changes with every heartbeat."""
    status = node.get("status") or {}
    told: JsonObject = {
        part: status[part] for part in ("capacity", "allocatable") if part in status
    }
    conditions = status.get("conditions")
    if isinstance(conditions, list):
        told["conditions"] = [
            each if whole else {part: each.get(part) for part in ("type", "status")}
            for each in conditions
            if isinstance(each, dict)
        ]
    return told


def is_disrupted(pod: JsonObject) -> bool:
    """Whether a controller has ended the pod, as it says itself."""
    conditions = (pod.get("status") or {}).get("conditions")
    return isinstance(conditions, list) and any(
        isinstance(each, dict)
        and each.get("type") == "DisruptionTarget"
        and each.get("reason") in BY_A_CONTROLLER
        for each in conditions
    )


def with_end(obj: JsonObject, end: PodEnd) -> JsonObject:
    """The pod, or the pods of the Job, with how long they ran and how they ended."""
    if obj["kind"] == "Pod":
        return _annotated(obj, end)
    template = obj["spec"]["template"]
    return {**obj, "spec": {**obj["spec"], "template": _annotated(template, end)}}


def _annotated(pod: JsonObject, end: PodEnd) -> JsonObject:
    metadata = pod.get("metadata") or {}
    annotations = {**annotations_of(end), **(metadata.get("annotations") or {})}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def annotations_of(end: PodEnd) -> dict[str, str]:
    told = {RUN_TIME_ANNOTATION: go_duration(end.run_time)}
    return {**told, EXIT_CODE_ANNOTATION: str(end.exit_code)} if end.exit_code else told
