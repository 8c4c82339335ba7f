"""Expectations over a result: checked before the run, looked at when it ends."""

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

import kubescene
from kubescene import ScenarioBuilder
from kubescene.cel import DEFAULT_COST
from kubescene.cel.types import Type
from kubescene.results import ExpectationOutcome, summarize
from kubescene.results.expectations import ResultEvaluation, faults_of
from kubescene.results.expectations.evaluation import ResultVariables
from kubescene.results.expectations.variables import ROW_TYPES, TYPES, VARIABLES
from kubescene.results.measures import measures
from kubescene.results.tables import tables
from kubescene.scenario.expectations import Ending, Expectation
from kubescene.testing import make_node, make_pod, make_priority_class
from kubescene.timeline import ExpectationsEvaluated, ScenarioEnded, TimelineLog


def small() -> ScenarioBuilder:
    """Two nodes of two cores, five pods of one: one waits."""
    node = make_node("n-$(INDEX)").cpu("2").memory("4Gi").pods("110").label(zone="z$(INDEX)")
    pod = make_pod("p-$(INDEX)").cpu("1")
    return ScenarioBuilder("small").step(1).create(node, count=2).step(2).create(pod, count=5)


def outcomes(scenario: ScenarioBuilder, *expressions: str) -> list[ExpectationOutcome]:
    for number, each in enumerate(expressions):
        scenario.expect(f"e{number}", each)
    run = kubescene.run(scenario)
    assert run.ok, run.message
    return run.expectations


def outcome(expression: str) -> ExpectationOutcome:
    return outcomes(small().done(), expression)[0]


# -- what is said before the run -----------------------------------------------------------------

BAD = [
    ('pods.all(p, p.nod == "x")', 13, "undefined field 'nod': did you mean 'node'? (column 14 of"),
    ("has(nodes[0].cpu)", 3, "undefined field 'cpu': "),
    ("podz.size() == 0", 0, "undeclared reference to 'podz': did you mean 'pod'? (column 1 of"),
    ("pods.filterr(p, true)", 12, "undeclared reference to 'filterr': did you mean 'filter'?"),
    ("sizee(pods) == 1", 5, "undeclared reference to 'sizee': did you mean 'size'?"),
    (
        "xyzzy == 0",
        0,
        "undeclared reference to 'xyzzy': known are attempts, budgets, cost_series, costs,",
    ),
    ("measures.pods_pendng == 0", 8, "undefined field 'pods_pendng': did you mean 'pods_pending'?"),
    ("1 +", 3, "Syntax error: mismatched input '<EOF>'"),
    ("", 0, "Syntax error: mismatched input '<EOF>'"),
    ("pods.size() = 3", 12, "Syntax error"),
    ("pods.size()", 0, "it must be true or false, but its type is int"),
    ("'true'", 0, "it must be true or false, but its type is string"),
    ("pods", 0, "it must be true or false, but its type is list(pod)"),
    ('measures["allocation_x"]', 0, "is not known before the run: write bool(...) around it"),
    ("pods[0].pending_s == 0", 18, "write the number with a point, such as 1.0 (column 19 of"),
    ("pods.all(p, p.node)", 13, "expected type 'bool' but found 'string'"),
    ("pods.all(p, p.priority == 'high')", 23, "no matching overload for '_==_'"),
    ("phase.all(x, true)", 0, "cannot be range of a comprehension"),
    ("pods[0].name.first", 12, "type 'string' does not support field selection"),
    ("steps.all(s,\n  s.facts > 0)", 16, "undefined field 'facts'"),
    ("node[1].pods == 1", 4, "found no matching overload for '_[_]'"),
]


@pytest.mark.parametrize(("text", "offset", "told"), BAD, ids=[each[0] for each in BAD])
def test_a_bad_expression_is_a_fault_with_its_position(text: str, offset: int, told: str) -> None:
    (fault,) = faults_of((Expectation("x", "true"), Expectation("bad one", text)))
    assert fault.path == ("spec", "expectations", 1, "expression", offset)
    assert told in fault.message
    assert fault.error.where == "spec.expectations[1] (name 'bad one').expression"


