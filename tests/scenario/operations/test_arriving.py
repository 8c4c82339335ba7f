"""``arrivals``: objects come while time passes; seeds matter, and how time is cut does not."""

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kubescene
from budgets import messages, outcomes
from kubescene.cli.files import read_scenario
from kubescene.cli.validate.faults import validate_files
from kubescene.clock import Streams, parse_duration
from kubescene.clock.distributions import read_distribution
from kubescene.cluster import Cluster, ClusterOptions, ClusterWorld, builtin_controllers
from kubescene.runs.staging import cluster_options
from kubescene.scenario import Engine, ScenarioBuilder, parse_spec
from kubescene.scenario.reading.arrival_plans import READ, stream_name
from kubescene.scenario.validation.unsimulated import Players, unsimulated
from kubescene.scheduler import SchedulerOptions
from kubescene.testing import make_node, make_pod
from kubescene.timeline import ObjectCreated
from kubescene.types import JsonObject
from playing import begun

SECOND = 10**9
POISSON = {"poisson": {"every": "30s"}, "for": "1h"}


def plan(arrivals: JsonObject, *advances: str, count: int | None = None) -> ScenarioBuilder:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1000").pods("5000")).step(2)
    pod = make_pod("p-$(INDEX)").cpu("100m").build()
    pod["spec"]["restartPolicy"] = "Never"
    scenario.create(pod, arrivals=arrivals, count=count, id="come")
    for step, duration in enumerate(advances, 3):
        scenario.advance(duration).step(step)
    return scenario


def played(scenario: ScenarioBuilder, **more: Any) -> kubescene.Run:
    run = kubescene.run(scenario.done(), **more)
    assert run.ok, run.message
    return run


def came(run: kubescene.Run) -> list[tuple[str, int]]:
    """Ids and nanoseconds since the scenario began, of what an operation made come."""
    start = run.log[0].time
    return [
        (fact.id, fact.time - start)
        for fact in run.log
        if isinstance(fact, ObjectCreated) and fact.id.startswith("come[")
    ]


def seconds(run: kubescene.Run) -> list[float]:
    return [time / SECOND for _, time in came(run)]


@pytest.mark.parametrize(
    ("arrivals", "count", "times"),
    [
        ({"uniform": {"every": "10m"}, "for": "1h"}, None, [0, 600, 1200, 1800, 2400, 3000]),
        ({"uniform": {"every": "10m"}}, 3, [0, 600, 1200]),
        ({"uniform": {"every": "10m"}, "for": "15m"}, 3, [0, 600]),
        ({"bursts": {"every": "1m", "size": 3}}, 7, [0, 0, 0, 60, 60, 60, 120]),
        ({"bursts": {"every": "1m", "size": 2}, "for": "61s"}, None, [0, 0, 60, 60]),
        ({"listed": [{"at": "0s"}, {"at": "1.5s"}, {"at": "1.5s"}]}, None, [0, 1.5, 1.5]),
    ],
)
def test_times_that_are_no_chance(
    arrivals: JsonObject, count: int | None, times: list[float]
) -> None:
    run = played(plan(arrivals, "2h", count=count))
    assert seconds(run) == times
    assert [each for each, _ in came(run)] == [f"come[{n}]" for n in range(len(times))]
    names = [f"p-{n}" for n in range(len(times))]
    assert [each["metadata"]["name"] for each in run.cluster.list("pods")] == names
    assert outcomes(run) == [("come", "Completed", "")]
    assert messages(run, "Completed") == [f"{len(times)} objects came"]


def test_times_count_from_the_operation_and_go_on_in_later_steps() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n")).advance("5m").step(2)
    arrivals = {"uniform": {"every": "1m"}}
    scenario.create(make_pod("p-$(INDEX)"), arrivals=arrivals, count=4, id="come")
    scenario.advance("90s").step(3).create(make_node("other")).advance("1h")
    assert seconds(played(scenario)) == [300, 360, 420, 480]


