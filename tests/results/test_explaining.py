"""`kubescene explain`: what a run's side file says about one pod."""

import pickle
from io import StringIO
from operator import mul
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

import kubescene
from kubescene.cli.app import app
from kubescene.errors import ConfigurationError
from kubescene.reports.explaining import print_attempt
from kubescene.results.explaining import read_attempts
from kubescene.results.pod_index import (
    EXPLANATIONS,
    TIMELINE,
    IndexHeader,
    PodIndex,
    PodIndexWriter,
    key_of,
)
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline.compacting import unfolded


@pytest.fixture
def run(tmp_path: Path) -> Path:
    nodes = (make_node("small").cpu("1"), make_node("big").cpu("8"), make_node("bigger").cpu("16"))
    tainted = make_node("tainted").cpu("8").taint("keep", value="out")
    scenario = (
        ScenarioBuilder("s")
        .create(*nodes, tainted)
        .step(2)
        .create(make_pod("a").cpu("2"))
        .step(3)
        .create(make_pod("huge").cpu("99"))
    )
    kubescene.run(scenario, out=tmp_path)
    return tmp_path


def test_the_chosen_node_comes_first_and_its_scores_add_up(run: Path) -> None:
    (attempt,) = read_attempts(run, "a")
    best = attempt.verdicts[0]
    assert (attempt.node, best.node) == ("bigger", "bigger")
    assert best.total == sum(best.scores)
    assert attempt.plugins[0] == "TaintToleration"


def test_rejected_nodes_name_plugin_and_reason(run: Path) -> None:
    (attempt,) = read_attempts(run, "default/a")
    rejected = {v.node: (v.rejected_by, v.reasons) for v in attempt.verdicts if v.rejected_by}
    assert rejected == {
        "small": ("NodeResourcesFit", "Insufficient cpu"),
        "tainted": ("TaintToleration", "node(s) had untolerated taint(s)"),
    }


@pytest.mark.parametrize("file", ["timeline.jsonl", "explanations.jsonl"])
def test_a_wrong_byte_in_a_line_is_told_with_its_place(run: Path, file: str) -> None:
    data = (run / file).read_bytes()
    before, pod, rest = data.rpartition(b'"NodeResourcesFit"')
    (run / file).write_bytes(before + pod.replace(b"F", b"\xf6") + rest)
    with pytest.raises(ConfigurationError, match=rf"{file}, line \d+: "):
        read_attempts(run, "huge")


def test_an_index_that_points_beyond_the_files_finds_nothing(run: Path) -> None:
    data = (run / "pods.index").read_bytes()
    begin = data.find(b"\n") + 1
    records = [data[at : at + 24] for at in range(begin, len(data), 24)]
    beyond = [record[:8] + b"\xff" * 8 + record[16:] for record in records]
    (run / "pods.index").write_bytes(data[:begin] + b"".join(beyond))
    assert read_attempts(run, "huge") == []


def test_a_failed_attempt_has_the_schedulers_message(run: Path) -> None:
    (attempt,) = read_attempts(run, "huge")
    assert attempt.node == ""
    assert attempt.message.startswith("0/4 nodes are available:")
    assert len(attempt.verdicts) == 4


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name the --out directory of a run"):
        read_attempts(tmp_path / "nothing", "a")


def test_the_command_shows_the_table(run: Path) -> None:
    shown = CliRunner().invoke(app, ["explain", "a", "--run", str(run)])
    assert shown.exit_code == 0
    assert "default/a at step 2.1: bound to bigger" in shown.output
    assert "chosen" in shown.output


def test_an_unknown_pod_is_bad_input(run: Path) -> None:
    shown = CliRunner().invoke(app, ["explain", "nobody", "--run", str(run)])
    assert shown.exit_code == 2
    assert "tells of no attempt at nobody" in shown.output


# -- what was not explained --------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Above 200 nodes only failures are explained."""
    out = tmp_path_factory.mktemp("large")
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n-$(INDEX)").cpu("2"), count=201)
        .create(make_pod("a").cpu("1"))
        .create(make_pod("late").cpu("3"))
        .step(2)
        .create(make_node("big").cpu("4"))
    )
    kubescene.run(scenario, out=out)
    return out