def test_lines_of_a_long_expression_are_counted() -> None:
    (fault,) = faults_of((Expectation("x", "pods.all(p,\n  p.nod == '')"),))
    assert fault.message.endswith("(line 2, column 4 of the expression, at \".nod == '')\")")


def test_a_message_must_be_a_text() -> None:
    (fault,) = faults_of((Expectation("x", "true", message_expression="1 + 1"),))
    assert fault.path == ("spec", "expectations", 0, "messageExpression", 0)
    assert fault.message == "it must be a text, but its type is int"


def test_all_faults_are_told() -> None:
    wrong = (Expectation("a", "1"), Expectation("b", "true"), Expectation("c", "x", "", "y"))
    assert [fault.path[2:4] for fault in faults_of(wrong)] == [
        (0, "expression"),
        (2, "expression"),
        (2, "messageExpression"),
    ]


def test_a_bad_expression_stops_a_run_before_anything_is_touched() -> None:
    run = kubescene.run(small().expect("x", "pods.size()"))
    assert (run.phase, run.bad_input) == ("Failed", True)
    assert run.failed_at == ("spec", "expectations", 0, "expression", 0)
    assert run.cluster.list("nodes") == []


# -- what holds ----------------------------------------------------------------------------------

GOOD = [
    ('pods.filter(p, p.node == "").size() == 1', True),
    ("pending.size() == 1 && pending[0].failed_attempts == 1", True),
    ('pods.all(p, p.node != "")', False),
    ('pod["default/p-0"].state == "Bound" && pod["default/p-4"].state == "Pending"', True),
    ('node["n-0"].pods == 2 && node["n-0"].cpu_utilization == 1.0', True),
    ('pods.exists(p, node[p.node].labels["zone"] == "z1")', True),
    ("nodes.all(n, n.memory_requested == 0 && n.cpu_requested <= n.cpu_allocatable)", True),
    ("step[1].nodes == 2 && step[2].scheduled == 4 && steps.size() == 2", True),
    ("steps.map(s, s.scheduled).sum() == 4", True),
    ("attempts.size() == 5 && attempts.exists_one(a, a.node == '')", True),
    ("preemptions.size() == 0 && deleted_pods.size() == 0 && removed_nodes.size() == 0", True),
    ("utilization.filter(u, u.step == 2).all(u, u.cpu_utilization == 1.0)", True),
    ("measures.pods_pending == 1 && measures.allocation_cpu == 1.0", True),
    ('measures["pods_pending"] == 1 && !("nope" in measures)', True),
    ("pods.all(p, p.bound_step == null || p.bound_s == 0.0)", True),
    ('phase == "Succeeded" && measures.virtual_seconds == 0', True),
    ("pods.map(p, p.cpu).sum() == 5000", True),
]


@pytest.mark.parametrize(("text", "holds"), GOOD, ids=[each[0] for each in GOOD])
def test_an_expression_speaks_of_the_result(text: str, holds: bool) -> None:
    found = outcome(text)
    assert (found.holds, found.error) == (holds, "")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('pod["default/p-9"].node == "n-0"', "no such key: default/p-9"),
        ("step[7].scheduled == 0", "no such key: 7"),
        ('measures["allocation_gpu"] > 0', "no such key: allocation_gpu"),
        ("pods[5].cpu == 1", "index out of bounds: 5"),
        ("pods.exists(p, p.bound_s > 0.0)", "no such overload: one of its values is null"),
        ("1 / (pods.size() - 5) == 1", "division by zero"),
        ("bool(phase)", "invalid syntax"),
    ],
)
def test_an_expression_without_a_value_does_not_hold_and_says_why(text: str, error: str) -> None:
    found = outcome(text)
    assert not found.holds
    assert error in found.error


