"""Many runs from Python: what is combined, what fails, what is kept."""

import pickle
from pathlib import Path
from typing import Any

import orjson
import pytest

import kubescene
from kubescene.errors import KubesceneError
from kubescene.experiments import MatrixResult, estimate, matrix
from kubescene.experiments.executors.interface import JobDone
from kubescene.experiments.executors.processes import Processes
from kubescene.experiments.jobs import RunJob, played
from kubescene.runs.requests import RunRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.testing import make_node, make_pod
from matrix_plugins import KILL_FILE, Crashing, Dice, KilledOnce

PACKING: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
            ]
        }
    ],
}


def small(name: str = "small", pod: str = "web-$(INDEX)", pods: int = 4) -> ScenarioBuilder:
    nodes = make_node("n-$(INDEX)").cpu("4").memory("8Gi")
    asked = make_pod(pod).cpu("1").memory("1Gi")
    count = pods if "$(INDEX)" in pod else 1
    return ScenarioBuilder(name).create(nodes, count=3).step(2).create(asked, count=count).done()


def failing() -> ScenarioBuilder:
    return ScenarioBuilder("failing").delete("v1", "Pod", "nobody").done()


def by_chance(plugin: type = Dice) -> SchedulerOptions:
    return with_plugin(SchedulerOptions(), plugin)


def shown(result: MatrixResult) -> tuple[str, str, bytes]:
    return result.csv(), result.run_csv(), result.json()


def test_every_scenario_meets_every_configuration_and_seed_in_their_order() -> None:
    result = matrix(
        {"b": small(), "a": small()}, {"spread": None, "pack": PACKING}, seeds=[7, 3], jobs=1
    )
    assert [(row.scenario, row.configuration, row.runs) for row in result.rows] == [
        ("b", "spread", 2),
        ("b", "pack", 2),
        ("a", "spread", 2),
        ("a", "pack", 2),
    ]
    assert [run.seed for run in result.runs[:2]] == [7, 3]


def test_a_measure_is_that_of_the_run_itself() -> None:
    result = matrix(small(), {"pack": PACKING}, seeds=[5], jobs=1)
    own = kubescene.run(small(), scheduler=PACKING, seed=5)
    assert result.runs[0].measures == own.measures
    assert result.rows[0].measures["imbalance_cpu"].mean == own.measures["imbalance_cpu"]


def test_means_and_intervals_are_those_of_the_single_runs() -> None:
    result = matrix(small(pods=6), {"dice": by_chance()}, seeds=5, jobs=1)
    values = [
        kubescene.run(small(pods=6), scheduler=by_chance(), seed=seed).measures["imbalance_cpu"]
        for seed in range(1, 6)
    ]
    assert len(set(values)) > 1
    assert result.rows[0].measures["imbalance_cpu"] == estimate(values)


def test_what_does_not_depend_on_the_seed_is_shown_as_such() -> None:
    found = matrix(small(), seeds=3, jobs=1).rows[0].measures["imbalance_cpu"]
    assert (found.n, found.deviation, found.half_width) == (3, 0.0, 0.0)


def test_a_run_that_fails_does_not_end_the_others() -> None:
    result = matrix([small("one"), failing(), small("two")], seeds=2, jobs=1)
    assert [(row.runs, row.failed) for row in result.rows] == [(2, 0), (0, 2), (2, 0)]
    assert not result.ok
    assert "nobody" in result.rows[1].error
    assert result.rows[1].error.startswith("seed 1: ")
    assert not result.rows[1].measures


def test_the_number_of_jobs_changes_no_byte(tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "scenarios": [small("one"), failing(), small("two", pods=7)],
        "configurations": {"dice": by_chance(), "pack": PACKING},
        "seeds": 3,
    }
    alone = matrix(**asked, jobs=1)
    assert shown(matrix(**asked, jobs=2, out=tmp_path)) == shown(alone)
    assert shown(matrix(**asked, jobs=1, out=tmp_path)) == shown(alone)


class Backwards:
    """An executor whose last job is finished first."""

    def each(self, function: Any, arguments: Any) -> Any:
        for number in reversed(range(len(arguments))):
            yield JobDone(number, pickle.loads(pickle.dumps(function(arguments[number]))))

    def cancel(self) -> None:
        pass