def test_a_pod_whose_scores_were_not_kept_is_told_where_it_went(large: Path) -> None:
    (attempt,) = read_attempts(large, "a")
    assert attempt.node.startswith("n-")
    assert not attempt.explained
    assert attempt.feasible == attempt.evaluated > 50
    shown = CliRunner().invoke(app, ["explain", "a", "--run", str(large)])
    assert shown.exit_code == 0
    assert f"default/a at step 1.1: bound to {attempt.node}" in shown.output
    assert "scores were not kept" in " ".join(shown.output.split())
    assert "spec.simulation.explain: Full" in " ".join(shown.output.split())


def test_a_pod_that_waited_is_told_to_its_end(large: Path) -> None:
    failed, bound = read_attempts(large, "late")
    assert (failed.explained, failed.node) == (True, "")
    assert failed.message.startswith("0/201 nodes are available:")
    assert len(failed.verdicts) == 201
    assert (bound.explained, bound.node) == (False, "big")


def test_a_run_explains_from_python(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_node("m").cpu("4"))
    scenario = scenario.create(make_pod("a").cpu("2")).step(2).create(make_pod("b").cpu("9"))
    in_memory, on_disk = kubescene.run(scenario), kubescene.run(scenario, out=tmp_path)
    for pod in ("a", "default/b", "nobody"):
        assert in_memory.explain(pod) == on_disk.explain(pod) == read_attempts(tmp_path, pod)
    (attempt,) = in_memory.explain("a")
    assert (attempt.node, attempt.explained) == ("m", True)
    assert list(in_memory.explanations) == list(on_disk.explanations)


def test_an_explanation_belongs_to_its_own_attempt(tmp_path: Path) -> None:
    scenario = (
        ScenarioBuilder("s")
        .settings(explain="Failures")
        .create(make_node("n").cpu("2"), make_pod("a").cpu("1"))
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .step(3)
        .create(make_pod("a").cpu("9"))
    )
    kubescene.run(scenario, out=tmp_path)
    bound, failed = read_attempts(tmp_path, "a")
    assert (bound.step, bound.node, bound.explained) == ("1.1", "n", False)
    assert (failed.step, failed.node, failed.explained) == ("3.0", "", True)


def test_pods_of_other_names_are_not_confused(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").pods("9"), make_pod("a"), make_pod("aa"))
    run = kubescene.run(scenario.create(make_pod("a").namespace("kube-system")), out=tmp_path)
    assert run.ok, run.message
    assert [attempt.step for attempt in read_attempts(tmp_path, "a")] == ["1.1"]
    assert [attempt.step for attempt in read_attempts(tmp_path, "aa")] == ["1.2"]
    assert [attempt.step for attempt in read_attempts(tmp_path, "kube-system/a")] == ["1.3"]


def test_node_lists_belong_to_the_attempts_after_them(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("b").cpu("1"), make_pod("first"))
    scenario = scenario.step(2).create(make_node("a").cpu("8"), make_pod("second").cpu("2"))
    kubescene.run(scenario, out=tmp_path)
    assert [v.node for v in read_attempts(tmp_path, "first")[0].verdicts] == ["b"]
    assert {v.node for v in read_attempts(tmp_path, "second")[0].verdicts} == {"a", "b"}


# -- damaged files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b'"scores":', b'"sco', r"explanations\.jsonl, line 3: "),
        (b'"feasible":[', b'"feasible":["x",', r"explanations\.jsonl, line 3: .*feasible"),
        (b'"feasible":[', b'"feasible":[77,', r"explanations\.jsonl, line 3: the list of nodes"),
        (b'"feasible":[', b'"feasible":[[0,9],', r"line 3: the list of nodes .* no node \(0, 9\)"),
        (b'"feasible":[', b'"feasible":[[1,0],', r"line 3: the list of nodes .* no node \(1, 0\)"),
        (b'"feasible":[', b'"feasible":[-1,', r"line 3: the list of nodes .* no node -1 among 4"),
        (b'"raw":[', b'"raw":[5,', r"line 3: the list of nodes .* 3 values for 2 nodes"),
        (b'{"nodes":["', b'{"knots":["', r"explanations\.jsonl, line 3: the list of nodes"),
        (b'{"schema":', b'{"scheme":', r"explanations\.jsonl, line 1: these are not explanations"),
    ],
    ids=["cut", "type", "index", "run", "backwards", "negative", "column", "no nodes", "schema"],
)
def test_damaged_explanations_are_named(run: Path, old: bytes, new: bytes, fault: str) -> None:
    file = run / "explanations.jsonl"
    file.write_bytes(file.read_bytes().replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=fault):
        read_attempts(run, "a")


