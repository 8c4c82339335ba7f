"""Controllers outside the process, as a scenario declares them: values, faults, names."""

from pathlib import Path
from typing import Any

import pytest

from kubescene.cli.validate.faults import validate_files
from kubescene.clock import MILLISECOND, SECOND
from kubescene.cluster import ClusterWorld
from kubescene.errors import ScenarioError
from kubescene.runs.local import run
from kubescene.scenario import ScenarioBuilder, ScenarioPhase, parse_spec
from kubescene.scenario.edits import complaints_about
from kubescene.scenario.fields.json_schema import editor_schema, spec_schema
from kubescene.scenario.outside import (
    OutsideController,
    OutsideKind,
    ShownPods,
    WaiterCondition,
    WaiterSpec,
)
from kubescene.scenario.validation.registered import check_controllers
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.scenario.validation.unsimulated import Players, unsimulated
from kubescene.scheduler import SchedulerOptions
from kubescene.testing import make_pod
from kubescene.types import JsonObject

CONDITION: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "expression": "object.status.replicas == object.spec.replicas",
}


def scenario(
    *outside: JsonObject, simulated: tuple[str, ...] = ("kube-scheduler",), **more: Any
) -> JsonObject:
    enabled = [{"name": name} for name in simulated]
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "with-others"},
        "spec": {
            "operations": [],
            "controllers": {
                "simulationControllers": {"enabled": enabled},
                "outside": list(outside),
                **more,
            },
        },
    }


def waited(**waiter: Any) -> JsonObject:
    return scenario({"name": "x", "waiter": waiter})


def test_a_name_is_enough() -> None:
    (entry,) = parse_spec(scenario({"name": "operator"})).outside
    assert entry == OutsideController(name="operator")
    assert (entry.kind, entry.waiter, entry.unchecked) == (OutsideKind.OPERATOR, None, False)
    assert (entry.timeout_ns, entry.attach_timeout_ns) == (240 * SECOND, 60 * SECOND)


def test_everything_that_can_be_said_is_read() -> None:
    waiter = {"conditions": [{**CONDITION, "namespace": "a", "message": "wait"}]}
    entry = {
        "name": "mine",
        "kind": "scheduler",
        "schedulerName": "mine",
        "feed": "AllPods",
        "waiter": {**waiter, "quietPeriod": "20ms"},
        "timeout": "30s",
        "attachTimeout": "5s",
        "settings": "Unchecked",
    }
    condition = WaiterCondition("apps/v1", "Deployment", CONDITION["expression"], "a", "wait")
    assert parse_spec(scenario(entry)).outside == (
        OutsideController(
            name="mine",
            kind=OutsideKind.SCHEDULER,
            scheduler_names=("mine",),
            feed=ShownPods.ALL_PODS,
            waiter=WaiterSpec("", 20 * MILLISECOND, (condition,)),
            timeout_ns=30 * SECOND,
            attach_timeout_ns=5 * SECOND,
            unchecked=True,
        ),
    )


def test_a_quiet_period_alone_is_the_waiter_quiet() -> None:
    (entry,) = parse_spec(waited(quietPeriod="1s")).outside
    assert entry.waiter == WaiterSpec("quiet", SECOND)


def test_absent_and_null_are_the_same() -> None:
    null = dict.fromkeys(("kind", "waiter", "timeout", "settings", "feed", "schedulerName"))
    assert parse_spec(scenario({"name": "x", **null})) == parse_spec(scenario({"name": "x"}))
    assert parse_spec(scenario(outside=None)).outside == ()