def test_an_event_tells_what_was_created_as_if_it_were_written_out() -> None:
    arrivals = {"listed": [{"at": "5s", "memory": "1Ki"}]}
    run = played(plan(arrivals, "1m"))
    (event,) = [each for each in run.timeline if each["id"] == "come[0]"]
    asked = event["create"]["operation"]
    assert set(asked) == {"object"}
    assert asked["object"]["metadata"]["name"] == "p-0"
    requests = asked["object"]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "100m", "memory": "1024"}


def test_the_mean_gap_is_that_of_a_poisson_process() -> None:
    """1 h of a mean of 30 s: 120 come, with a variance of 120; over 25 seeds the sum is 3000.

    Five standard deviations of that sum are 5 * sqrt(3000) = 274.
    """
    counts = [len(came(played(plan(POISSON, "1h"), seed=seed))) for seed in range(25)]
    assert len({*counts}) > 5
    assert 3000 - 274 < sum(counts) < 3000 + 274
    variance = sum((each - 120) ** 2 for each in counts) / 25
    # 25 * variance / 120 has about a chi-square distribution: within 5 deviations of 25.
    assert 25 - 5 * 50**0.5 < 25 * variance / 120 < 25 + 5 * 50**0.5


def test_the_seed_says_when_they_come() -> None:
    assert seconds(played(plan(POISSON, "1h"), seed=1)) == seconds(
        played(plan(POISSON, "1h"), seed=1)
    )
    assert seconds(played(plan(POISSON, "1h"), seed=1)) != seconds(
        played(plan(POISSON, "1h"), seed=2)
    )


def test_another_operation_or_amount_changes_nothing_that_is_drawn() -> None:
    alone = played(plan(POISSON, "1h"))
    sized = POISSON | {"cpu": {"uniform": {"min": "100m", "max": "2"}}}
    scenario = plan(sized)
    pod = make_pod("q-$(INDEX)").cpu("1m")
    both = played(scenario.create(pod, arrivals=POISSON, id="other").advance("1h"))
    assert came(both) == came(alone)
    others = [fact for fact in both.log if fact.id.startswith("other[")]
    assert [fact.time for fact in others if isinstance(fact, ObjectCreated)] != [
        fact.time for fact in alone.log if fact.id.startswith("come[")
    ]


def test_amounts_are_drawn_for_each_from_streams_of_their_own() -> None:
    amounts: JsonObject = {
        "cpu": {"uniform": {"min": "100m", "max": "2"}},
        "memory": {"lognormal": {"median": "1Gi", "sigma": 0.5}},
        "runTime": {"exponential": {"mean": "1h"}},
    }
    arrivals = {"uniform": {"every": "1s"}, **amounts}
    run = played(plan(arrivals, "1m", count=20), seed=7)
    streams = Streams(7)
    pods = run.cluster.list("pods")
    for pod in pods:
        index = int(pod["metadata"]["name"].removeprefix("p-"))
        drawn = {
            name: read_distribution(value, READ[name]).draw(
                streams.single(stream_name("come", index, name))
            )
            for name, value in amounts.items()
        }
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        assert requests["memory"] == str(drawn["memory"])
        assert READ["cpu"](requests["cpu"]) == drawn["cpu"]
        assert 100 <= drawn["cpu"] <= 2000
        annotation = pod["metadata"]["annotations"]["kubescene.dev/run-time"]
        assert parse_duration(annotation) == drawn["runTime"]
    assert len({str(pod["spec"]["containers"]) for pod in pods}) == 20


def test_pods_run_as_long_as_is_said_of_them() -> None:
    listed = [{"at": "0s", "runTime": "10s"}, {"at": "5s"}, {"at": "6s", "runTime": "1h"}]
    run = played(plan({"listed": listed, "runTime": "20s"}, "1m"))
    phases = {p["metadata"]["name"]: p["status"]["phase"] for p in run.cluster.list("pods")}
    assert phases == {"p-0": "Succeeded", "p-1": "Succeeded", "p-2": "Running"}
    ends = {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["state"]["terminated"]
        for pod in run.cluster.list("pods")[:2]
    }
    lasted = {
        name: seconds_between(each["startedAt"], each["finishedAt"]) for name, each in ends.items()
    }
    assert lasted == {"p-0": 10, "p-1": 20}


