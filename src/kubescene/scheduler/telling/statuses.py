"""What attempts write into objects: the pod's condition, its nomination, annotations."""

from contextlib import suppress

from kubescene.api.kinds import POD
from kubescene.api.options import NO_OPTIONS, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.keys import read_status, without_nomination
from kubescene.api.records.templates import NOMINATION, Blueprint, NominatingBlueprint
from kubescene.client.interfaces import Client, ObjectRef
from kubescene.clock import Clock, format_time
from kubescene.errors import ApiError
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling.annotations import annotated
from kubescene.types import JsonObject, ReadOnlyObject


def failure_patch(pod: PodInfo, decision: Decision, now: str) -> JsonObject | None:
    """The change of status that a failed attempt asks for; None if there is none. [E-2, E-6]"""
    held = scheduled_condition(pod)
    patch: JsonObject = {}
    condition: JsonObject = {
        "type": "PodScheduled",
        "status": "False",
        "reason": decision.reason,
        "message": decision.message,
    }
    if generation := pod.generation:
        condition["observedGeneration"] = generation
    if any(held.get(field) != value for field, value in condition.items()):
        changed = held.get("status") != "False"
        moment = now if changed else held.get("lastTransitionTime", now)
        patch["conditions"] = [condition | {"lastProbeTime": None, "lastTransitionTime": moment}]
    nominated = decision.nominated
    if nominated is not None and nominated != pod.nominated_node:
        patch["nominatedNodeName"] = nominated or None
    return patch or None


def scheduled_condition(pod: PodInfo) -> JsonObject:
    """The condition that tells of the last attempt; empty if there was none."""
    key = pod.record.status_key
    if key is None:
        return _scheduled(pod.object.get("status") or {})
    split = without_nomination(key)
    return _scheduled(read_status(key if split is None else split[0]))


def _scheduled(status: JsonObject) -> JsonObject:
    conditions = status.get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "PodScheduled"), {})


class StatusNotes:
    """What is written into pods that wait: those that do so alike, one after the other, share it.

    The registry merges and validates it once (`Blueprint`), wherever each pod is nominated to.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], WriteOptions] = {}
        """The newest of each form, by its members."""

    def of(self, patch: JsonObject) -> tuple[ReadOnlyObject, WriteOptions]:
        """The body that writes a patch of the status, and the options to write it with."""
        body: JsonObject = {"status": patch}
        if not patch or not patch.get(NOMINATION, True):
            return body, NO_OPTIONS
        form = tuple(patch)
        options = self._known.get(form)
        known = None if options is None or options.blueprint is None else options.blueprint.body
        if options is None or known is None or not _is_alike(patch, known["status"]):
            kind = NominatingBlueprint if NOMINATION in patch else Blueprint
            options = self._known[form] = WriteOptions(blueprint=kind(body))
            return body, options
        if NOMINATION not in patch:
            return known, options
        return {"status": {**known["status"], NOMINATION: patch[NOMINATION]}}, options


def _is_alike(patch: JsonObject, known: JsonObject) -> bool:
    """Whether two patches of one form differ in nothing but the nomination."""
    return all(value == known[name] for name, value in patch.items() if name != NOMINATION)


class StatusWriter:
    """Writes what attempts come to into the status of pods, with annotations if they are wanted.

    That the API refuses such a write changes nothing, as upstream: the attempt stands, the object
    may have gone in the meantime.
    """

    def __init__(self, client: Client, clock: Clock, *, annotates: bool) -> None:
        self.annotates = annotates
        self._client = client
        self._clock = clock
        self._notes = StatusNotes()

    def failed(
        self, entry: QueuedPod, decision: Decision, framework: Framework, binding: Binding | None
    ) -> Record | None:
        """Write a failure into the pod, unless it stands there already; results always do."""
        pod, told = entry.pod, (decision.message, decision.reason)
        if self.annotates:
            results = annotated(pod, framework, decision, binding)
            patch = failure_patch(pod, decision, format_time(self._clock.now()))
            return self.patch(_ref(pod), patch or {}, results)
        stays = decision.nominated is None or decision.nominated == pod.nominated_node
        if stays and entry.told == told and entry.told_in is pod.record:
            return None
        patch = failure_patch(pod, decision, format_time(self._clock.now()))
        record = None if patch is None else self.patch(_ref(pod), patch)
        entry.told, entry.told_in = told, record or pod.record
        return record

    def nominate(self, pod: PodInfo, node: str) -> Record | None:
        """Tell others which node a pod is about to get."""
        return self.patch(_ref(pod), {"nominatedNodeName": node})

    def annotations(self, binding: Binding) -> dict[str, str]:
        """The annotations of a pod that is being bound."""
        return annotated(binding.entry.pod, binding.framework, binding.decision, binding)

    def annotate(self, binding: Binding) -> None:
        """Somebody else than our binder has bound the pod: annotations are a write of their own."""
        body = {"metadata": {"annotations": self.annotations(binding)}}
        with suppress(ApiError):
            self._client.patch(_ref(binding.entry.pod), body)

    def patch(
        self, ref: ObjectRef, patch: JsonObject, annotations: dict[str, str] | None = None
    ) -> Record | None:
        """Write a patch of the status of an object; None if the API refuses."""
        body, options = self._notes.of(patch)
        if annotations:
            body, options = {**body, "metadata": {"annotations": annotations}}, NO_OPTIONS
        try:
            return self._client.patch(
                ref, body, patch_type=PatchType.STRATEGIC, subresource="status", options=options
            )
        except ApiError:
            return None


def _ref(pod: PodInfo) -> ObjectRef:
    return ObjectRef(POD, pod.name, pod.namespace)