def test_an_expression_may_not_work_for_ever() -> None:
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    nested = "true"
    for depth in range(7):
        nested = f"{numbers}.all(x{depth}, {nested})"
    found = outcome(nested)
    assert not found.holds
    assert found.error == "operation cancelled: actual cost limit exceeded"


def test_work_is_granted_by_the_row() -> None:
    """Looking at every pod is fine however many there are, at every pair of them is not."""
    pod = make_pod("p-$(INDEX)")
    many = ScenarioBuilder("many").settings(explain="Off").step(1).create(pod, count=2000).done()
    once = "pods.all(p, " + " && ".join(["p.node == ''"] * 135) + ")"
    assert DEFAULT_COST < 2000 * 135 * 4, "a pod costs four units for each of these"
    pairs = "pods.all(p, pods.all(q, q.node == p.node))"
    found = outcomes(many, once, pairs)
    assert (found[0].holds, found[0].error) == (True, "")
    assert found[1].error == "operation cancelled: actual cost limit exceeded"


# -- messages ------------------------------------------------------------------------------------


def told(message: str = "", expression: str = "") -> str:
    scenario = small().done().expect("x", "false", message).build()
    if expression:
        scenario["spec"]["expectations"][0]["messageExpression"] = expression
    return kubescene.run(scenario).expectations[0].message


def test_without_a_message_the_expression_is_told() -> None:
    assert told() == "failed expression: false"


def test_a_message_can_be_an_expression() -> None:
    assert told("no", "string(pending.size()) + ' wait'") == "1 wait"


@pytest.mark.parametrize("expression", ["pod['x'].node", "' '"], ids=["no value", "blank"])
def test_a_message_without_a_value_gives_way_to_the_plain_one(expression: str) -> None:
    assert told("no", expression) == "no"


def test_a_very_long_message_is_cut() -> None:
    assert len(told("no", "'a'.replace('a', '" + "b" * 5000 + "')")) == 1000


def test_what_holds_has_nothing_to_tell() -> None:
    (found,) = outcomes(small().done(), "true")
    assert (found.message, found.error, found.why) == ("", "", "")


# -- where it is told ----------------------------------------------------------------------------


def test_outcomes_stand_in_status_summary_and_timeline(tmp_path: Path) -> None:
    scenario = small().done().expect("a", "true").expect("b", "pod['x'].node == ''", "no")
    run = kubescene.run(scenario, out=tmp_path)
    status = run.scenario["status"]["expectations"]
    assert status == [
        {"name": "a", "expression": "true", "holds": True},
        {
            "name": "b",
            "expression": "pod['x'].node == ''",
            "holds": False,
            "message": "no",
            "error": "no such key: x",
        },
    ]
    summary = orjson.loads((tmp_path / "summary.json").read_bytes())
    assert [each["holds"] for each in summary["expectations"]] == [True, False]
    evaluated, ended = TimelineLog.open(tmp_path / "timeline.jsonl")[-2:]
    assert isinstance(evaluated, ExpectationsEvaluated)
    assert [each.name for each in evaluated.outcomes] == ["a", "b"]
    assert isinstance(ended, ScenarioEnded)
    again = summarize(TimelineLog.open(tmp_path / "timeline.jsonl"), scenario="small")
    assert again.expectations == run.expectations
    assert "  expectations:\n" in (tmp_path / "result.yaml").read_text()


def test_a_scenario_that_expects_nothing_says_nothing_of_it() -> None:
    run = kubescene.run(small().done())
    assert "expectations" not in run.scenario["status"]
    assert not any(isinstance(fact, ExpectationsEvaluated) for fact in run.log)


def test_a_scenario_that_failed_is_expected_nothing_of() -> None:
    twice = small().step(3).create(make_node("n-0")).done().expect("x", "true")
    run = kubescene.run(twice)
    assert run.phase == "Failed"
    assert run.expectations == []
    assert "expectations" not in run.scenario["status"]


