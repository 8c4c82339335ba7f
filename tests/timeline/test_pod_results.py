"""``PodResult`` is bounded: few attempts, few nodes, and a marker where something was left out."""

from msgspec.structs import replace

import kubescene
from kubescene.actors import Actor
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource
from kubescene.clock import ScenarioStep, VirtualClock
from kubescene.scenario import ScenarioBuilder
from kubescene.store import Store
from kubescene.testing import make_node, make_pod
from kubescene.timeline import (
    Explanation,
    FilterGroup,
    SchedulingAttempt,
    ScoreColumn,
    StepPhaseChange,
    Timeline,
    TimelineRecorder,
)
from kubescene.timeline.kep import ATTEMPTS_LISTED
from kubescene.timeline.schedule_results import NODES_LISTED
from kubescene.types import JsonObject


def stored_pod() -> Record:
    obj = make_pod("a").build()
    return Store().put(
        GroupResource("", "pods"), {**obj, "metadata": {**obj["metadata"], "uid": "u"}}, expected=0
    )


def explained(nodes: int, chosen: int | None) -> SchedulingAttempt:
    """Even nodes fit, odd ones do not; the score of a node is its index."""
    fits = list(range(0, nodes, 2))
    column = ScoreColumn("Fit", 3, [n * 10 for n in fits], fits)
    explanation = Explanation(
        nodes=[f"n{n}" for n in range(nodes)],
        examined=range(nodes),
        feasible=fits,
        filters=(FilterGroup("Fit", 2, ("Insufficient cpu", "Too many pods"), range(1, nodes, 2)),),
        filter_plugins=("Name", "Fit", "Taint"),
        scored=fits,
        scores=(column,),
    )
    node = "" if chosen is None else f"n{chosen}"
    message = "no" if chosen is None else ""
    return SchedulingAttempt(
        pod=stored_pod(),
        actor=Actor("kube-scheduler"),
        profile="s",
        node=node,
        message=message,
        evaluated=nodes,
        feasible=len(fits),
        explanation=explanation,
    )


def told(*attempts: SchedulingAttempt) -> JsonObject:
    """The PodResult after these attempts, made at the steps 2.1, 2.2 and so on."""
    recorder = TimelineRecorder(VirtualClock())
    for minor, attempt in enumerate(attempts, 1):
        recorder.phase_changed(StepPhaseChange(ScenarioStep(2, minor), "", ""))
        recorder.pod_attempted(attempt)
    event = Timeline(recorder.log)[-1]
    result: JsonObject = event.get("podScheduled") or event["podUnscheduled"]
    return result


def schedule_result(attempt: SchedulingAttempt) -> JsonObject:
    (result,) = told(attempt)["scheduleResult"]
    found: JsonObject = result
    return found


def test_a_small_result_is_whole() -> None:
    result = schedule_result(explained(3, chosen=2))
    assert result == {
        "step": {"major": 2, "minor": 1},
        "allCandidateNodes": ["n0", "n1", "n2"],
        "allFilteredNodes": ["n0", "n2"],
        "pluginResults": {
            "filter": {
                "n0": {"Name": "passed", "Fit": "passed", "Taint": "passed"},
                "n1": {"Name": "passed", "Fit": "Insufficient cpu, Too many pods"},
                "n2": {"Name": "passed", "Fit": "passed", "Taint": "passed"},
            },
            "score": {
                "n0": {"Fit": {"rawScore": 0, "normalizedScore": 0, "finalScore": 0}},
                "n2": {"Fit": {"rawScore": 20, "normalizedScore": 2, "finalScore": 6}},
            },
        },
    }


def test_as_many_nodes_as_are_listed_need_no_marker() -> None:
    assert "cut" not in schedule_result(explained(NODES_LISTED, chosen=0))


