"""Annotations with the results of attempts, as users of kube-scheduler-simulator know them.

The expected texts are written by hand after that project's documentation.
"""

import json
from typing import Any

import pytest

import kubescene
from kubescene.api.validation.metadata import ANNOTATIONS_SIZE_LIMIT
from kubescene.clock import SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.instruments.attempts import ExtenderRecord
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import (
    Code,
    CycleState,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderVerb,
    PendingCall,
    PodInfo,
    SchedulerOptions,
    Status,
)
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.scheduler.telling.annotation_texts import CUT, HISTORY, PREFIX, annotations, size_of
from kubescene.scheduler.telling.statuses import extended
from kubescene.testing import make_node, make_pod


def annotated(builder: ScenarioBuilder, pod: str = "a", **options: Any) -> dict[str, str]:
    run = kubescene.run(builder.settings(annotations=True), **options)
    metadata = run.cluster.get("pods", pod)["metadata"]
    found: dict[str, str] = metadata.get("annotations", {})
    return {key.removeprefix(PREFIX): text for key, text in found.items()}


def two_nodes() -> ScenarioBuilder:
    nodes = make_node("n1").cpu("2").memory("4Gi"), make_node("n2").cpu("4").memory("4Gi")
    return ScenarioBuilder("s").create(*nodes)


