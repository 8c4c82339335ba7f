"""Tables: typed rows, and what becomes of them."""

import csv
import io
import sys
from pathlib import Path

import orjson
import polars as pl
import pytest

import kubescene
from kubescene.errors import ConfigurationError
from kubescene.reports.tables import text_lines
from kubescene.results import (
    allocation_rate,
    annotated_results,
    by_pod,
    iterate,
    node_utilization,
    open_run,
    scheduling_results,
)
from kubescene.runs.local import Run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.timeline import PodScheduled

NAMES = [
    "pods",
    "nodes",
    "steps",
    "allocation",
    "attempts",
    "preemptions",
    "outcomes",
    "utilization",
    "facts",
    "measures",
    "workloads",
    "rollouts",
    "budgets",
    "scaling",
    "traffic",
    "windows",
    "series",
    "workload_series",
    "instances",
    "costs",
    "cost_series",
]


@pytest.fixture(scope="module")
def run() -> Run:
    node = make_node("n-$(INDEX)").cpu("4").memory("8Gi").capacity("ephemeral-storage", "2Gi")
    return kubescene.run(
        ScenarioBuilder("tables")
        .create(node, count=2)
        .step(2)
        .create(make_pod("a").cpu("1").request("ephemeral-storage", "1Gi"), make_pod("b").cpu("8"))
        .advance("90s")
        .step(3)
        .delete("v1", "Pod", "a", namespace="default")
        .step(4)
        .create(make_pod("a").cpu("2").memory("1Gi"))
        .done()
    )