def test_a_pause_is_looked_at_too() -> None:
    run = kubescene.run(small().expect("x", "phase == 'Paused'"))
    assert (run.phase, run.expectations[0].holds) == ("Paused", True)


def test_expectations_see_time_that_passed_after_the_last_event() -> None:
    scenario = small().step(3).advance("10m").done()
    found = outcomes(scenario, "measures.virtual_seconds == 600", "pending[0].pending_s == 600.0")
    assert [each.holds for each in found] == [True, True]


def test_preemptions_and_pods_that_are_gone() -> None:
    pod = make_pod("low-$(INDEX)").cpu("1")
    scenario = (
        ScenarioBuilder("p")
        .step(1)
        .create(make_priority_class("high", 100), make_node("n").cpu("2").memory("1Gi").pods("9"))
        .create(pod, count=2)
        .step(2)
        .create(make_pod("urgent").cpu("2").priority_class("high"))
        .step(3)
        .delete("v1", "Node", "n")
        .done()
    )
    found = outcomes(
        scenario,
        "preemptions.size() == 2 && preemptions.all(p, p.preemptor.endsWith('urgent'))",
        "deleted_pods.size() == 2 && pods.size() == 1",
        "nodes.size() == 0 && removed_nodes[0].name == 'n'",
    )
    assert [(each.holds, each.error) for each in found] == [(True, "")] * 3


# -- the variables are the tables ----------------------------------------------------------------


def test_every_column_of_every_table_can_be_used() -> None:
    run = kubescene.run(small().done())
    found = tables(run)
    lists = {"pods", "nodes", "steps", "attempts", "preemptions", "utilization"}
    assert lists < set(found)
    for name in lists:
        element = TYPES[name].parts[0]
        columns = set(found[name].columns) - ({"facts"} if name == "steps" else set())
        assert {field for field, _ in element.fields or ()} == columns


def test_every_measure_of_a_run_can_be_named() -> None:
    found = measures(kubescene.run(small().done()))
    known = {name for name, _ in TYPES["measures"].fields or ()}
    assert set(found) <= known


def test_values_are_of_the_types_that_were_promised() -> None:
    run = kubescene.run(small().step(3).delete("v1", "Node", "n-0").done().expect("x", "true"))
    evaluation = heard(run, "true")
    for name, variable in VARIABLES.items():
        value = evaluation._findings.values([name])[name]
        assert fits(value, variable.type), name


def test_an_expectation_sees_what_the_tables_say_afterwards() -> None:
    scenario = small().step(3).delete("v1", "Node", "n-0").step(4).advance("1h").done()
    run = kubescene.run(scenario.expect("x", "true"))
    *before, evaluated, ended = run.log
    assert isinstance(evaluated, ExpectationsEvaluated)
    findings = ResultVariables(TimelineLog(before), Ending("Succeeded", ended.time))
    while findings.read_on():
        pass
    found, after = findings.values(TYPES), tables(run)
    pods = [row for row in orjson.loads(after["pods"].json()) if row["state"] != "Deleted"]
    assert found["pods"] == pods
    assert found["nodes"] + found["removed_nodes"] == [
        *(row for row in orjson.loads(after["nodes"].json()) if row["present"]),
        *(row for row in orjson.loads(after["nodes"].json()) if not row["present"]),
    ]
    steps = [{**row, "facts": 0} for row in orjson.loads(after["steps"].json())]
    assert [{**row, "facts": 0} for row in found["steps"]] == steps
    assert found["measures"] == measures(run)


def heard(run: kubescene.Run, *texts: str) -> ResultEvaluation:
    ending = Ending(str(run.phase), run.log[-1].time)
    asked = tuple(Expectation(text, text) for text in texts)
    evaluation = ResultEvaluation(asked, run.log, ending)
    while evaluation.go_on():
        pass
    return evaluation


