"""Reading a TrafficRun: every fault names its field."""

from pathlib import Path
from typing import Any

import pytest

from kubescene.autoscalers import Capability
from kubescene.clock import SECOND
from kubescene.errors import TrafficError
from kubescene.flows.fields import ArrivalPattern, Pattern
from kubescene.flows.units import Cpu, Memory, Timeout, TrafficDuration
from kubescene.traffic import Phase, TrafficSpec, load_run, parse_run, run, run_of, to_object
from kubescene.traffic.spec.fields import Replicas, TrafficRun
from kubescene.traffic.spec.files import arrivals_of, embedded
from kubescene.traffic.spec.loading import spec_of
from traffic.stubs import Scripted

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "traffic").glob("*.yaml"))
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "hpa"},
    "spec": {
        "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    },
}


def document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "TrafficRun",
        "metadata": {"name": "x"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"statInterval": "0s"}, "spec.statInterval: must be longer than 0s"),
        ({"horizontalInterval": "0s"}, "spec.horizontalInterval: must be longer than 0s"),
        ({"verticalInterval": "0s"}, "spec.verticalInterval: must be longer than 0s"),
        ({"statInterval": "-1s"}, "spec.statInterval: '-1s' is not a duration"),
        ({"statInterval": "1ns"}, "spec.statInterval: 1ns would pass|0.000000001s would pass"),
        (
            {"traffic": {"pattern": "spikes", "spikes": {"every": "0s", "width": "0s"}}},
            "spec.traffic.spikes.every: must be longer than 0s",
        ),
        ({"duration": "0s"}, "spec.duration: must be longer than 0s"),
        ({"duration": 5}, "spec.duration: must be a duration such as 90s"),
        ({"duration": "745h"}, "spec.duration: must not be longer than 31 days"),
        ({"seed": 2**63}, "spec.seed: "),
        ({"seed": 1.5}, "spec.seed: must be a whole number, not a fraction"),
        ({"mode": "best"}, "spec.mode: Invalid enum value 'best'"),
        ({"colour": "red"}, "spec.colour: there is no such field: known are duration, seed, mode"),
        ({"trafficc": {}}, r"spec.trafficc: there is no such field: did you mean traffic\?"),
        ({"request": {"cputime": "1s"}}, r"spec.request.cputime: .*: did you mean cpuTime\?"),
        (
            {"traffic": {"pattern": "piecewise", "piecewise": {"points": [{"at": "1s", "rp": 1}]}}},
            r"points\[0\].rp: there is no such field: did you mean rps\?",
        ),
        (
            {"traffic": {"pattern": "stepp"}},
            r"spec.traffic.pattern: Invalid enum value 'stepp': did you mean step\?",
        ),
        ({"mode": "x"}, "spec.mode: Invalid enum value 'x': known are fixed, faithful"),
        ({"replicas": {"count": 1}}, "spec.replicas.count: there is no such field"),
        ({"replicas": {"initial": -1}}, "spec.replicas.initial: must be from 0"),
        ({"replicas": {"cpu": "0"}}, "spec.replicas.cpu: must be from 1m to 2147483647m, not 0"),
        ({"replicas": {"cpu": "1Gi"}}, "spec.replicas.cpu: must be from 1m"),
        ({"replicas": {"cpu": "fast"}}, "spec.replicas.cpu: must be a quantity such as 500m"),
        ({"replicas": {"cpu": "-1"}}, "spec.replicas.cpu: must not be negative"),
        ({"replicas": {"limit": -1}}, "spec.replicas.limit: must be from 0 to 2147483647"),
        ({"replicas": {"memory": {"base": True}}}, "spec.replicas.memory.base: must be a quantity"),
        ({"traffic": {"pattern": "waves"}}, "spec.traffic.pattern: Invalid enum value 'waves'"),
        ({"traffic": {"ramp": {}}}, "spec.traffic.ramp: does not go with the pattern step"),
        ({"traffic": {"step": {"rps": -1}}}, "spec.traffic.step.rps: must be a number of requests"),
        (
            {"traffic": {"pattern": "ramp", "ramp": {"deltaV": 0}}},
            "spec.traffic.ramp.deltaV: must be at least",
        ),
        (
            {"traffic": {"pattern": "ramp", "ramp": {"deltaV": float("nan")}}},
            "spec.traffic.ramp.deltaV: must be at least",
        ),
        (
            {"traffic": {"pattern": "sinusoidal", "sinusoidal": {"period": "0s"}}},
            "spec.traffic.sinusoidal.period: must be longer than 0s",
        ),
        (
            {"traffic": {"pattern": "constant", "constant": {"rps": float("inf")}}},
            "spec.traffic.constant.rps: must be a number of requests",
        ),
        (
            {"traffic": {"pattern": "spikes", "spikes": {"every": "1s", "width": "2s"}}},
            "spec.traffic.spikes.width: must not be longer than every",
        ),
        (
            {"traffic": {"pattern": "diurnal", "diurnal": {"noise": 2}}},
            "spec.traffic.diurnal.noise: must be a share from 0 to 1",
        ),
        ({"traffic": {"pattern": "replay"}}, "spec.traffic.replay: is missing"),
        (
            {"traffic": {"pattern": "piecewise", "piecewise": {}}},
            "spec.traffic.piecewise.points: give either points or file",
        ),
        (
            {
                "traffic": {
                    "pattern": "piecewise",
                    "piecewise": {"points": [{"at": "1s", "rps": float("nan")}]},
                }
            },
            r"spec.traffic.piecewise.points\[0\].rps: must be a number",
        ),
        (
            {
                "traffic": {
                    "pattern": "piecewise",
                    "piecewise": {"points": [{"at": "1s", "rps": 1}, {"at": "1s", "rps": 1}]},
                }
            },
            r"spec.traffic.piecewise.points\[1\].at: must come after",
        ),
        (
            {"traffic": {"pattern": "uniform", "uniform": {"width": "0s"}}},
            "spec.traffic.uniform.width: must be longer than 0s",
        ),
        ({"request": {"cpuTime": "10h"}}, "spec.request.cpuTime: must be shorter"),
        ({"request": {"timeout": "soon"}}, "spec.request.timeout: 'soon' is not a duration"),
        ({"objective": {"percentile": 0}}, "spec.objective.percentile: must be more than 0"),
        ({"autoscalers": [{}]}, r"spec.autoscalers\[0\].type: is needed"),
        (
            {"autoscalers": [{"object": {"kind": "Thing"}}]},
            r"spec.autoscalers\[0\].object: its type does not follow",
        ),
        ({"autoscalers": [{"type": "x"}]}, "spec.autoscalers: no autoscaler takes .* 'x'"),
        (
            {"autoscalers": [{"type": "x", "yaml": "a: [", "object": None}]},
            r"spec.autoscalers\[0\].yaml: not valid YAML",
        ),
        (
            {"autoscalers": [{"object": {**HPA, "spec": {**HPA["spec"], "maxReplicas": 0}}}]},  # type: ignore[dict-item]
            r"spec.autoscalers\[0\]: .*maxReplicas",
        ),
        (
            {"autoscalers": [{"object": HPA}, {"object": HPA}]},
            "spec.autoscalers: at most one autoscaler of a run",
        ),
        ({"mode": "faithful", "routing": "random"}, "spec.routing: faithful mode has roundRobin"),
        ({"mode": "faithful", "replicas": {"limit": 1}}, "spec.replicas.limit: faithful mode"),
        ({"mode": "faithful", "request": {"timeout": "never"}}, "spec.request.timeout: faithful"),
        ({"faithful": {"queueServers": 0}}, "spec.faithful.queueServers: must be at least 1"),
        ({"faithful": {"saturation": 1}}, "spec.faithful.saturation: must be between"),
    ],
    ids=str,
)
def test_bad_input_names_its_field(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(TrafficError, match=told):
        run(document(**spec))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", r"x.yaml:\d+:\d+: not valid YAML"),
        ("", "one TrafficRun is expected, found 0 documents"),
        ("a: 1\n---\nb: 1", "one TrafficRun is expected, found 2 documents"),
        ("a: 1\na: 2", "x.yaml:2:1: the key 'a' is given twice"),
        ("[1]", "a TrafficRun must be an object"),
        ("kind: Scenario", "expected apiVersion kubescene.dev/v1alpha1 and kind TrafficRun"),
        (
            "apiVersion: kubescene.dev/v1alpha1\nkind: TrafficRun\nmetadata: {name: ''}",
            "x.yaml:3:12: metadata.name: must not be empty",
        ),
    ],
)
def test_bad_files_are_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(TrafficError, match=told):
        parse_run(text, "x.yaml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrafficError, match="there is no such file"):
        load_run(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_is_written_out_is_read_as_the_same(path: Path) -> None:
    asked = load_run(path)
    assert run_of(to_object(asked)) == asked


@pytest.mark.parametrize("first", ["autoscalers.0", "autoscalers[0]"])
def test_settings_reach_any_field(first: str) -> None:
    text = (EXAMPLES[0].parent / "step.yaml").read_bytes()
    hpa = f"spec.{first}.object.spec.maxReplicas"
    asked = parse_run(text, "x", ["spec.seed=7", "spec.replicas.cpu=500m", f"{hpa}=3"])
    assert (asked.spec.seed, asked.spec.replicas.cpu) == (7, 500)
    assert asked.spec.autoscalers[0].object is not None
    assert asked.spec.autoscalers[0].object["spec"]["maxReplicas"] == 3


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("spec.seed", "must be written as path=value"),
        ("=1", "must be written as path=value"),
        ("spec.sed=1", "spec.sed: there is no such field"),
        ("spec.autoscalers.7.type=x", "there is no '7' on that way"),
        ("spec.autoscalers[7].type=x", "there is no '7' on that way"),
        ("kind.x=1", "there is no 'x' on that way"),
        ("spec.seed=[", "--set: 'spec.seed=\\['"),
    ],
)
def test_settings_that_lead_nowhere(setting: str, told: str) -> None:
    text = (EXAMPLES[0].parent / "step.yaml").read_bytes()
    with pytest.raises(TrafficError, match=told):
        parse_run(text, "x", [setting])


