"""What attempts write into objects: the pod's condition, its nomination, annotations.

Annotations hold the results by extension point, as kube-scheduler-simulator tells them. Plugins
that were not asked are not listed; a PreFilter or PreScore that said ``Skip`` has an empty text.
Filter stops at the first plugin that refuses a node: those after it are not listed for it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kubescene.api.kinds import POD
from kubescene.api.options import NO_OPTIONS, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.keys import read_status, without_nomination
from kubescene.api.records.templates import NOMINATION, Blueprint, NominatingBlueprint
from kubescene.client.interfaces import Client, ObjectRef
from kubescene.clock import Clock, format_time
from kubescene.durations import go_duration
from kubescene.errors import ApiError
from kubescene.instruments.attempts import Explanation, ExtenderRecord
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling.annotation_texts import SELECTED_NODE, annotations
from kubescene.types import JsonObject, ReadOnlyObject

SUCCESS = "success"
PASSED = "passed"
WAIT = "wait"
NOMINATED = "preemption victim"

_BINDING = (
    "reserve-result",
    "permit-result",
    "permit-result-timeout",
    "prebind-result",
    "bind-result",
)

ByPlugin = dict[str, str]
ByNode = dict[str, ByPlugin]


def annotated(
    pod: PodInfo, framework: Framework, decision: Decision, binding: "Binding | None" = None
) -> dict[str, str]:
    """The annotations of a pod after an attempt, its history included."""
    held: Mapping[str, str] = pod.object["metadata"].get("annotations") or {}
    return annotations(results_of(framework, decision, binding), held)


def results_of(
    framework: Framework, decision: Decision, binding: "Binding | None" = None
) -> dict[str, Any]:
    """The results of an attempt by annotation; without a binding it went no further than Score."""
    explanation = decision.explanation
    scores = () if explanation is None else explanation.scores
    known = {each.name for each in framework.scores}
    columns = [each for each in scores if each.plugin in known]
    results: dict[str, Any] = {
        "prefilter-result": narrowed(decision),
        "prefilter-result-status": pre_filtered(framework, decision),
        "filter-result": {} if explanation is None else filtered(explanation),
        "postfilter-result": post_filtered(decision),
        "prescore-result": pre_scored(framework, decision) if columns else {},
        "score-result": {},
        "finalscore-result": {},
        **bound(framework, binding),
    }
    if explanation is not None:
        names = [explanation.nodes[int(row)] for row in explanation.scored]
        for at, node in enumerate(names):
            raw = {each.plugin: str(int(each.raw[at])) for each in columns}
            final = {each.plugin: str(int(each.normalized[at]) * each.weight) for each in columns}
            results["score-result"][node] = raw
            results["finalscore-result"][node] = final
    return {**results, **extended(decision.extenders or ())}


# -- Filter ------------------------------------------------------------------------------------


def narrowed(decision: Decision) -> dict[str, list[str]]:
    """The nodes to which PreFilter plugins have narrowed the search."""
    outcome = decision.pre_filter
    names = {} if outcome is None else outcome.names_by_plugin or {}
    return {plugin: sorted(nodes) for plugin, nodes in names.items()}


def pre_filtered(framework: Framework, decision: Decision) -> ByPlugin:
    outcome = decision.pre_filter
    if outcome is None:
        return {}
    said: ByPlugin = {}
    for extension in framework.pre_filter:
        name = extension.name
        said[name] = "" if name in decision.state.skipped_filters else SUCCESS
        if not outcome.status.ok and outcome.status.plugin == name:
            said[name] = outcome.status.message
            if outcome.status.code is not Code.UNSCHEDULABLE:
                break
    return said


def filtered(explanation: Explanation) -> ByNode:
    plugins, nodes = explanation.filter_plugins, explanation.nodes
    said: ByNode = {nodes[int(row)]: dict.fromkeys(plugins, PASSED) for row in explanation.examined}
    for group in explanation.filters:
        if group.plugin in plugins:
            asked = plugins[: plugins.index(group.plugin)]
            text = ", ".join(group.reasons)
            for row in group.nodes:
                said[nodes[int(row)]] = {**dict.fromkeys(asked, PASSED), group.plugin: text}
    return said


def post_filtered(decision: Decision) -> ByNode:
    """The nodes that PostFilter was told of; the nominated one names the plugin."""
    explanation = decision.explanation
    if explanation is None or not decision.post_filtered:
        return {}
    rows = sorted(int(row) for group in explanation.filters for row in group.nodes)
    said: ByNode = {explanation.nodes[row]: {} for row in rows}
    if decision.nominated and decision.post_filtered:
        said.setdefault(decision.nominated, {})[decision.post_filtered] = NOMINATED
    return said


# -- Score and binding -------------------------------------------------------------------------


def pre_scored(framework: Framework, decision: Decision) -> ByPlugin:
    skipped = decision.state.skipped_scores
    return {each.name: "" if each.name in skipped else SUCCESS for each in framework.pre_score}


def bound(framework: Framework, binding: "Binding | None") -> dict[str, Any]:
    """Reserve to Bind, as far as it came; Bind itself is counted as done while it is written."""
    if binding is None:
        points: dict[str, Any] = {point: {} for point in _BINDING}
        return {**points, SELECTED_NODE: ""}
    failed = binding.failed
    order = ("Reserve", "Permit", "PreBind", "Bind")
    is_bound = binding.binder or binding.bound_by_extender
    last = failed.point if failed is not None else "Bind" if is_bound else "Permit"
    end = order.index(last)
    said = {
        "Reserve": [each.name for each in framework.reserve],
        "PreBind": [each.name for each in framework.pre_bind],
        "Bind": [] if binding.bound_by_extender else [binding.binder],
    }
    told = {
        point: until(names, binding, point) if order.index(point) <= end else {}
        for point, names in said.items()
    }
    permits = {name: text for name, (text, _) in binding.permits.items()}
    timeouts = {name: go_duration(wait) for name, (_, wait) in binding.permits.items()}
    return {
        "reserve-result": told["Reserve"],
        "permit-result": permits,
        "permit-result-timeout": timeouts,
        "prebind-result": told["PreBind"],
        "bind-result": told["Bind"],
        SELECTED_NODE: binding.pod.node,
    }


def until(names: Iterable[str], binding: "Binding", point: str) -> ByPlugin:
    """Success for all plugins of a point, up to the one that failed there."""
    failed, said = binding.failed, ByPlugin()
    for name in names:
        if failed is not None and (failed.point, failed.plugin) == (point, name):
            return {**said, name: failed.message}
        said[name] = SUCCESS
    return said


# -- extenders ---------------------------------------------------------------------------------


def extended(records: Iterable[ExtenderRecord]) -> dict[str, Any]:
    """What extenders said, by their name; nothing if none was asked."""
    said: dict[str, dict[str, Any]] = {
        f"extender-{verb}-result": {} for verb in ("filter", "prioritize", "preempt", "bind")
    }
    asked = False
    for record in records:
        asked = True
        said[f"extender-{record.verb}-result"][record.extender] = _ANSWERS[record.verb](record)
    return said if asked else {}


def _filter(record: ExtenderRecord) -> dict[str, Any]:
    listed = [{"metadata": {"name": name}} for name in record.passed]
    return {
        "Nodes": {"metadata": {}, "items": listed} if record.bare else None,
        "NodeNames": None if record.bare or record.error else list(record.passed),
        "FailedNodes": record.failed or None,
        "FailedAndUnresolvableNodes": record.unresolvable or None,
        "Error": record.error,
    }


def _prioritize(record: ExtenderRecord) -> list[dict[str, Any]]:
    return [{"Host": node, "Score": score} for node, score in record.scores.items()]


def _preempt(record: ExtenderRecord) -> dict[str, Any]:
    victims = {
        node: {
            "Pods": [{"UID": uid} for uid in uids],
            "NumPDBViolations": record.pdb_violations.get(node, 0),
        }
        for node, uids in record.victims.items()
    }
    return {"NodeNameToMetaVictims": victims or None}


def _bind(record: ExtenderRecord) -> dict[str, Any]:
    return {"Error": record.error}


_ANSWERS: dict[str, Any] = {
    "filter": _filter,
    "prioritize": _prioritize,
    "preempt": _preempt,
    "bind": _bind,
}


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