AT = "spec.controllers.outside[0]"
FAULTS = [
    pytest.param(scenario({}), AT, "needs name", id="no name"),
    pytest.param(
        scenario({"name": "x"}, {"name": "x"}),
        "outside[1] (name 'x').name",
        "used twice, at index 0 and 1",
        id="two of one name",
    ),
    pytest.param(scenario({"name": "My Op"}), AT, "lower case", id="a name for no URL"),
    pytest.param(scenario({"name": "scenario-engine"}), AT, "choose another", id="the engine's"),
    pytest.param(scenario({"name": "a/b"}), AT, "part of a URL", id="a name with a slash"),
    pytest.param(scenario({"name": "a" * 64}), AT, "at most 63", id="a long name"),
    pytest.param(
        scenario({"name": "x", "kind": "daemon"}),
        f"{AT}.kind",
        "must be one of scheduler, operator, bag, not 'daemon'",
        id="unknown kind",
    ),
    pytest.param(
        scenario({"name": "x", "schedulerName": "y"}),
        "(name 'x').schedulerName",
        "only a scheduler has it, and kind is operator",
        id="an operator with pods",
    ),
    pytest.param(
        scenario({"name": "x", "kind": "bag", "feed": "OnePod"}),
        "(name 'x').feed",
        "only a scheduler has it, and kind is bag",
        id="a bag that is fed",
    ),
    pytest.param(
        scenario(
            {"name": "a", "kind": "scheduler", "schedulerName": "s"},
            {"name": "b", "kind": "scheduler", "schedulerName": "s"},
        ),
        "(name 'b').schedulerName",
        "pods of 's' belong to 'a' already",
        id="two schedulers of one name",
    ),
    pytest.param(
        scenario(
            {"name": "a", "kind": "scheduler", "schedulerNames": ["s", "t"]},
            {"name": "b", "kind": "scheduler", "schedulerNames": ["u", "t"]},
        ),
        "(name 'b').schedulerNames",
        "pods of 't' belong to 'a' already",
        id="two schedulers with a profile of one name",
    ),
    pytest.param(
        scenario({"name": "a", "kind": "scheduler", "schedulerNames": ["s", "s"]}),
        "(name 'a').schedulerNames",
        "a name is there twice: s, s",
        id="two profiles of one name",
    ),
    pytest.param(
        scenario({"name": "a", "kind": "scheduler", "schedulerNames": ["s"], "schedulerName": "s"}),
        "(name 'a').schedulerName",
        "schedulerNames is set, too: keep one of them",
        id="one name and several",
    ),
    pytest.param(
        scenario({"name": "kcm", "kind": "bag"}, simulated=("kcm",)),
        "(name 'kcm').kind",
        "a bag cannot be a simulation controller",
        id="a simulated bag",
    ),
    pytest.param(
        scenario({"name": "x"}, presimulationControllers={"disabled": [{"name": "*"}]}),
        "(name 'x').name",
        "'x' would never have a turn",
        id="named nowhere",
    ),
    *[
        pytest.param(
            scenario({"name": "x", name: "/bin/sh"}),
            f"{AT}.{name}",
            'kubescene run --outside NAME="command"',
            id=name,
        )
        for name in ("command", "args", "image", "program")
    ],
    pytest.param(
        scenario({"name": "x", "timeOut": "1s"}), AT, "did you mean timeout?", id="a typo"
    ),
    pytest.param(
        scenario({"name": "x", "timeout": "0s"}), "timeout", "longer than zero", id="no time"
    ),
    pytest.param(
        scenario({"name": "x", "attachTimeout": "-1s"}), "attachTimeout", "'-1s'", id="negative"
    ),
    pytest.param(scenario({"name": "x", "timeout": 30}), "timeout", "must be text", id="a number"),
    pytest.param(
        scenario({"name": "x", "settings": "Off"}), "settings", "Checked, Unchecked", id="settings"
    ),
    pytest.param(waited(), "(name 'x').waiter", "needs one of name, conditions", id="no waiter"),
    pytest.param(
        waited(name="quiet", conditions=[CONDITION]),
        "waiter.conditions",
        "two waiters",
        id="two waiters",
    ),
    pytest.param(waited(quietPeriod="0"), "quietPeriod", "longer than zero", id="never quiet"),
    pytest.param(
        waited(conditions=[{"expression": "true"}]), "conditions[0]", "needs apiVersion", id="of?"
    ),
    pytest.param(
        waited(conditions=[{**CONDITION, "expression": "object.status.replicas =="}]),
        "(name 'x').waiter.conditions[0].expression",
        "at its end",
        id="no expression",
    ),
    pytest.param(
        waited(conditions=[{**CONDITION, "expression": "objects_.spec == 1"}]),
        "waiter.conditions[0].expression",
        "did you mean 'objects'?",
        id="unknown variable",
    ),
    pytest.param(
        waited(conditions=[{**CONDITION, "expression": "size(objects)"}]),
        "waiter.conditions[0].expression",
        "it must be true or false, but its type is int",
        id="no boolean",
    ),
    pytest.param(
        waited(conditions=[{**CONDITION, "expression": "object.status.ready"}]),
        "waiter.conditions[0].expression",
        "write bool(...) around it",
        id="perhaps a boolean",
    ),
]