def test_defaults_are_those_of_the_form() -> None:
    spec = TrafficSpec()
    assert (spec.duration, spec.replicas.initial, spec.replicas.cpu) == (180 * SECOND, 1, 1000)
    assert (spec.replicas.launch_delay, spec.replicas.terminate_delay) == (5 * SECOND, SECOND)
    assert (spec.stat_interval, spec.horizontal_interval) == (10 * SECOND, 15 * SECOND)
    assert (spec.metrics.first_after, spec.metrics.lag) == (5 * SECOND, 4 * SECOND)
    assert (spec.request.cpu_time, spec.request.timeout) == (SECOND // 5, 10 * SECOND)


def test_python_may_write_plain_numbers_and_words() -> None:
    spec = TrafficSpec(
        duration=20 * SECOND,  # type: ignore[arg-type]
        traffic=ArrivalPattern(pattern="constant"),  # type: ignore[arg-type]
        replicas=Replicas(cpu=500),  # type: ignore[arg-type]
    )
    result = run(spec)
    assert result.ok
    assert result.spec.traffic.pattern is Pattern.CONSTANT
    with pytest.raises(TrafficError, match=r"spec.statInterval: must not be negative"):
        run(TrafficSpec(stat_interval=-1))  # type: ignore[arg-type]


def test_units_are_written_as_they_are_read() -> None:
    assert str(TrafficDuration(90 * SECOND)) == "1m30s"
    assert [str(Timeout(-1)), str(Timeout(SECOND))] == ["never", "1s"]
    assert [str(Cpu(500)), str(Cpu(2000)), str(Memory(256 << 20))] == ["500m", "2", "256Mi"]
    assert spec_of({"request": {"timeout": "never"}}).request.timeout == -1


class Failing(Scripted):
    def stat(self, request: object) -> None:
        raise ZeroDivisionError("in the middle")


def test_a_run_that_fails_is_a_result_with_what_was_simulated() -> None:
    result = run(document(), [Failing({0: 1})])
    assert result.phase is Phase.FAILED
    assert result.message == (
        "autoscaler 'scripted.example.com' at Stat: ZeroDivisionError: in the middle"
    )
    assert 0 < result.end < 180 * SECOND
    assert result.summary.requests > 0
    assert not (result.requests.completed > result.end).any()


def test_a_run_can_be_stopped_and_keeps_what_was_simulated() -> None:
    plugin = Scripted({0: 1})
    seen: list[int] = []
    result = run(
        document(),
        [plugin],
        watch=lambda progress: seen.append(progress.now),
        cancelled=lambda: bool(seen) and seen[-1] > 60 * SECOND,
    )
    assert result.phase is Phase.CANCELLED
    assert 60 * SECOND < result.end < 90 * SECOND
    assert plugin.calls[-1][0] == "DELETE Autoscaler"


def test_a_run_without_autoscalers_is_static() -> None:
    result = run(document(replicas={"initial": 2}))
    assert result.summary.replicas_most == 2
    assert not result.decisions
    assert Capability.STAT not in Scripted({0: 1}).capabilities - {Capability.STAT}


@pytest.mark.parametrize(
    ("pattern", "text", "told"),
    [
        ("piecewise", "time,rps\n0,9007199254740992\n", "rates.csv:2: .* from 0 to 10000000"),
        ("piecewise", "0,1\n9223372037,1\n", "rates.csv:2: .* from 0 to 9223372036"),
        ("piecewise", "0,1\n5,nan\n", "rates.csv:2: 'nan' is not a number"),
        ("replay", "1\n9007199254740992\n", "rates.csv:2: .* from 0 to 9223372036"),
        ("replay", "time\n", "spec.traffic.replay.file: rates.csv has no rows"),
        ("replay", "", "spec.traffic.replay.file: rates.csv has no rows"),
    ],
)
def test_bad_rows_of_a_csv_are_named(tmp_path: Path, pattern: str, text: str, told: str) -> None:
    (tmp_path / "rates.csv").write_text(text)
    spec = document(traffic={"pattern": pattern, pattern: {"file": "rates.csv"}})
    with pytest.raises(TrafficError, match=told):
        run(spec, folder=tmp_path)


@pytest.mark.parametrize("mode", ["fixed", "faithful"])
def test_an_autoscaler_that_wants_too_many_replicas_fails_the_run(mode: str) -> None:
    result = run(document(mode=mode), [Scripted({0: 1, 30: 2_000_000_000})])
    assert result.phase is Phase.FAILED
    assert result.message == (
        "autoscaler 'scripted.example.com' at HorizontalRecommendation: "
        "2000000000 replicas are more than the 100000 of one run"
    )
    assert result.end // SECOND == 30


def test_a_run_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object, **more: object) -> None:
        raise MemoryError

    monkeypatch.setattr("kubescene.flows.records.np.empty", full)
    with pytest.raises(TrafficError, match=r"spec\.traffic: the run does not fit into memory"):
        run(document())