def test_the_order_of_completion_changes_no_byte() -> None:
    asked: dict[str, Any] = {"scenarios": [small("one"), small("two")], "seeds": 3}
    assert shown(matrix(**asked, executor=Backwards())) == shown(matrix(**asked, jobs=1))


# -- processes ---------------------------------------------------------------------------------


def test_a_worker_that_is_killed_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kill"
    monkeypatch.setenv(KILL_FILE, str(file))
    asked: dict[str, Any] = {"scenarios": small(), "configurations": {"x": by_chance(KilledOnce)}}
    file.touch()
    killed = matrix(**asked, seeds=4, jobs=2)
    assert not file.exists()
    assert shown(killed) == shown(matrix(**asked, seeds=4, jobs=1))


def test_a_run_that_kills_its_process_is_an_error_of_that_run_alone() -> None:
    scenarios = [small("one"), small("bad", pod="crash"), small("two")]
    result = matrix(scenarios, {"x": by_chance(Crashing)}, seeds=2, jobs=2)
    assert [(row.runs, row.failed) for row in result.rows] == [(2, 0), (0, 2), (2, 0)]
    assert "ended twice with code 7" in result.rows[1].error


def test_what_cannot_be_sent_is_said_for_that_job() -> None:
    executor = Processes(2)
    found = sorted(executor.each(str, [1, lambda: None, 3]))
    executor.cancel()
    assert [each.value for each in found] == ["1", None, "3"]
    assert "cannot be sent to another process" in found[1].error
    assert list(executor.each(str, [])) == []


# -- going on ----------------------------------------------------------------------------------


class Counting:
    def __init__(self) -> None:
        self.kept = self.played = 0
        self.damaged: list[Path] = []

    def begin(self, total: int, kept: int, damaged: Any) -> None:
        self.kept, self.damaged = kept, list(damaged)

    def finished(self, *, failed: bool) -> None:
        self.played += 1


def again(out: Path, scenario: object = None, **changed: Any) -> Counting:
    counting = Counting()
    asked: dict[str, Any] = {"seeds": 3, "jobs": 1, "out": out, "watcher": counting} | changed
    matrix(small() if scenario is None else scenario, **asked)  # type: ignore[arg-type]  # a builder
    return counting


def test_what_is_finished_is_not_played_again(tmp_path: Path) -> None:
    assert (again(tmp_path).played, again(tmp_path).played) == (3, 0)
    assert (again(tmp_path, seeds=5).kept, len(list(tmp_path.glob("runs/*")))) == (3, 5)


def test_whatever_changes_the_result_makes_another_run(tmp_path: Path) -> None:
    again(tmp_path)
    assert again(tmp_path, small(pods=5)).kept == 0
    assert again(tmp_path, configurations={"pack": PACKING}).kept == 0
    assert again(tmp_path, configurations={"dice": by_chance()}).kept == 0
    assert again(tmp_path, strict=True).kept == 0
    assert again(tmp_path, configurations={"other name": None}).kept == 3


def test_a_file_that_the_scenario_reads_counts(tmp_path: Path) -> None:
    pod = make_pod("a").cpu("1").build()
    (tmp_path / "pod.json").write_bytes(orjson.dumps(pod))
    document = small().build()
    document["spec"]["operations"][1]["createOperation"] = {"objectFrom": "pod.json"}
    file = tmp_path / "scenario.json"
    file.write_bytes(orjson.dumps(document))
    again(tmp_path / "out", file)
    assert again(tmp_path / "out", file).kept == 3
    (tmp_path / "pod.json").write_bytes(orjson.dumps(make_pod("a").cpu("2").build()))
    assert again(tmp_path / "out", file).kept == 0


def test_failed_runs_are_played_again(tmp_path: Path) -> None:
    assert again(tmp_path, failing()).played == 3
    assert again(tmp_path, failing()).played == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"pods_bound":4', b'"pods_bound":5'),
        lambda data: b"\xff\xfe",
        lambda data: b"{}",
    ],
    ids=["empty", "cut", "changed", "binary", "other"],
)
def test_a_damaged_marker_is_played_again(tmp_path: Path, damage: Any) -> None:
    again(tmp_path)
    victim = sorted(tmp_path.glob("runs/*.json"))[1]
    before = victim.read_bytes()
    victim.write_bytes(damage(before))
    counting = again(tmp_path)
    assert (counting.kept, counting.played, counting.damaged) == (2, 1, [victim])
    assert victim.read_bytes() == before


