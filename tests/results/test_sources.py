"""The same run tells the same from memory, from its directory, and from its Scenario object."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import kubescene
from kubescene.errors import ConfigurationError
from kubescene.results import open_run
from kubescene.results.explaining import read_attempts
from kubescene.results.sources import RunSource
from kubescene.runs.local import Run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import TimelineLog
from kubescene.timeline.facts import LineWriter

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["01-first-scenario", "06-time-passes", "07-node-fails", "09-preemption", "11-devices"]


def small() -> ScenarioBuilder:
    scenario = ScenarioBuilder("small").settings(seed=7).create(make_node("n").cpu("4"))
    return scenario.step(2).create(make_pod("a").cpu("1"), make_pod("b").cpu("8")).done()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kubescene.run(small(), out=tmp_path / "run")
    return tmp_path / "run"


def rewritten(folder: Path, *lines: bytes) -> None:
    (folder / "timeline.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "timeline.jsonl").read_bytes().splitlines()


def bound(source: RunSource) -> int:
    return source.ledger.states["Bound"]


@pytest.mark.parametrize("name", NAMES)
def test_memory_and_directory_tell_the_same(name: str, tmp_path: Path) -> None:
    run = kubescene.run(EXAMPLES / name / "scenario.yaml", out=tmp_path)
    memory, directory = open_run(run), open_run(tmp_path)
    for table in memory.tables():
        assert memory.tables()[table].rows == directory.tables()[table].rows
    assert memory.spec == directory.spec
    assert memory.digest == directory.digest != ""
    assert (memory.scenario, memory.seed, memory.phase) == (
        directory.scenario,
        directory.seed,
        directory.phase,
    )


@pytest.mark.parametrize("name", ["02-rolling-update", "10-zone-lost", *NAMES])
def test_streamed_facts_are_those_that_were_written(name: str, tmp_path: Path) -> None:
    kubescene.run(EXAMPLES / name / "scenario.yaml", out=tmp_path)
    writer, source = LineWriter(), open_run(tmp_path)
    assert [writer.line(fact) for fact in source.facts()] == lines_of(tmp_path)[1:]


def same_but(left: Any, right: Any, *names: str) -> bool:
    """Whether two rows differ in nothing but these columns."""
    fields = [name for name in left.__struct_fields__ if name not in names]
    return all(getattr(left, name) == getattr(right, name) for name in fields)


@pytest.mark.parametrize("name", ["04-two-controllers", "09-preemption", "11-devices"])
def test_a_scenario_object_tells_the_same_but_for_what_its_events_leave_out(name: str) -> None:
    run = kubescene.run(EXAMPLES / name / "scenario.yaml")
    facts, events = open_run(run).tables(), open_run(run.scenario).tables()
    for table in facts:
        left_out = ("profile", "reason", "nominated") if table == "attempts" else ()
        pairs = zip(facts[table], events[table], strict=True)
        assert all(same_but(*pair, *left_out) for pair in pairs)


def test_time_that_passes_in_the_end_is_in_the_events_too() -> None:
    run = kubescene.run(EXAMPLES / "02-rolling-update" / "scenario.yaml")
    spans = [open_run(where).measures()["virtual_seconds"] for where in (run, run.scenario)]
    assert spans[0] == spans[1] == 1080


def test_attempts_are_explained_from_every_source(tmp_path: Path) -> None:
    run = kubescene.run(EXAMPLES / "01-first-scenario" / "scenario.yaml", out=tmp_path)
    memory, directory = (open_run(where).explain("report-2") for where in (run, tmp_path))
    (event,) = open_run(run.scenario).explain("report-2")
    assert memory == directory
    assert (event.message, event.evaluated) == (memory[0].message, memory[0].evaluated)
    assert {each.node: each.rejected_by for each in event.verdicts} == {
        each.node: each.rejected_by for each in memory[0].verdicts
    }


def test_scores_are_told_by_events() -> None:
    run = kubescene.run(EXAMPLES / "01-first-scenario" / "scenario.yaml")
    (event,), (fact,) = (open_run(each).explain("database") for each in (run.scenario, run))
    assert event.verdicts[0].node == event.node == fact.node
    assert [each.total for each in event.verdicts] == [each.total for each in fact.verdicts]


def test_a_scenario_in_a_file_can_be_read(tmp_path: Path) -> None:
    run = kubescene.run(small(), out=tmp_path, full_status=True)
    source = open_run(tmp_path / "result.yaml")
    assert source.place == str(tmp_path / "result.yaml")
    assert source.measures() == open_run(run).measures()
    kubescene.run(small(), out=tmp_path)
    with pytest.raises(ConfigurationError, match="has no timeline"):
        open_run(tmp_path / "result.yaml")


def test_a_log_alone_can_be_read() -> None:
    run = kubescene.run(small())
    assert bound(open_run(run.log)) == bound(open_run(run.result)) == 1
    assert open_run(run.log).spec is None


def test_a_source_is_itself(folder: Path) -> None:
    source = open_run(folder)
    assert open_run(source) is source
    assert source.complete
    assert (source.scenario, source.seed, source.phase) == ("small", 7, "Succeeded")


def test_the_digest_is_of_the_scenario_not_of_its_seed(tmp_path: Path) -> None:
    digests = [open_run(kubescene.run(small(), seed=seed)).digest for seed in (1, 2)]
    other = open_run(kubescene.run(small().create(make_node("m")))).digest
    assert digests[0] == digests[1] != other


# -- bad input ---------------------------------------------------------------------------------


def test_a_run_that_was_cut_short_is_read_up_to_there(folder: Path) -> None:
    (folder / "summary.json").unlink()
    whole = lines_of(folder)
    (folder / "timeline.jsonl").write_bytes(b"\n".join(whole[:-1]) + b"\n" + whole[-1][:20])
    source = open_run(folder)
    assert not source.complete
    assert source.phase == ""
    assert source.warnings == (
        f"{folder}: the run was cut short or still goes on; it is read up to step 2.1",
    )
    assert bound(source) == 1


def test_a_run_without_its_summary_is_not_complete(folder: Path) -> None:
    (folder / "summary.json").unlink()
    assert not open_run(folder).complete


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"\x00\x00",
        b'{"fact":"ObjectCreated"}',
        b'{"fact":"ObjectCreated","id":"x","step":[1,0],"time":0}',
        b'{"fact":"PodScheduled","id":"x","step":[1,0],"time":"noon"}',
        b'{"fact":"ObjectCreated","id":"x","step":[1,0],"time":0,"apiVersion":"v1","kind":"Pod",'
        b'"name":"x","object":{"spec":{"nodeName":5}}}',
        b'{"fact":"ObjectCreated","id":"x","step":[1,0],"time":0,"apiVersion":"v1","kind":"Node",'
        b'"name":"x","object":{"status":{"allocatable":{"cpu":"many"}}}}',
    ],
)
def test_a_damaged_line_is_named(folder: Path, damage: bytes) -> None:
    lines = lines_of(folder)
    rewritten(folder, *lines[:3], damage, *lines[3:])
    with pytest.raises(ConfigurationError, match=r"timeline\.jsonl, line 4: .*damaged"):
        open_run(folder).measures()


def test_a_damaged_line_is_named_to_those_who_stream(folder: Path) -> None:
    rewritten(folder, *lines_of(folder)[:3], b"{")
    with pytest.raises(ConfigurationError, match=r"timeline\.jsonl, line 4: .*damaged"):
        list(open_run(folder).facts())


def test_facts_of_unknown_kinds_are_passed_over(folder: Path) -> None:
    lines = lines_of(folder)
    strange = b'{"fact":"Novelty","id":"x","step":[1,0],"time":0,"actor":"x","role":"user"}'
    rewritten(folder, *lines[:2], strange, *lines[2:])
    assert bound(open_run(folder)) == 1


def test_another_version_is_refused(folder: Path) -> None:
    header = orjson.loads(lines_of(folder)[0]) | {"version": 99, "kubescene": "9.9"}
    rewritten(folder, orjson.dumps(header), *lines_of(folder)[1:])
    with pytest.raises(ConfigurationError, match=r"version 99.*written by Kubescene 9\.9"):
        open_run(folder)


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no run directory"):
        open_run(tmp_path)
    with pytest.raises(ConfigurationError, match="there is no run at"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="not from int"):
        open_run(3)
    with pytest.raises(ConfigurationError, match="--server http://x"):
        open_run("http://x")
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(ConfigurationError, match=r"notes\.txt, line 1: this is no timeline"):
        open_run(tmp_path / "notes.txt")


def test_what_lies_beside_a_run_leads_to_it(folder: Path) -> None:
    for name in ("summary.json", "ledger.jsonl", "explanations.jsonl", "pods.index"):
        with pytest.raises(ConfigurationError, match=r"is only a part of the run in .*run: name"):
            open_run(folder / name)
    with pytest.raises(ConfigurationError, match=r"no run directory.*there are runs in it: .*run$"):
        open_run(folder.parent)


@pytest.mark.parametrize("part", [0, 1, 40])
def test_a_header_that_was_cut_is_no_other_schema(folder: Path, part: int) -> None:
    (folder / "timeline.jsonl").write_bytes(lines_of(folder)[0][:part])
    with pytest.raises(ConfigurationError, match="line 1: it has no end: the run was cut short"):
        open_run(folder)
    with pytest.raises(ConfigurationError, match="line 1: it has no end: the run was cut short"):
        read_attempts(folder, "a")


def test_a_run_of_which_nothing_is_written_yet_is_empty(folder: Path) -> None:
    rewritten(folder, lines_of(folder)[0])
    (folder / "summary.json").unlink()
    source = open_run(folder)
    assert source.measures()["pods_created"] == 0
    assert not source.complete


def test_a_scenario_without_a_timeline_says_where_to_find_it() -> None:
    with pytest.raises(ConfigurationError, match="scenario small: its status has no timeline"):
        open_run(small().build())
    with pytest.raises(ConfigurationError, match="not a 'Pod'"):
        open_run({"kind": "Pod"})


def test_an_event_that_makes_no_sense_is_named(folder: Path) -> None:
    scenario: dict[str, Any] = kubescene.run(small()).scenario
    del scenario["status"]["scenarioResult"]["timeline"]["1"][0]["create"]["result"]["kind"]
    with pytest.raises(ConfigurationError, match=r"event 'op-1.*' is not as KEP-140 has it"):
        open_run(scenario).measures()


def test_events_are_not_facts() -> None:
    with pytest.raises(ConfigurationError, match="not facts"):
        next(open_run(kubescene.run(small()).scenario).facts())


def test_an_operation_that_only_yaml_can_read_is_read(tmp_path: Path) -> None:
    odd = make_pod("a").annotate({"note": "a \U0001f600 \x7f note"})
    run = kubescene.run(ScenarioBuilder("odd").create(make_node("n"), odd).done(), out=tmp_path)
    assert open_run(tmp_path).spec == open_run(run).spec


def test_a_log_that_grows_can_be_read_again() -> None:
    run: Run = kubescene.run(small())
    half = TimelineLog(run.log[:2])
    assert not open_run(half).complete
    assert open_run(half).ledger.totals.nodes == 1


@pytest.mark.parametrize("delay", ["0s", "20s"])
def test_a_scenario_object_warns_where_its_events_leave_out_when_pods_ended(delay: str) -> None:
    scenario = ScenarioBuilder("slow").settings(kubelet={"terminateDelay": delay})
    scenario.create(make_node("n").cpu("4")).create(make_pod("a").cpu("1")).step(2)
    scenario.delete("v1", "Pod", "a").advance("60s").done()
    run = kubescene.run(scenario)
    known, told = open_run(run), open_run(run.scenario)
    same = known.measures() == told.measures()
    assert same is (not told.warnings) is (delay == "0s")


@pytest.mark.parametrize("how", ["", "annotation", "workloads", "deadline"])
def test_a_scenario_object_warns_where_pods_may_have_ended_by_themselves(how: str) -> None:
    scenario, pod = ScenarioBuilder("ends"), make_pod("a").cpu("1").label(app="a").build()
    pod["spec"]["restartPolicy"] = "Never"
    if how == "annotation":
        pod["metadata"]["annotations"] = {"kubescene.dev/run-time": "30s"}
    elif how == "workloads":
        ends = {"selector": {"matchLabels": {"app": "a"}}, "runTime": "30s"}
        scenario.settings(workloads=[ends])
    elif how == "deadline":
        pod["spec"]["activeDeadlineSeconds"] = 30
    run = kubescene.run(scenario.create(make_node("n").cpu("4"), pod).advance("60s").done())
    known, told = open_run(run), open_run(run.scenario)
    assert known.measures()["allocation_mean_cpu"] == (0.125 if how else 0.25)
    assert known.measures()["pods_finished"] == bool(how)
    assert (known.measures() == told.measures()) is (not told.warnings) is (not how)
    if how:
        assert "when pods ended by themselves" in told.warnings[0]


def test_a_scenario_object_names_nodes_that_no_event_made() -> None:
    scenario = ScenarioBuilder("kept").create(make_pod("a").on("elsewhere"), make_node("n"))
    source = open_run(kubescene.run(scenario.done()).scenario)
    (warning,) = source.warnings
    assert "which pods are on: elsewhere; if they were there before" in warning