CALENDAR = "2026-03-01T08:00:00Z,5\n2026-03-01T08:01:00Z,10\n"
EPOCH = "1772352000,5\n1772352060,10\n"


@pytest.mark.parametrize(
    ("rows", "origin"),
    [
        ("0,5\n60,10\n", None),
        ("0s,5\n1m,10\n", None),
        (CALENDAR, None),
        (CALENDAR, "2026-03-01T09:00:00+01:00"),
        (EPOCH, 1772352000),
        (EPOCH, "2026-03-01T08:00:00Z"),
        ("100,5\n160,10\n", "100s"),
    ],
)
def test_times_of_rates_may_be_of_the_calendar(
    tmp_path: Path, rows: str, origin: str | int | None
) -> None:
    (tmp_path / "rates.csv").write_text(rows)
    piecewise = {"file": "rates.csv"} | ({} if origin is None else {"origin": origin})
    asked = spec_of({"duration": "2m", "traffic": {"pattern": "piecewise", "piecewise": piecewise}})
    arrivals = arrivals_of(asked, tmp_path)
    assert arrivals.expected == 5 * 60 + 10 * 60
    kept = embedded(TrafficRun(spec=asked), tmp_path).spec
    assert (
        arrivals_of(kept).take(1 << 62, 1 << 20).tolist()
        == arrivals.take(1 << 62, 1 << 20).tolist()
    )