def written_out(line: bytes) -> bytes:
    """A line as version 1 had it: indexes, columns and totals one by one."""
    row = orjson.loads(line)
    if "pod" not in row:
        return line
    row["feasible"] = unfolded(row["feasible"], 4)
    for group in row["filters"]:
        group["nodes"] = unfolded(group["nodes"], 4)
    row["scored"] = row["feasible"] if row["scores"] else []
    for column in row["scores"].values():
        column.setdefault("normalized", column["raw"])
        for name in ("raw", "normalized"):
            if isinstance(column[name], int):
                column[name] = [column[name]] * len(row["scored"])
    rows = zip(*(column["normalized"] for column in row["scores"].values()), strict=True)
    weights = [column["weight"] for column in row["scores"].values()]
    row["totals"] = [sum(map(mul, scores, weights)) for scores in rows]
    return orjson.dumps(row)


@pytest.mark.parametrize("pod", ["a", "huge"])
def test_explanations_of_the_version_before_tell_the_same(run: Path, pod: str) -> None:
    expected, file = read_attempts(run, pod), run / "explanations.jsonl"
    first, *lines = file.read_bytes().splitlines()
    assert first.endswith(b'"version":2}')
    older = [first.replace(b"2", b"1"), *map(written_out, lines)]
    file.write_bytes(b"".join(line + b"\n" for line in older))
    assert read_attempts(run, pod) == expected
    assert expected[0].explained


def test_explanations_of_a_later_version_are_refused(run: Path) -> None:
    file = run / "explanations.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"version":2', b'"version":3', 1))
    with pytest.raises(ConfigurationError, match=r"line 1: .* version 1 or 2\)"):
        read_attempts(run, "a")


def test_a_damaged_timeline_is_named(run: Path) -> None:
    file = run / "timeline.jsonl"
    lines = file.read_bytes().split(b"\n")
    number = next(
        n for n, line in enumerate(lines, 1) if line.startswith(b'{"fact":"PodScheduled"')
    )
    lines[number - 1] = lines[number - 1].replace(b'"attempt":1', b'"attempt":"one"')
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(ConfigurationError, match=rf"timeline\.jsonl, line {number}: .*attempt"):
        read_attempts(run, "a")


@pytest.mark.parametrize("name", ["explanations.jsonl", "timeline.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{", b"[]\n[]\n"], ids=str)
def test_no_content_of_a_file_is_a_traceback(run: Path, name: str, content: bytes) -> None:
    (run / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=rf"{name}, line 1: "):
        read_attempts(run, "a")


# -- the index ---------------------------------------------------------------------------------


def crowd(out: Path) -> None:
    scenario = ScenarioBuilder("crowd").create(make_node("n-$(INDEX)").cpu("4"), count=3)
    pods = make_pod("p-$(INDEX)").cpu("1")
    kubescene.run(scenario.next_step().create(pods, count=20).next_step(), out=out)


def test_the_index_finds_what_a_search_finds(tmp_path: Path) -> None:
    crowd(tmp_path)
    pods = [f"p-{number}" for number in range(20)]
    indexed = [read_attempts(tmp_path, pod) for pod in pods]
    (tmp_path / "pods.index").unlink()
    searched = [read_attempts(tmp_path, pod) for pod in pods]
    assert indexed == searched
    assert all(attempts and attempts[0].explained for attempts in indexed)
    assert read_attempts(tmp_path, "p-99") == []


def test_an_index_that_is_not_of_these_files_is_not_used(tmp_path: Path) -> None:
    crowd(tmp_path)
    expected = read_attempts(tmp_path, "p-3")
    file = tmp_path / "timeline.jsonl"
    first, _, rest = file.read_bytes().partition(b"\n")
    # The same facts at other positions: an index that is believed would find nothing.
    file.write_bytes(first[:-1] + b" " * 7 + first[-1:] + b"\n" + rest)
    assert read_attempts(tmp_path, "p-3") == expected