def seconds_between(begin: str, end: str) -> int:
    return (int(end[14:16]) - int(begin[14:16])) * 60 + int(end[17:19]) - int(begin[17:19])


def test_amounts_of_a_job_belong_to_its_template() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j-$(INDEX)"},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            }
        },
    }
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4")).step(2)
    arrivals = {"uniform": {"every": "1m"}, "cpu": "250m", "runTime": "5s"}
    run = played(scenario.create(job, arrivals=arrivals, count=2, id="come").advance("10m"))
    assert warnings(scenario) == []
    pods = run.cluster.list("pods")
    assert [p["status"]["phase"] for p in pods] == ["Succeeded"] * 2
    assert [p["spec"]["containers"][0]["resources"]["requests"] for p in pods] == [
        {"cpu": "250m"}
    ] * 2


def warnings(scenario: ScenarioBuilder) -> list[str]:
    spec = parse_spec(scenario.build())
    players = Players.of(spec, [*builtin_controllers(ClusterOptions())], SchedulerOptions())
    return [str(each) for each in unsimulated(spec, players)]


def test_what_has_not_come_at_the_end_is_told() -> None:
    run = played(plan({"uniform": {"every": "1m"}}, "150s", count=10))
    assert outcomes(run) == [("come", "Unfinished", "")]
    assert messages(run, "Unfinished") == ["3 objects came; the next one would come in 30s"]


def test_without_time_there_is_a_warning() -> None:
    scenario = plan({"uniform": {"every": "1m"}}, count=10)
    assert len(came(played(scenario))) == 1
    (warning,) = warnings(scenario)
    assert warning == (
        "the time of `arrivals` has no effect: no time passes, so only those are there that come "
        "at once: add an `advanceOperation` (operation 'come')"
    )


def test_an_object_that_is_refused_ends_the_scenario() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_pod("p-2")).step(2)
    arrivals = {"uniform": {"every": "1m"}}
    scenario.create(make_pod("p-$(INDEX)"), arrivals=arrivals, count=4, id="come").advance("1h")
    run = kubescene.run(scenario.done())
    assert not run.ok
    told = "step 2, operation 'come': create was refused: pods \"p-2\" already exists"
    assert run.message == told
    assert len(came(run)) == 2


AMOUNTS = {"cpu": {"pareto": {"scale": "100m", "shape": 1.5}, "max": "4"}, "runTime": "90s"}
PATTERNS = st.sampled_from(
    [
        {"poisson": {"every": "20s"}, "for": "5m", **AMOUNTS},
        {"uniform": {"every": "7s"}, "for": "5m", **AMOUNTS},
        {"bursts": {"every": "1m", "size": 4}, "for": "5m", **AMOUNTS},
        {"listed": [{"at": "10s"}, {"at": "2m", "cpu": "3"}, {"at": "4m"}], **AMOUNTS},
    ]
)


@settings(max_examples=15)
@given(PATTERNS, st.lists(st.integers(1, 299), max_size=3), st.integers(0, 99))
def test_how_time_is_cut_does_not_matter(arrivals: JsonObject, cuts: list[int], seed: int) -> None:
    whole = played(plan(arrivals, "5m"), seed=seed)
    places = sorted({0, 300, *cuts})
    parts = [f"{end - begin}s" for begin, end in pairwise(places)]
    cut = played(plan(arrivals, *parts), seed=seed)
    assert came(cut) == came(whole)
    assert ends(cut) == ends(whole)


def ends(run: kubescene.Run) -> list[tuple[str, Any]]:
    return [(p["metadata"]["name"], p["spec"]) for p in run.cluster.list("pods")]


@settings(max_examples=4)
@given(PATTERNS, st.integers(0, 99))
def test_forks_go_on_alike(arrivals: JsonObject, seed: int) -> None:
    scenario = plan(arrivals, "100s", "100s", "100s").settings(seed=seed).done().build()
    expected, engine = outcome(begin(scenario)), begin(scenario)
    forks = [engine.fork() for _ in islice(engine.play(), 0, None, 80)]
    assert len(forks) > 1
    assert all(outcome(each) == expected for each in (engine, *forks))