@pytest.mark.parametrize("pattern", ["piecewise", "replay"])
def test_times_that_are_all_outside_the_run_are_a_fault(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "rates.csv").write_text(EPOCH)
    traffic = {"pattern": pattern, pattern: {"file": "rates.csv"}}
    told = f"spec.traffic.{pattern}.origin: all times lie after the end .* perhaps 1772352000"
    with pytest.raises(TrafficError, match=told):
        arrivals_of(spec_of({"traffic": traffic}), tmp_path)
    early = {"file": "rates.csv", "origin": "2026-03-01T08:00:30Z"}
    with pytest.raises(TrafficError, match=f"{pattern}.origin: there are times before it"):
        arrivals_of(spec_of({"traffic": {"pattern": pattern, pattern: early}}), tmp_path)


def test_points_that_are_all_outside_the_run_are_a_fault() -> None:
    points = [{"at": "10m", "rps": 5}]
    with pytest.raises(TrafficError, match="all times lie after the end of the run"):
        arrivals_of(spec_of({"traffic": {"pattern": "piecewise", "piecewise": {"points": points}}}))


def test_an_origin_is_written_as_it_is_read() -> None:
    for written in ("1m30s", "2026-03-01T08:00:00.000000001Z"):
        traffic = {"pattern": "replay", "replay": {"arrivals": ["1s"], "origin": written}}
        asked = TrafficRun(spec=spec_of({"traffic": traffic}))
        assert to_object(asked)["spec"]["traffic"]["replay"]["origin"] == written
        assert run_of(to_object(asked)) == asked


FILE = """apiVersion: kubescene.dev/v1alpha1
kind: TrafficRun
metadata: {name: x}
spec:
  traffic:
    pattern: constant
    constant: {rps: .nan}
  autoscalers:
    - object: {kind: Unknown}
      yaml: "a: 1"
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FILE, r"x.yaml:7:16: spec.traffic.constant.rps: must be a finite number, not text"),
        (FILE.replace(".nan", "1"), r"x.yaml:10:7: spec.autoscalers\[0\].yaml: give either"),
        (FILE.replace(".nan", "1, rsp: 2"), r"x.yaml:7:24: spec.traffic.constant.rsp: there is"),
        (FILE.replace("name: x", "label: x"), r"x.yaml:3:12: metadata.label: there is no such"),
    ],
)
def test_a_fault_has_its_line_and_column(text: str, told: str) -> None:
    with pytest.raises(TrafficError, match=f"^{told}"):
        parse_run(text, "x.yaml")


def test_a_field_that_was_set_stands_in_no_file() -> None:
    with pytest.raises(TrafficError, match=r"^x.yaml: spec.traffic.constant.rps: must be a fin"):
        parse_run(FILE.replace(".nan", "1"), "x.yaml", ["spec.traffic.constant.rps=many"])