PYTHON: dict[str, Any] = {"string": str, "int": int, "double": float, "bool": bool}


def fits(value: Any, type: Type) -> bool:
    if value is None or type.is_open:
        return True
    if type.name == "list":
        return all(fits(each, type.parts[0]) for each in value)
    if type.name == "map":
        return all(fits(k, type.parts[0]) and fits(v, type.parts[1]) for k, v in value.items())
    if type in ROW_TYPES:
        return all(fits(value[name], inner) for name, inner in type.fields or ())
    return isinstance(value, PYTHON[type.name])


# -- forks, order, equal bytes -------------------------------------------------------------------


def test_a_hearing_can_be_copied_in_its_middle() -> None:
    run = kubescene.run(small().done())
    ending = Ending("Succeeded", run.log[-1].time)
    evaluation = ResultEvaluation((Expectation("a", "pods.size() == 5"),), run.log, ending)
    assert evaluation.go_on()
    twin = copy.deepcopy(evaluation)
    while twin.go_on():
        pass
    assert twin.outcomes[0].holds
    assert evaluation.outcomes == ()


def test_a_hearing_reads_a_few_facts_at_a_time() -> None:
    pod = make_pod("p-$(INDEX)")
    many = ScenarioBuilder("m").settings(explain="Off").step(1).create(pod, count=1500).done()
    run = kubescene.run(many)
    ending = Ending("Succeeded", run.log[-1].time)
    evaluation = ResultEvaluation((Expectation("a", "pods.size() == 1500"),), run.log, ending)
    turns = 1
    while evaluation.go_on():
        turns += 1
    assert turns >= len(run.log) // 500
    assert evaluation.outcomes[0].holds


def test_equal_runs_give_equal_outcomes(tmp_path: Path) -> None:
    scenario = small().done().expect("a", "pods.size() == 5").expect("b", "pod['x'].node == ''")
    first, second = tmp_path / "1", tmp_path / "2"
    kubescene.run(scenario, out=first)
    kubescene.run(scenario, out=second)
    for name in ("timeline.jsonl", "summary.json", "result.yaml"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_result_can_be_played_again(tmp_path: Path) -> None:
    scenario = small().done().expect("a", "pods.size() == 5")
    kubescene.run(scenario, out=tmp_path / "1")
    kubescene.run(tmp_path / "1" / "result.yaml", out=tmp_path / "2")
    names = ("1", "2")
    assert len({(tmp_path / name / "timeline.jsonl").read_bytes() for name in names}) == 1


@pytest.mark.parametrize(
    ("expression", "seen"),
    [
        ("pods.size() <= 1", "2 <= 1"),
        ("pods.size() == 2 && pods.size() > 2", "2 > 2"),
        ("pods.size() > 7 || pods.size() < 1", "2 > 7, 2 < 1"),
        ("!(pods.size() == 2)", "!(2 == 2)"),
        ('pods.all(p, p.state == "Bound")', 'p = "b": "Pending" == "Bound"'),
        ('phase == "Failed"', '"Succeeded" == "Failed"'),
        ("2 < 1", ""),
        ("false", ""),
        ("pods.size() / 0 == 1", ""),
    ],
)
def test_what_does_not_hold_tells_what_was_seen(expression: str, seen: str) -> None:
    scenario = ScenarioBuilder("seen").create(make_node("n").cpu("1"))
    scenario.create(make_pod("a").cpu("1"), make_pod("b").cpu("1")).done()
    (outcome,) = kubescene.run(scenario.expect("x", expression)).expectations
    assert (outcome.holds, outcome.seen) == (False, seen)


def test_a_long_list_is_not_written_out() -> None:
    scenario = ScenarioBuilder("many").create(make_pod("p-$(INDEX)"), count=20).done()
    (outcome,) = kubescene.run(scenario.expect("x", "pods == []")).expectations
    assert outcome.seen == "{20 elements} == []"