@pytest.mark.parametrize(("faulty", "where", "fault"), FAULTS)
def test_a_fault_says_where_and_what(faulty: JsonObject, where: str, fault: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_spec(faulty)
    assert where in str(caught.value)
    assert fault in str(caught.value)


def test_all_faults_of_an_entry_are_told() -> None:
    entry = {"name": "X", "feed": "OnePod", "timeout": "0s", "waiter": {"quietPeriod": "soon"}}
    paths = [fault.path[4:] for fault in find_faults(scenario(entry))]
    assert paths == [("name",), ("feed",), ("timeout",), ("waiter", "quietPeriod")]


WRONG_TYPES: list[Any] = ["text", 7, [1], [["a", "b"]], {"a": 1}, True]


@pytest.mark.parametrize("place", ["kind", "feed", "waiter", "timeout", "settings", "name"])
def test_a_value_of_the_wrong_type_is_never_a_crash(place: str) -> None:
    for wrong in WRONG_TYPES:
        is_name = place == "name" and isinstance(wrong, str)
        assert bool(list(find_faults(scenario({"name": "x", place: wrong})))) is not is_name
        inside = scenario({"name": "x", "waiter": {place: wrong}})
        assert bool(list(find_faults(inside))) is not is_name


def test_an_expression_is_pointed_at_in_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: pointed}
spec:
  operations: []
  controllers:
    simulationControllers: {enabled: [{name: kube-scheduler}]}
    outside:
      - name: mine
        waiter:
          conditions:
            - apiVersion: apps/v1
              kind: Deployment
              expression: object.spec.replicas == nobody.spec