# -- settings ----------------------------------------------------------------------------------

COUNT = "spec.operations.1.createOperation.count"


def test_settings_make_a_row_per_choice() -> None:
    result = matrix(small(), settings={COUNT: [1, 5], "spec.simulation.explain": ["Full"]}, jobs=1)
    assert [row.settings for row in result.rows] == [
        f"{COUNT}={count} spec.simulation.explain=Full" for count in (1, 5)
    ]
    assert [row.measures["pods_bound"].mean for row in result.rows] == [1, 5]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"spec.simulaton.explain": ["Full"]}, "small: .*simulaton.*with spec.simulaton.explain"),
        ({"spec.operations.9.step": [1]}, "3 items, counted from 0, and '9' is none"),
        ({COUNT: []}, "needs a list of values"),
        ({COUNT: [1, 1]}, "count=1 is given twice"),
        ({"spec.simulation.seed": [1, 2]}, "use --seed or --seeds"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(settings: Any, why: str) -> None:
    with pytest.raises(KubesceneError, match=why):
        matrix(small(), settings=settings, jobs=1)


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"scenarios": []}, "there is no scenario"),
        ({"scenarios": [small(), small()]}, "scenario small is given twice"),
        ({"scenarios": "nowhere.yaml"}, "nowhere.yaml"),
        ({"configurations": []}, "there is no configuration"),
        ({"configurations": ["nowhere.yaml"]}, "nowhere.yaml: cannot be read"),
        ({"seeds": 0}, "at least 1, not 0"),
        ({"seeds": -3}, "at least 1, not -3"),
        ({"seeds": []}, "there is no seed"),
        ({"seeds": [1, 2, 1]}, "seed 1 is given twice"),
        ({"seeds": [2**63]}, "64 bits"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"measures": ["pods_bonud"]}, "no measure 'pods_bonud': did you mean pods_bound"),
        ({"measures": ["allocation_gpu"]}, "no measure 'allocation_gpu'"),
        ({"measures": ["cost"]}, "no measure 'cost'"),
        ({"measures": ["least_available_default_web"]}, "no measure 'least_available_default_web'"),
        ({"measures": ["steps", "steps"]}, "steps is named twice"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_played(arguments: Any, why: str) -> None:
    with pytest.raises(KubesceneError, match=why):
        matrix(**{"scenarios": small(), "jobs": 1} | arguments)


# -- frames and notebooks ----------------------------------------------------------------------


def test_a_frame_has_a_row_per_combination_and_its_types_do_not_vary() -> None:
    one = matrix(small(), measures=["pods_bound", "preemptions"], jobs=1)
    frame = matrix([small(), failing()], seeds=2, measures=["pods_bound", "preemptions"], jobs=1)
    assert one.frame().schema == frame.frame().schema
    assert one.frame()["pods_bound_low"].to_list() == [None]
    assert frame.frame()["pods_bound"].to_list() == [4.0, None]
    assert frame.frame()["pods_bound_n"].to_list() == [2, 0]
    assert frame.run_frame()["seed"].to_list() == [1, 2, 1, 2]


def test_a_notebook_shows_the_table_and_nothing_is_markup() -> None:
    result = matrix({"<b>bold</b>": small()}, seeds=2, jobs=1)
    html = result._repr_html_()
    assert "&lt;b&gt;bold" in html
    assert "4 ± 0" in html
    assert repr(result) == "<MatrixResult: 1 rows of 2 runs>"


def test_a_run_that_raises_is_an_outcome_with_its_text_in_one_line() -> None:
    def measure(run: object) -> float:
        raise KubesceneError("no such\n  number")

    request = RunRequest(scenario=small().build(), measures=[measure])
    error = played(RunJob(request=request)).error
    assert error == "measure measure raised KubesceneError: no such number"