def test_a_long_result_is_cut_and_says_so() -> None:
    result = schedule_result(explained(100, chosen=98))
    assert len(result["allCandidateNodes"]) == NODES_LISTED
    assert len(result["allFilteredNodes"]) <= NODES_LISTED
    assert result["cut"] == {"candidateNodes": 100, "feasibleNodes": 50, "listed": NODES_LISTED}


def test_the_chosen_node_is_always_listed() -> None:
    result = schedule_result(explained(100, chosen=98))
    assert result["allCandidateNodes"] == [*(f"n{n}" for n in range(NODES_LISTED - 1)), "n98"]
    assert result["pluginResults"]["score"]["n98"]["Fit"]["rawScore"] == 980


def test_an_attempt_without_explanation_keeps_its_counts() -> None:
    attempt = SchedulingAttempt(
        pod=stored_pod(),
        actor=Actor("kube-scheduler"),
        profile="s",
        message="no",
        evaluated=9,
        feasible=0,
    )
    assert schedule_result(attempt) == {
        "step": {"major": 2, "minor": 1},
        "cut": {"candidateNodes": 9, "feasibleNodes": 0, "listed": 0},
    }


def results_of(attempts: int) -> JsonObject:
    return told(*(explained(2, chosen=None) for _ in range(attempts)))


def test_the_newest_attempts_are_listed() -> None:
    result = results_of(attempts=ATTEMPTS_LISTED + 2)
    assert [r["step"]["minor"] for r in result["scheduleResult"]] == [3, 4, 5]
    assert result["cut"] == {"attempts": ATTEMPTS_LISTED + 2, "listed": ATTEMPTS_LISTED}
    assert result["message"] == "no"
    assert "boundTo" not in result


def test_attempts_before_a_bind_are_told_once() -> None:
    result = told(explained(2, chosen=None), explained(2, chosen=0), explained(2, chosen=None))
    assert [r["step"]["minor"] for r in result["scheduleResult"]] == [3]
    assert result["cut"] == {"attempts": 3, "listed": 1}


def test_nodes_that_no_filter_looked_at_are_shown_as_passed() -> None:
    attempt = explained(2, chosen=None)
    assert attempt.explanation is not None
    (group,) = attempt.explanation.filters
    unseen = replace(attempt.explanation, filters=(replace(group, plugin=""),))
    result = schedule_result(replace(attempt, explanation=unseen))
    passed = {"Name": "passed", "Fit": "passed", "Taint": "passed"}
    assert result["pluginResults"]["filter"] == {"n0": passed, "n1": passed}


def test_few_attempts_are_not_cut() -> None:
    result = results_of(attempts=ATTEMPTS_LISTED)
    assert len(result["scheduleResult"]) == ATTEMPTS_LISTED
    assert "cut" not in result


def test_a_pod_that_waited_tells_all_its_attempts() -> None:
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("small").cpu("1"), make_pod("a").cpu("2"))
        .step(2)
        .create(make_node("large").cpu("4"))
    )
    last = list(kubescene.run(scenario).timeline)[-1]["podScheduled"]
    assert [r["step"] for r in last["scheduleResult"]] == [
        {"major": 1, "minor": 0},
        {"major": 2, "minor": 1},
    ]
    assert (last["createdAt"], last["boundAt"]) == (
        {"major": 1, "minor": 0},
        {"major": 2, "minor": 1},
    )
    first, _ = last["scheduleResult"]
    assert first["pluginResults"]["filter"]["small"]["NodeResourcesFit"] == "Insufficient cpu"


def test_a_status_stays_small_however_many_nodes_there_are() -> None:
    def size_of_result(nodes: int) -> int:
        scenario = (
            ScenarioBuilder("s")
            .settings(explain="Full")
            .create(make_node("n-$(INDEX)").cpu("4"), count=nodes)
            .create(make_pod("a").cpu("1"))
        )
        *_, last = kubescene.run(scenario).timeline.lines
        return len(last)

    assert size_of_result(300) < size_of_result(20) * 1.2