""",
        encoding="utf-8",
    )
    assert validate_files([file]) == 2
    assert f"{file}:14:51: " in capsys.readouterr().err


# -- who they are ------------------------------------------------------------------------------


def test_they_are_known_and_react_before_the_simulation_unless_they_are_simulated() -> None:
    spec = parse_spec(scenario({"name": "b"}, {"name": "a"}, {"name": "c"}, simulated=("a",)))
    check_controllers(spec, ["deployment"])
    assert spec.presimulation_controllers(["deployment"]) == ["deployment", "b", "c"]


def test_one_with_a_built_in_name_takes_its_place() -> None:
    spec = parse_spec(scenario({"name": "deployment"}))
    settled = spec.presimulation_controllers(["nodeset", "deployment", "kubelet"])
    assert settled == ["nodeset", "deployment", "kubelet"]


def test_they_can_be_disabled_and_enabled_by_name() -> None:
    off = parse_spec(
        scenario({"name": "x"}, presimulationControllers={"disabled": [{"name": "x"}]})
    )
    assert off.presimulation_controllers(["kubelet"]) == ["kubelet"]
    groups = {"disabled": [{"name": "*"}], "enabled": [{"name": "x"}]}
    only = parse_spec(scenario({"name": "x"}, presimulationControllers=groups))
    assert only.presimulation_controllers(["kubelet"]) == ["x"]


def test_a_typo_lists_them_with_the_others() -> None:
    with pytest.raises(ScenarioError, match="registered are: kubelet, mine"):
        check_controllers(parse_spec(scenario({"name": "mine"}, simulated=("mein",))), ["kubelet"])


def test_they_cannot_be_changed_while_the_scenario_is_under_way() -> None:
    old, new = scenario({"name": "x"}), scenario({"name": "y"})
    (complaint,) = complaints_about(old["spec"], new["spec"], parse_spec(new), ())
    assert complaint.field == "controllers"


def test_a_scheduler_outside_does_not_share_its_pods_with_ours() -> None:
    rival = scenario({"name": "mine", "kind": "scheduler"}, simulated=("mine",))
    result = run(rival)
    assert (result.phase, result.bad_input) == (ScenarioPhase.FAILED, True)
    assert "pods of 'default-scheduler' are bound by the kube-scheduler of this process" in (
        result.message
    )


@pytest.mark.parametrize(
    "fine",
    [
        scenario({"name": "kube-scheduler", "kind": "scheduler"}),
        scenario({"name": "m", "kind": "scheduler", "schedulerName": "m"}, simulated=("m",)),
        scenario(
            {"name": "m", "kind": "scheduler"},
            simulated=("m",),
            presimulationControllers={"disabled": [{"name": "kube-scheduler"}]},
        ),
    ],
    ids=["in its place", "other pods", "ours is off"],
)
def test_where_nobody_can_give_turns_the_run_says_so(fine: JsonObject) -> None:
    result = run(fine)
    assert (result.phase, result.bad_input) == (ScenarioPhase.FAILED, True)
    assert "controllers.outside needs a server" in result.message
    assert '--outside NAME="command"' in result.message


def test_a_disabled_one_keeps_nobody_from_playing() -> None:
    off = scenario({"name": "x"}, presimulationControllers={"disabled": [{"name": "x"}]})
    assert run(off).phase is ScenarioPhase.PAUSED


def test_validate_finds_rivals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ScenarioBuilder("rivals").outside("mine", kind="scheduler").save(tmp_path / "s.yaml")
    assert validate_files([file]) == 2
    assert "give 'mine' the name kube-scheduler" in capsys.readouterr().err


def test_the_builder_declares_them() -> None:
    built = ScenarioBuilder("b").outside("mine", kind="bag").simulate("kube-scheduler").build()
    assert [each.kind for each in parse_spec(built).outside] == [OutsideKind.BAG]


def test_the_schemas_have_them() -> None:
    entry = spec_schema()["properties"]["controllers"]["properties"]["outside"]["items"]
    assert "waiter" in entry["properties"]
    strict = editor_schema()["properties"]["spec"]["properties"]["controllers"]["properties"]
    assert "command" not in strict["outside"]["items"]["properties"]
    assert strict["outside"]["items"]["properties"]["feed"]["enum"] == ["OnePod", "AllPods"]


# -- what they act on is not called without effect -----------------------------------------------


def told(with_outside: JsonObject, obj: JsonObject) -> list[str]:
    body = {"step": 1, "createOperation": {"object": obj}}
    spec = parse_spec({**with_outside, "spec": {**with_outside["spec"], "operations": [body]}})
    cast = Players.of(spec, ClusterWorld().registrations, SchedulerOptions())
    return [each.what for each in unsimulated(spec, cast)]


SCALER: JsonObject = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
}


def test_a_bag_may_hold_the_controller_of_any_kind() -> None:
    assert told(scenario({"name": "op"}), SCALER) == ["HorizontalPodAutoscaler"]
    assert told(scenario({"name": "kcm", "kind": "bag"}), SCALER) == []


def test_pods_of_a_scheduler_outside_are_not_said_to_wait() -> None:
    pod = make_pod("p").build()
    pod["spec"] |= {"schedulerName": "mine"}
    assert told(scenario({"name": "op"}), pod) == ["pod field schedulerName: mine"]
    mine = {"name": "m", "kind": "scheduler", "schedulerName": "mine"}
    assert told(scenario(mine), pod) == []
    replaced = scenario({**mine, "name": "kube-scheduler"})
    assert told(replaced, make_pod("q").build()) == ["pod field schedulerName: default-scheduler"]


def test_the_names_of_several_profiles() -> None:
    entry = {"name": "mine", "kind": "scheduler", "schedulerNames": ["a", "default-scheduler"]}
    (found,) = parse_spec(scenario(entry)).outside
    assert found.scheduler_names == ("a", "default-scheduler")
