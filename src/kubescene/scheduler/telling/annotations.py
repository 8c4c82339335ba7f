"""The results of an attempt, by extension point, as kube-scheduler-simulator tells them.

Plugins that were not asked are not listed; a PreFilter or PreScore that said ``Skip`` has an empty
text. Filter stops at the first plugin that refuses a node: those after it are not listed for it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubescene.durations import go_duration
from kubescene.instruments.attempts import Explanation, ExtenderRecord
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling.annotation_texts import SELECTED_NODE, annotations

if TYPE_CHECKING:
    from kubescene.scheduler.binding.binding import Binding

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