def test_there_are_these_tables(run: Run) -> None:
    assert list(open_run(run).tables()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_form_holds_the_same(run: Run, name: str, tmp_path: Path) -> None:
    table = open_run(run).tables()[name]
    rows, frame = table.rows, table.frame()
    assert frame.height == len(rows)
    assert tuple(frame.columns) == table.columns
    listed = list(csv.DictReader(io.StringIO(table.csv())))
    assert len(listed) == len(rows)
    assert orjson.loads(table.json()) == [
        {name: getattr(row, name) for name in table.columns} for row in rows
    ]
    table.parquet(tmp_path / "table.parquet")
    assert pl.read_parquet(tmp_path / "table.parquet").equals(frame)


def test_frames_know_types_even_without_values() -> None:
    tables = open_run(kubescene.run(ScenarioBuilder("empty").done())).tables()
    schema = tables["pods"].frame().schema
    assert schema["cpu"] == schema["attempts"] == pl.Int64
    assert schema["pending_s"] == schema["bound_s"] == pl.Float64
    assert schema["censored"] == pl.Boolean
    assert schema["other"] == pl.String
    assert tables["measures"].frame().schema["value"] == pl.Float64


def test_a_pod_that_comes_again_under_its_name_is_another_row(run: Run) -> None:
    pods = by_pod(run)
    assert list(pods) == ["default/a", "default/b"]
    first, second = pods["default/a"]
    assert (first.state, second.state) == ("Deleted", "Bound")
    assert (first.other, second.other) == ({"ephemeral-storage": 2**30}, {})
    (waiting,) = pods["default/b"]
    assert waiting.censored
    assert (waiting.pending_s, waiting.pending_steps, waiting.node) == (90.0, 2, "")
    assert "Insufficient cpu" in waiting.message


def test_the_allocation_rate_is_told_step_by_step(run: Run) -> None:
    rates = [(row.step, row.allocation) for row in allocation_rate(run) if row.resource == "cpu"]
    assert rates == [(1, 0.0), (2, 1 / 8), (3, 0.0), (4, 2 / 8)]
    disk = [row.requested for row in allocation_rate(run) if row.resource == "ephemeral-storage"]
    assert disk == [0, 2**30, 0, 0]


def test_the_utilization_of_every_node_is_told_step_by_step(run: Run) -> None:
    rows = [(row.step, row.node, row.cpu_requested) for row in node_utilization(run)]
    assert len(rows) == 4 * 2
    assert sorted(amount for step, _, amount in rows if step == 2) == [0, 1000]
    assert sum(amount for step, _, amount in rows if step == 4) == 2000


def test_attempts_are_the_scheduling_results(run: Run) -> None:
    rows = scheduling_results(run).rows
    assert [(row.pod, bool(row.node)) for row in rows[:2]] == [
        ("default/a", True),
        ("default/b", False),
    ]
    assert rows[1].reason == "Unschedulable"


def test_values_of_ones_own_are_made_by_iterating(run: Run) -> None:
    placed = [
        (moment.fact.name, moment.ledger.totals.requested["cpu"])
        for moment in iterate(run)
        if isinstance(moment.fact, PodScheduled)
    ]
    assert placed == [("a", 1000), ("a", 2000)]


def test_a_pod_that_nobody_tried_says_why() -> None:
    gated = make_pod("gated").gate("example.com/wait")
    scenario = ScenarioBuilder("untried").create(gated, make_pod("other").scheduler("mine"))
    messages = [row.message for row in open_run(kubescene.run(scenario)).tables()["pods"]]
    assert messages == [
        "it waits for its scheduling gates: example.com/wait",
        "no scheduler has tried to place it (schedulerName 'mine')",
    ]


def test_a_pod_that_a_controller_made_names_its_owner(tmp_path: Path) -> None:
    web = make_replica_set("web").replicas(1).template(make_pod("x"))
    run = kubescene.run(ScenarioBuilder("owned").create(web).done(), out=tmp_path)
    for source in (open_run(run), open_run(tmp_path), open_run(run.scenario)):
        assert [row.owner for row in source.tables()["pods"]] == ["ReplicaSet/web"]
    (last,) = {moment.ledger.pods[-1].owner for moment in iterate(tmp_path) if moment.ledger.pods}
    assert last == "ReplicaSet/web"


def test_a_node_that_is_gone_is_told_as_it_was_last() -> None:
    scenario = (
        ScenarioBuilder("gone")
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
        .step(2)
        .delete("v1", "Node", "n")
        .done()
    )
    source = open_run(kubescene.run(scenario))
    (node,) = source.tables()["nodes"]
    assert (node.present, node.ended_step, node.pods, node.cpu_requested) == (False, "2.0", 1, 1000)
    assert [row.step for row in source.tables()["utilization"]] == [1]
    assert source.ledger.totals.requested["cpu"] == 0


def test_a_node_that_comes_back_finds_its_pods() -> None:
    scenario = ScenarioBuilder("back").create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
    scenario.step(2).delete("v1", "Node", "n").step(3).create(make_node("n").cpu("8"))
    source = open_run(kubescene.run(scenario.done()))
    assert [(row.present, row.cpu_requested) for row in source.tables()["nodes"]] == [
        (False, 1000),
        (True, 1000),
    ]
    assert source.measures()["allocation_cpu"] == 1 / 8


def test_without_polars_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'kubescene\[frames\]'"):
        open_run(run).tables()["pods"].frame()


def test_annotations_of_a_pod_are_read_back() -> None:
    scenario = ScenarioBuilder("noted").settings(annotations=True).create(make_pod("a").cpu("1"))
    scenario.step(2).create(make_node("n").cpu("4"), make_node("m").cpu("4")).done()
    run = kubescene.run(scenario)
    first, last = annotated_results(run.cluster.get("pods", "a"))
    assert first["filter-result"] == {}
    assert last["filter-result"]["n"]["NodeResourcesFit"] == "passed"
    assert last["selected-node"] in ("m", "n")
    assert annotated_results(run.cluster.get("nodes", "n")) == []


def test_annotations_of_somebody_else_are_named() -> None:
    odd = make_pod("a").annotate({"kube-scheduler-simulator.sigs.k8s.io/result-history": "{"})
    with pytest.raises(ConfigurationError, match=r"pod a: its annotations"):
        annotated_results(odd.build())


def labelled(out: Path | None = None) -> Run:
    """One pod's label changes, one pod has none."""
    pod = make_pod("a").labels({"app": "web", "tier": "front"})
    scenario = ScenarioBuilder("labelled").create(make_node("n"), pod, make_pod("b"))
    patch = {"metadata": {"labels": {"app": "api"}}}
    return kubescene.run(scenario.step(2).patch("v1", "Pod", "a", patch).done(), out=out)


def test_pods_have_their_labels_as_they_were_last(tmp_path: Path) -> None:
    rows = open_run(labelled(tmp_path)).tables()["pods"].rows
    assert [row.labels for row in rows] == [{"app": "api", "tier": "front"}, {}]
    assert open_run(tmp_path).tables()["pods"].rows == rows


def test_labels_can_be_columns_of_their_own() -> None:
    table = open_run(labelled()).tables()["pods"].with_labels(["tier", "app.kubernetes.io/name"])
    assert table.columns[-2:] == ("labels.tier", "labels.app.kubernetes.io/name")
    assert table.csv().splitlines()[1].endswith(",front,")
    assert [row["labels.tier"] for row in orjson.loads(table.json())] == ["front", None]
    assert table.frame()["labels.tier"].to_list() == ["front", None]
    assert [line.split()[-2] for line in text_lines(table)] == ["LABELS.TIER", "front", "-"]


def test_tables_without_labels_say_so() -> None:
    with pytest.raises(ConfigurationError, match="the table steps has no labels; pods and nodes"):
        open_run(labelled()).tables()["steps"].with_labels(["app"])