def begin(scenario: JsonObject) -> Engine:
    return begun(ClusterWorld(cluster_options(scenario, None)), scenario)


def outcome(engine: Engine) -> bytes:
    assert engine.run() == "Succeeded", engine.scenario.message
    assert isinstance(engine.world, Cluster)
    return engine.world.export()


@settings(max_examples=5)
@given(PATTERNS, st.integers(0, 99))
def test_the_plain_way_gives_the_same(arrivals: JsonObject, seed: int) -> None:
    fast = played(plan(arrivals, "5m"), seed=seed)
    plain = played(plan(arrivals, "5m"), seed=seed, plain=True)
    assert [*fast.timeline] == [*plain.timeline]
    assert fast.cluster.export() == plain.cluster.export()


# -- bad input -------------------------------------------------------------------------------------

SCENARIO = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: faulty}
spec:
  operations:
  - id: it
    step: 1
    createOperation:
      %s
      %s
"""
PODS = """\
object: {apiVersion: v1, kind: Pod, metadata: {name: p-$(INDEX)}, spec: {containers: [{name: c, \
image: i}]}}"""
NAMED = PODS.replace("-$(INDEX)", "")
MAP = "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m-$(INDEX)}}"


@pytest.mark.parametrize(
    ("arrivals", "fault", "said"),
    [
        ("{}", "arrivals", "exactly one of poisson, uniform, bursts, listed, file must be set"),
        ("{for: 1h}", "arrivals", "found: none"),
        ("{poisson: {every: 1s}, uniform: {every: 1s}, for: 1h}", "arrivals", "found: poisson, un"),
        ("{poisson: {every: 1s}, file: x.csv, for: 1h}", "arrivals", "found: poisson, file"),
        ("{poisson: {every: 30s}}", "arrivals", "say how many come at most (count beside"),
        ("{poisson: {}, for: 1h}", "poisson", "needs every"),
        ("{poisson: {every: -30s}, for: 1h}", "every", "'-30s' is not a duration"),
        ("{poisson: {every: inf}, for: 1h}", "every", "'inf' is not a duration"),
        ("{poisson: {every: 0s}, for: 1h}", "every", "must be longer than zero"),
        ("{uniform: {every: 1s}, for: 0s}", "for", "must be longer than zero"),
        (
            "{uniform: {every: 1ms}, for: 1h}",
            "for",
            "3600000 objects would come, more than 1000000",
        ),
        (
            "{bursts: {every: 1s, size: 0}, for: 1h}",
            "size",
            "must be a whole number from 1 to 10000",
        ),
        ("{bursts: {every: 1h, size: 600000}, for: 90m}", "for", "1200000 objects would come"),
        ("{bursts: {every: 1s}, for: 1h}", "bursts", "needs size"),
        ("{listed: []}", "listed", "must have from 1 to 1000000 entries"),
        ("{listed: [{at: 2s}, {at: 1s}]}", "at: 1s", "1s is before 2s"),
        ("{listed: [{at: 2s}, {at: soon}]}", "at: soon", "'soon' is not a duration"),
        ("{listed: [{cpu: 1}]}", "{cpu", "needs at"),
        ("{listed: [{at: 0s, cpu: -1}]}", "cpu", "negative"),
        ("{listed: [{at: 0s}], for: 1h}", "for", "not beside listed objects"),
        ("{listed: [{at: 0s, size: 3}]}", "size", "unknown field 'size'"),
        ("{uniform: {every: 1s}, for: 1h, cpu: {uniform: {min: 2}}}", "cpu", "uniform needs max"),
        ("{uniform: {every: 1s}, for: 1h, memory: .inf}", "memory", "quantities must match"),
        (
            "{uniform: {every: 1s}, for: 1h, memory: {normal: {mean: -1Gi, deviation: 0}}}",
            "memory",
            "negative",
        ),
        ("{uniform: {every: 1s}, for: 1h, runTime: 5}", "runTime", "'5' is not a duration"),
        ("{uniform: {every: 1s}, for: 1h, runTme: 5s}", "runTme", "did you mean runTime?"),
        ("{file: other.csv}", "file", "there is no file 'other.csv'"),
    ],
)
def test_a_fault_has_its_place(
    arrivals: str, fault: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, line = tmp_path / "s.yaml", f"arrivals: {arrivals}"
    file.write_text(SCENARIO % (PODS, line))
    assert validate_files([file]) == 2
    told = capsys.readouterr().err.splitlines()[0]
    assert said in told
    found = told.removeprefix(f"{file}:").split(":")
    assert found[0] == "10"
    # The place is that of the value, or of the field that has it.
    place = int(found[1]) - 7
    assert line[place:].startswith(fault) or line[:place].endswith(f"{fault}: ")


@pytest.mark.parametrize(
    ("obj", "more", "said"),
    [
        (NAMED, "{uniform: {every: 1s}, for: 1h}", "put $(INDEX) into the name"),
        (MAP, "{uniform: {every: 1s}, for: 1h, cpu: 1}", "arrivals say cpu, and there is no pod"),
        (f"count: 3\n      {PODS}", "{listed: [{at: 0s}]}", "not beside listed arrivals"),
        ("objectFrom: x.yaml", "{uniform: {every: 1s}, for: 1h}", "not beside arrivals"),
    ],
)
def test_what_does_not_go_together(
    obj: str, more: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}")
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO % (obj, f"arrivals: {more}"))
    assert validate_files([file]) == 2
    assert said in capsys.readouterr().err


def test_a_file_of_pods_is_listed(tmp_path: Path) -> None:
    table = "at, cpu, runTime, memory\n0,500m,90,\n\n1m, ,1h,1Gi\n61.5,2,,\n"
    (tmp_path / "pods.csv").write_text(table)
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO % (PODS, "arrivals: {file: pods.csv}"))
    listed = [
        {"at": "0s", "cpu": "500m", "runTime": "90s"},
        {"at": "1m", "runTime": "1h", "memory": "1Gi"},
        {"at": "61.5s", "cpu": "2"},
    ]
    (operation,) = read_scenario(file).scenario["spec"]["operations"]
    assert operation["createOperation"]["arrivals"] == {"listed": listed}
    assert seconds(played(plan({"listed": listed}, "2m"))) == [0, 60, 61.5]
    assert kubescene.run(file).message == ""


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("at\n", "pods.csv has no values below its first line"),
        ("cpu\n1\n", "pods.csv needs one column at"),
        ("at,at\n1,1\n", "no column twice"),
        ("at,gpu\n1,1\n", "pods.csv has a column 'gpu'; known are: at, cpu, memory, runTime"),
        ("at,cpu\n1,1\n2\n", "pods.csv:3: 1 values for 2 columns"),
        ("at,cpu\n1,1\n2,1,3\n", "pods.csv:3: 3 values for 2 columns"),
        ("at,cpu\n1,1\n,2\n", "pods.csv:3: it does not say at which time"),
        ("at,cpu\n1,1\n\n-2,2\n", "pods.csv:4: '-2' is not a duration"),
        ("at,cpu\n1,1\n2,much\n", "pods.csv:3: "),
        ("at,memory\n1,1\n2,-5\n", "pods.csv:3: '-5' is negative"),
        ("at,runTime\n1,1\n2,inf\n", "pods.csv:3: 'inf' is not a duration"),
        ("at\n5\n90s\n1m\n", "pods.csv:4: 1m is before 90s"),
    ],
)
def test_a_bad_row_is_told_with_its_line(
    table: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pods.csv").write_text(table)
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO % (PODS, "arrivals: {file: pods.csv}"))
    assert validate_files([file]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.startswith(f"{file}:10:")


def test_a_scenario_without_a_folder_cannot_name_a_file() -> None:
    run = kubescene.run(plan({"file": "pods.csv"}, "1m").done())
    assert not run.ok
    assert "there is no folder to read from" in run.message