def test_a_bound_pod_has_every_annotation() -> None:
    found = annotated(two_nodes().create(make_pod("a").cpu("1").memory("1Gi")))
    assert sorted(found) == [
        "bind-result",
        "filter-result",
        "finalscore-result",
        "permit-result",
        "permit-result-timeout",
        "postfilter-result",
        "prebind-result",
        "prefilter-result",
        "prefilter-result-status",
        "prescore-result",
        "reserve-result",
        "result-history",
        "score-result",
        "selected-node",
    ]
    assert found["bind-result"] == '{"DefaultBinder":"success"}'
    assert found["reserve-result"] == '{"DynamicResources":"success","VolumeBinding":"success"}'
    assert found["permit-result"] == found["postfilter-result"] == found["prefilter-result"] == "{}"
    assert found["selected-node"] == "n2"
    passed = ("NodeName", "NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
    text = "{" + ",".join(f'"{plugin}":"passed"' for plugin in passed) + "}"
    assert found["filter-result"] == f'{{"n1":{text},"n2":{text}}}'


def test_scores_are_raw_and_final_scores_weighted() -> None:
    found = annotated(two_nodes().create(make_pod("a").cpu("1").memory("1Gi")))
    raw, final = json.loads(found["score-result"]), json.loads(found["finalscore-result"])
    assert (raw["n1"]["TaintToleration"], final["n1"]["TaintToleration"]) == ("0", "300")
    assert raw["n2"]["NodeResourcesFit"] == final["n2"]["NodeResourcesFit"] == "75"
    status = json.loads(found["prefilter-result-status"])
    assert (status["NodeResourcesFit"], status["InterPodAffinity"]) == ("success", "")
    assert json.loads(found["prescore-result"])["TaintToleration"] == "success"


def test_a_refused_node_lists_no_plugin_after_the_one_that_refused() -> None:
    tainted = make_node("t").taint("x")
    found = annotated(ScenarioBuilder("s").create(tainted, make_pod("a")))
    reason = "node(s) had untolerated taint(s)"
    assert found["filter-result"] == (
        f'{{"t":{{"NodeName":"passed","NodeUnschedulable":"passed","TaintToleration":"{reason}"}}}}'
    )
    assert found["postfilter-result"] == '{"t":{}}'
    assert (found["selected-node"], found["bind-result"]) == ("", "{}")


def test_the_history_grows_with_every_attempt() -> None:
    scenario = two_nodes().create(make_pod("a").cpu("9")).step(2).create(make_node("n3").cpu("16"))
    found = annotated(scenario)
    first, second = json.loads(found["result-history"])
    assert (first[PREFIX + "selected-node"], second[PREFIX + "selected-node"]) == ("", "n3")
    assert second == {PREFIX + key: text for key, text in found.items() if key != "result-history"}


def test_a_nominated_node_names_the_plugin() -> None:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    classes = [
        {**low, "metadata": {"name": "low"}},
        {**low, "metadata": {"name": "high"}, "value": 9},
    ]
    scenario = ScenarioBuilder("s").create(make_node("n1").cpu("2"), *classes)
    scenario = scenario.create(make_pod("v").cpu("2").priority_class("low")).step(2)
    found = annotated(scenario.create(make_pod("a").cpu("2").priority_class("high")))
    first = json.loads(found["result-history"])[0]
    assert first[PREFIX + "postfilter-result"] == '{"n1":{"DefaultPreemption":"preemption victim"}}'


class Holding:
    name = "Holding"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        return Status(Code.WAIT), 90 * SECOND


def test_a_wait_at_permit_has_its_timeout() -> None:
    scheduler = with_plugin(SchedulerOptions(), Holding)
    scenario = two_nodes().create(make_pod("a")).step(2).advance("100s")
    first = json.loads(annotated(scenario, scheduler=scheduler)["result-history"])[0]
    assert first[PREFIX + "permit-result"] == '{"Holding":"wait"}'
    assert first[PREFIX + "permit-result-timeout"] == '{"Holding":"1m30s"}'
    assert (first[PREFIX + "bind-result"], first[PREFIX + "prebind-result"]) == ("{}", "{}")
    assert first[PREFIX + "selected-node"] == "n2"


class Answers:
    def call(self, pending: PendingCall) -> None:
        pending.answer(self.answer(pending.call))

    def answer(self, call: ExtenderCall) -> ExtenderAnswer:
        if call.verb is ExtenderVerb.PRIORITIZE:
            return ExtenderAnswer(scores={"n1": 1})
        return ExtenderAnswer(nodes=call.nodes, failed={"foo": "bar"})


def test_extenders_are_told_by_their_address() -> None:
    verbs = frozenset({ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE})
    extender = Extender("http://e", verbs, weight=3)
    scheduler = SchedulerOptions(extenders=(extender,), extender_caller=Answers())
    found = annotated(two_nodes().create(make_pod("a")), scheduler=scheduler)
    assert json.loads(found["extender-filter-result"]) == {
        "http://e": {
            "Nodes": None,
            "NodeNames": ["n1", "n2"],
            "FailedNodes": {"foo": "bar"},
            "FailedAndUnresolvableNodes": None,
            "Error": "",
        }
    }
    rated = '{"http://e":[{"Host":"n1","Score":30}]}'
    assert found["extender-prioritize-result"] == rated
    assert (found["extender-preempt-result"], found["extender-bind-result"]) == ("{}", "{}")
    assert "http://e" not in found["finalscore-result"]


class Refusing(Answers):
    def answer(self, call: ExtenderCall) -> ExtenderAnswer:
        return ExtenderAnswer(failed=dict.fromkeys(call.nodes, "no"))


def test_annotations_bring_no_pod_back_that_waits_for_every_event() -> None:
    extender = Extender("http://e", frozenset({ExtenderVerb.FILTER}))
    scheduler = SchedulerOptions(extenders=(extender,), extender_caller=Refusing())
    found = annotated(two_nodes().create(make_pod("a")), scheduler=scheduler)
    assert len(json.loads(found["result-history"])) == 1


def test_victims_and_bindings_of_extenders_have_the_names_of_go() -> None:
    preempt = ExtenderRecord("e", "preempt", victims={"foo": ("myuid",)}, pdb_violations={"foo": 1})
    told = extended([preempt, ExtenderRecord("e", "bind", error="myerror")])
    victims = {"foo": {"Pods": [{"UID": "myuid"}], "NumPDBViolations": 1}}
    assert told["extender-preempt-result"] == {"e": {"NodeNameToMetaVictims": victims}}
    assert told["extender-bind-result"] == {"e": {"Error": "myerror"}}


def test_without_the_setting_nothing_is_written() -> None:
    scenario = two_nodes().create(make_pod("a"), make_pod("b").cpu("99"))
    cluster = kubescene.run(scenario).cluster
    for name in ("a", "b"):
        assert "annotations" not in cluster.get("pods", name)["metadata"]


def test_what_is_decided_and_explained_stays_the_same() -> None:
    def scenario() -> ScenarioBuilder:
        return two_nodes().create(make_pod("a").cpu("1"), make_pod("b").cpu("99"))

    plain = kubescene.run(scenario().settings(explain="Failures"))
    noted = kubescene.run(scenario().settings(explain="Failures", annotations=True))
    assert list(plain.explanations) == list(noted.explanations)
    assert plain.explain("a") == noted.explain("a")
    again = kubescene.run(scenario().settings(explain="Failures", annotations=True))
    assert again.cluster.export() == noted.cluster.export()


# -- size --------------------------------------------------------------------------------------


def by_node(count: int) -> dict[str, Any]:
    return {f"node-{number:05}": {"NodeName": "passed"} for number in range(count)}


def test_results_that_are_too_long_are_cut_with_a_marker() -> None:
    found = annotations({"filter-result": by_node(5000), "selected-node": "n"}, {})
    told = json.loads(found[PREFIX + "filter-result"])
    left = 5000 - (len(told) - 1)
    assert told[CUT] == {CUT: f"{left} more"}
    assert 0 < left < 5000
    assert size_of(found) <= ANNOTATIONS_SIZE_LIMIT


@pytest.mark.parametrize("others", [0, 100_000, ANNOTATIONS_SIZE_LIMIT - 40])
def test_the_history_loses_its_oldest_entries_first(others: int) -> None:
    held = {"mine": "x" * others} if others else {}
    for number in range(60):
        results = {"filter-result": by_node(200), "selected-node": f"n{number}"}
        held = {**held, **annotations(results, held)}
        assert size_of(held) <= ANNOTATIONS_SIZE_LIMIT
    if others < ANNOTATIONS_SIZE_LIMIT - 40:
        marker, *kept = json.loads(held[HISTORY])
        assert marker == {CUT: f"{60 - len(kept)} older results"}
        assert kept[-1][PREFIX + "selected-node"] == "n59"


def test_a_large_cluster_keeps_its_pods_valid() -> None:
    nodes = make_node("a-long-name-of-a-node-$(INDEX)").cpu("1")
    scenario = ScenarioBuilder("s").create(nodes, count=700).create(make_pod("a").cpu("9"))
    for step in range(2, 8):
        scenario = scenario.step(step).create(make_node(f"more-{step}").cpu("16").taint("x"))
    found = annotated(scenario)
    assert size_of({PREFIX + key: text for key, text in found.items()}) <= ANNOTATIONS_SIZE_LIMIT
    assert len(json.loads(found["result-history"])) > 1


def test_texts_are_escaped_as_go_does() -> None:
    found = annotations({"bind-result": {"x": "<a & b>"}}, {HISTORY: "spoilt"})
    assert found[PREFIX + "bind-result"] == '{"x":"\\u003ca \\u0026 b\\u003e"}'
    assert len(json.loads(found[HISTORY])) == 1


def test_a_served_world_annotates_and_comes_to_rest() -> None:
    options = ClusterOptions(events=True, scheduler=SchedulerOptions(annotations=True))
    cluster = ClusterWorld(options)
    cluster.registry.track_fields = True
    cluster.create(make_node("n").cpu("1"))
    cluster.create(make_pod("a").cpu("2"))
    revision = cluster.settle().revision
    assert cluster.settle().revision == revision
    held = cluster.get("pods", "a")["metadata"]["annotations"]
    assert len(json.loads(held[HISTORY])) == 1
    fork = cluster.fork()
    fork.create(make_node("m").cpu("4"))
    assert (
        fork.settle().get("pods", "a")["metadata"]["annotations"][PREFIX + "selected-node"] == "m"
    )