def test_the_index_holds_the_lines_of_a_pod_in_order(tmp_path: Path) -> None:
    writer = PodIndexWriter()
    writer.note("a/x", TIMELINE, 10)
    writer.note("a/y", TIMELINE, 20)
    writer.note("a/x", TIMELINE, 30)
    writer.note("a/x", EXPLANATIONS, 40, 5)
    header = IndexHeader(timeline_bytes=1, explanations_bytes=2)
    writer.write(tmp_path / "pods.index", header)
    index = PodIndex(tmp_path / "pods.index", header)
    assert index.find("a/x", TIMELINE) == [(10, 0), (30, 0)]
    assert index.find("a/x", EXPLANATIONS) == [(40, 5)]
    assert index.find("a/z", TIMELINE) == []
    assert PodIndex(tmp_path / "pods.index", IndexHeader()).find("a/x", TIMELINE) is None
    assert PodIndex(tmp_path / "none", header).find("a/x", TIMELINE) is None


def test_pods_of_one_checksum_are_told_apart(tmp_path: Path) -> None:
    names = ("plumless", "buckeroo")
    assert len({key_of(f"default/{name}", TIMELINE) for name in names}) == 1
    scenario = ScenarioBuilder("s").create(make_node("n"), *map(make_pod, names))
    kubescene.run(scenario, out=tmp_path)
    for name in names:
        (attempt,) = read_attempts(tmp_path, name)
        assert attempt.pod == f"default/{name}"
        assert attempt.explained


def test_a_pod_that_nobody_tried_is_not_called_unknown(tmp_path: Path) -> None:
    gated = make_pod("gated").build()
    gated = {**gated, "spec": {**gated["spec"], "schedulingGates": [{"name": "x"}]}}
    kubescene.run(ScenarioBuilder("s").create(make_node("n"), gated), out=tmp_path)
    asked = CliRunner().invoke(app, ["explain", "gated", "--run", str(tmp_path)])
    assert asked.exit_code == 2
    assert "no scheduler has ended an attempt at it: it was gated" in asked.stderr
    asked = CliRunner().invoke(app, ["explain", "nobody", "--run", str(tmp_path)])
    assert "there is no such pod: check the name" in asked.stderr


def test_nothing_is_cut_at_80_columns(run: Path) -> None:
    console = Console(file=StringIO(), width=80)
    (attempt,) = read_attempts(run, "a")
    print_attempt(attempt, console)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert "…" not in shown
    assert "tainted  TaintToleration: node(s) had untolerated taint(s)" in shown
    assert "small    NodeResourcesFit: Insufficient cpu" in shown


def test_lines_that_are_made_later_are_those_made_at_once(tmp_path: Path) -> None:
    """The world goes on: nodes come, fill up, are cordoned; what was explained stays as it was."""
    built = ScenarioBuilder("s").settings(explain="Full")
    built.create(make_node("n-$(INDEX)").cpu("4").label(zone="a"), count=120)
    built.create(make_pod("a-$(INDEX)").cpu("1"), count=40)
    built.step(2).create(make_node("m-$(INDEX)").cpu("8"), count=30)
    built.patch("v1", "Node", "n-7", {"spec": {"unschedulable": True}})
    built.patch("v1", "Node", "n-9", {"metadata": {"labels": {"zone": "b"}}})
    built.create(make_pod("b-$(INDEX)").cpu("3"), count=90)
    built.step(3).delete("v1", "Node", "m-3").create(make_pod("c-$(INDEX)").cpu("5"), count=35)
    scenario = built.done()
    in_memory, on_disk = kubescene.run(scenario), kubescene.run(scenario, out=tmp_path)
    lines = list(in_memory.explanations)
    assert len(lines) > 160
    assert lines == list(on_disk.explanations)
    elsewhere = pickle.loads(pickle.dumps(in_memory.explanations))
    assert list(elsewhere) == lines
    assert elsewhere.of("default/b-5") == in_memory.explanations.of("default/b-5")
