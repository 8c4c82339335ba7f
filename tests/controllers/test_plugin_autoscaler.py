"""Autoscalers behind the interface, on real Deployments."""

import shlex
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rich.console import Console

import kubescene
from controllers.test_horizontal_autoscaler import TARGET, autoscaler, usage
from controllers.test_knative_autoscaler import Decisions
from controllers.test_traffic import constant, deployment, traffic, world
from kubescene.autoscalers import (
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    ProcessAutoscaler,
    StatRequest,
)
from kubescene.cli.run.interactive import Session
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.errors import AutoscalerError, ConfigurationError
from kubescene.runs.examination import remarks
from kubescene.runs.requests import RunRequest
from kubescene.runs.staging import registrations
from kubescene.scenario.spec import normalised
from kubescene.scheduler import SchedulerOptions
from kubescene.shortcuts import PLAIN
from kubescene.traffic import run as run_traffic
from kubescene.types import JsonObject
from plugin_commands import program
from real_programs import require_program

SECOND = 10**9
PLUGINS = "pluginautoscalers"


def plugin(
    type: str = "", obj: JsonObject | None = None, name: str = "web", **spec: Any
) -> JsonObject:
    given: JsonObject = {"scaleTargetRef": TARGET, **spec}
    if type:
        given["type"] = type
    if obj is not None:
        given["object"] = obj
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "PluginAutoscaler",
        "metadata": {"name": name},
        "spec": given,
    }


def concurrency(**spec: Any) -> JsonObject:
    return {
        "apiVersion": "autoscaling.kubescene.dev/v1alpha1",
        "kind": "ConcurrencyAutoscaler",
        "metadata": {"name": "web"},
        "spec": spec,
    }


class Scripted(AutoscalerPlugin):
    """Keeps what it is told, and answers what its object says: one answer after the other."""

    types = ("scripted.example.com",)
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION}
    )

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.answers: dict[str, list[Any]] = {}

    def event(self, request: EventRequest) -> None:
        told = request.object
        if isinstance(told, Pod):
            kind = EventType(request.type).name
            self.told.append((request.partition, request.time, kind, told.name, told.state))
            return
        self.told.append((request.partition, request.time, EventType(request.type).name))
        if "refuse" in told.yaml:
            raise ConfigurationError("spec.answers: refused")
        text = told.yaml.partition("answers:")[2].partition("\n")[0]
        self.answers[request.partition] = text.strip(" '\"").split()

    def stat(self, request: StatRequest) -> None:
        for each in request.stat:
            kind = MetricType(each.type).name
            self.told.append((request.partition, each.time, kind, each.pod_name, each.value))

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        self.told.append((request.partition, request.time_nanos, "asked"))
        answers = self.answers[request.partition]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer == "raise":
            raise RuntimeError("no idea")
        if answer == "nonsense":
            return HorizontalRecommendationResponse(-3)
        if answer == "none":
            return None  # type: ignore[return-value]
        return HorizontalRecommendationResponse(int(answer), "as its object says")


SCRIPTED = Scripted.types[0]


def scripted(*answers: Any, name: str = "web", interval: str = "10s", **more: Any) -> JsonObject:
    obj = {"answers": " ".join(map(str, answers))}
    return plugin(SCRIPTED, {**obj, **more}, name, horizontalInterval=interval)


def started(*objects: JsonObject, **options: Any) -> tuple[ClusterWorld, Decisions]:
    cluster = world(autoscaler_plugins=(Scripted,), **options)
    decisions = Decisions(cluster)
    cluster.instruments.attach(decisions)
    for each in objects:
        cluster.create(each)
    cluster.settle()
    return cluster, decisions


def told(cluster: ClusterWorld) -> list[tuple[Any, ...]]:
    """What the plugin of a world was told, in seconds of the world."""
    begun = cluster._begins_at
    found = hosting(cluster)._dispatcher._by_type[SCRIPTED]
    return [(one[0], (one[1] - begun) / SECOND, *one[2:]) for one in found.told]


def hosting(cluster: ClusterWorld) -> Any:
    slot = next(each for each in cluster.manager.slots if each.name == "pluginautoscaler")
    return slot.controller._awake.reconciler  # type: ignore[union-attr]


def condition(cluster: ClusterWorld, name: str = "web") -> tuple[str, str, str]:
    [found] = cluster.get(PLUGINS, name)["status"]["conditions"]
    return found["status"], found["reason"], found["message"]


def replicas(cluster: ClusterWorld) -> int:
    found: int = cluster.get("deployments", "web")["spec"]["replicas"]
    return found


# -- what it is told and asked -------------------------------------------------------------------


def test_the_course_of_a_run() -> None:
    """Pods start in 4 seconds: launching, active, gone; a scrape every 15, a question every 10."""
    cluster, decisions = started(
        deployment(1),
        usage(points=[{"at": "0s", "value": "300m"}]),
        scripted(2, 1),
        kubelet=KubeletDelays(start=4 * SECOND),
    )
    cluster.advance("31s")
    assert decisions.made == [(10.0, 1, 2), (20.0, 2, 1)]
    assert decisions.reasons == ["as its object says"] * 2
    cluster.delete(PLUGINS, "web")
    cluster.settle()
    assert {one[0] for one in told(cluster)} == {"1"}
    first, second = dict.fromkeys(one[3] for one in told(cluster) if len(one) > 3)
    messages = [one[1:] for one in told(cluster)]
    gone = next(one[2] for one in messages if one[:2] == (20.0, "DELETE"))
    [left] = {first, second} - {gone}
    shares = [(15.0, "CPU_MILLIS", name, 150) for name in sorted((first, second))]
    assert messages == [
        (0.0, "CREATE"),
        (0.0, "CREATE", first, "launching"),
        (4.0, "UPDATE", first, "active"),
        (10.0, "asked"),
        (10.0, "CREATE", second, "launching"),
        (14.0, "UPDATE", second, "active"),
        *shares,
        (20.0, "asked"),
        (20.0, "DELETE", gone, "active"),
        (30.0, "CPU_MILLIS", left, 300),
        (30.0, "asked"),
        (31.0, "DELETE"),
    ]


def test_events_say_what_was_done_and_the_status_how_it_is() -> None:
    cluster, _ = started(deployment(1), scripted(3), events=True)
    cluster.advance("10s")
    status = cluster.get(PLUGINS, "web")["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (1, 3)
    assert status["reason"] == "as its object says"
    assert condition(cluster) == ("True", "Asked", "")
    said = [each for each in cluster.list("events") if each["reason"] == "SuccessfulRescale"]
    assert [each["message"] for each in said] == ["New size: 3; reason: as its object says"]


# -- the same as elsewhere -----------------------------------------------------------------------


@pytest.mark.parametrize(("target", "pods"), [(0.5, 8), (1.0, 4), (1.5, 3)])
def test_the_concurrency_plugin_wants_as_many_as_in_a_traffic_run(target: float, pods: int) -> None:
    """A load that never changes, on pods that are never contended: where both come to rest.

    100 requests a second of 25 ms are 2.5 at a time, and a pod should have 70 % of the target.
    """
    spec = {"target": target, "maxScale": 30}
    cluster, _ = started(
        deployment(3, cpu="1"),
        traffic(arrivals=constant(100)),
        plugin(obj=concurrency(**spec), horizontalInterval="2s"),
    )
    cluster.advance("6m")
    result = run_traffic(
        {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "TrafficRun",
            "metadata": {"name": "web"},
            "spec": {
                "duration": "6m",
                "traffic": constant(100),
                "request": {"cpuTime": "20ms", "ioTime": "5ms", "timeout": "1s"},
                "replicas": {"initial": 3, "cpu": "1", "launchDelay": "0s", "terminateDelay": "0s"},
                "metrics": {"lag": "0s"},
                "statInterval": "15s",
                "horizontalInterval": "2s",
                "autoscalers": [{"object": concurrency(**spec)}],
            },
        }
    )
    assert replicas(cluster) == result.counts[-1].desired == pods


def test_the_plugin_of_an_hpa_does_as_the_hpa_controller() -> None:
    points = [
        {"at": "0s", "value": "4"},
        {"at": "3m", "value": "1"},
        {"at": "10m", "value": "2500m"},
    ]
    made = []
    for scaler in (autoscaler(), plugin(obj=autoscaler(), horizontalInterval="15s")):
        cluster, decisions = started(deployment(2), usage(points=points), scaler, cpu="64")
        cluster.advance("20m")
        made.append(decisions.made)
    assert made[0] == made[1]
    assert len(made[0]) > 3


# -- sameness ------------------------------------------------------------------------------------


def course(cluster: ClusterWorld, *pieces: str) -> bytes:
    for each in pieces:
        cluster.advance(each)
    return cluster.export()


def busy(**options: Any) -> ClusterWorld:
    points = [{"at": "0s", "rps": 20}, {"at": "2m", "rps": 300}, {"at": "4m", "rps": 10}]
    load = {"pattern": "piecewise", "piecewise": {"points": points}}
    cluster, _ = started(
        deployment(2, cpu="1"),
        traffic(arrivals=load),
        plugin(obj=concurrency(target=2, maxScale=12), horizontalInterval="2s"),
        events=True,
        **options,
    )
    return cluster


def test_how_time_is_cut_and_what_is_only_faster_change_nothing() -> None:
    whole = course(busy(), "6m")
    assert course(busy(), "7s", "53s", "1m", "1m30s", "2m30s") == whole
    assert course(busy(shortcuts=PLAIN), "6m") == whole


def test_a_fork_has_a_plugin_of_its_own() -> None:
    cluster = busy()
    cluster.advance("2m10s")
    twin, other = deepcopy(cluster), cluster.fork()
    other.delete("traffics", "load")
    other.advance("2m")
    assert course(twin, "1m", "2m50s") == course(cluster, "3m50s") == course(busy(), "6m")
    assert other.export() != cluster.export()


def test_two_objects_are_two_partitions() -> None:
    second = deployment(1, name="shop")
    target = {**TARGET, "name": "shop"}
    other = scripted(4, name="shop")
    other["spec"]["scaleTargetRef"] = target
    cluster, _ = started(deployment(1), second, scripted(2), other)
    cluster.advance("10s")
    assert replicas(cluster) == 2
    assert cluster.get("deployments", "shop")["spec"]["replicas"] == 4
    by_partition = {
        part: {one[3].split("-")[0] for one in told(cluster) if one[0] == part and len(one) > 3}
        for part in ("1", "2")
    }
    assert by_partition == {"1": {"web"}, "2": {"shop"}}


# -- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("raise", "at HorizontalRecommendation: RuntimeError: no idea"),
        ("nonsense", "at HorizontalRecommendation: -3 is no number of pods"),
        ("none", "at HorizontalRecommendation: the answer is no response but None"),
        ("100001", "100001 pods are more than the 100000 that one target may have"),
    ],
)
def test_what_makes_no_sense_is_told_and_nothing_else_happens(answer: str, said: str) -> None:
    cluster, decisions = started(deployment(2), scripted(3, answer, answer, 1), events=True)
    cluster.advance("29s")
    state, reason, message = condition(cluster)
    assert (state, reason) == ("False", "AutoscalerFailed")
    assert said in message
    warned = [each for each in cluster.list("events") if each["reason"] == "AutoscalerFailed"]
    assert [(each["message"], each.get("count", 1)) for each in warned] == [(message, 1)]
    assert replicas(cluster) == 3
    cluster.advance("11s")
    assert condition(cluster)[:2] == ("True", "Asked")
    assert [one[1:] for one in decisions.made] == [(2, 3), (3, 1)]


def test_an_object_that_is_refused_is_not_asked_about_until_it_is_another() -> None:
    cluster, decisions = started(deployment(1), scripted(3, refuse=True))
    cluster.advance("1h")
    assert condition(cluster)[:2] == ("False", "ObjectRefused")
    assert "spec.answers: refused" in condition(cluster)[2]
    assert len(told(cluster)) == 2  # created, and forgotten
    cluster.patch(PLUGINS, "web", {"spec": {"object": {"refuse": None}}})
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("True", "Asked")
    assert [one[1:] for one in decisions.made] == [(1, 3)]


def test_a_type_that_nobody_takes() -> None:
    cluster, _ = started(deployment(1), plugin("other.example.com"))
    state, reason, message = condition(cluster)
    assert (state, reason) == ("False", "UnknownType")
    assert "no autoscaler takes objects of type 'other.example.com'; available are: " in message
    assert SCRIPTED in message
    assert "concurrency.v1alpha1.autoscaling.kubescene.dev" in message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"horizontalInterval": "0s"}, "spec.horizontalInterval: has to be 1s or longer"),
        ({"horizontalInterval": "1ms"}, "spec.horizontalInterval: has to be 1s or longer"),
        ({"horizontalInterval": "soon"}, "spec.horizontalInterval: "),
        ({"type": ""}, "spec.type: it does not follow from spec.object"),
    ],
)
def test_a_spec_that_makes_no_sense(spec: JsonObject, said: str) -> None:
    obj = scripted(3)
    obj["spec"] |= spec
    cluster, _ = started(deployment(1), obj)
    cluster.advance("1m")
    assert condition(cluster)[:2] == ("False", "InvalidSpec")
    assert condition(cluster)[2].startswith(said)
    assert replicas(cluster) == 1


def test_a_target_that_is_not_there_is_waited_for() -> None:
    cluster, decisions = started(scripted(3))
    cluster.advance("1m")
    assert condition(cluster) == ("False", "TargetNotFound", 'deployments.apps "web" not found')
    cluster.create(deployment(1))
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("True", "Asked")
    assert [one[1:] for one in decisions.made] == [(1, 3)]
    cluster.delete("deployments", "web")
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("False", "TargetNotFound")
    pods = {one[3]: one[2] for one in told(cluster) if len(one) > 3 and one[2] != "CPU_MILLIS"}
    assert set(pods.values()) == {"DELETE"}


def test_an_object_that_is_deleted_and_made_again_begins_anew() -> None:
    cluster, decisions = started(deployment(1), scripted(2, 3, 4))
    cluster.advance("10s")
    cluster.delete(PLUGINS, "web")
    cluster.create(scripted(5))
    cluster.advance("10s")
    assert [one[1:] for one in decisions.made] == [(1, 2), (2, 5)]
    ends = [(one[0], one[2]) for one in told(cluster) if len(one) == 3 and one[2] != "asked"]
    assert ends == [("1", "CREATE"), ("1", "DELETE"), ("2", "CREATE")]
    cluster.stop()


def test_a_world_that_ends_says_so() -> None:
    cluster, _ = started(deployment(1), scripted(2))
    plugin_of_world = hosting(cluster)._dispatcher._by_type[SCRIPTED]
    cluster.stop()
    assert plugin_of_world.told[-1][2:] == ("DELETE",)


# -- where plugins come from ---------------------------------------------------------------------


def scenario(*objects: JsonObject) -> JsonObject:
    created = [
        {"id": f"{n}", "step": 1, "createOperation": {"object": each}}
        for n, each in enumerate(objects)
    ]
    rest = [
        {"id": "time", "step": 2, "advanceOperation": {"duration": "1m"}},
        {"id": "done", "step": 3, "doneOperation": {}},
    ]
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "own"},
        "spec": {"operations": [*created, *rest]},
    }


def unknown_types(given: JsonObject, *plugins: Any) -> list[str]:
    said = remarks(
        given,
        normalised(given, None),
        controllers=registrations(ClusterOptions(), RunRequest(scenario=given)),
        scheduler=SchedulerOptions(),
        autoscalers=plugins,
    )
    return [each for each in said if "PluginAutoscaler of type" in each]


def test_what_nobody_takes_is_said_before_the_run() -> None:
    given = scenario(deployment(1), scripted(2))
    [said] = unknown_types(given)
    assert "no autoscaler takes that type; available are: concurrency." in said
    assert unknown_types(given, Scripted) == []
    assert unknown_types(scenario(deployment(1), plugin(obj=concurrency(target=1)))) == []


def test_a_run_takes_classes() -> None:
    given = scenario(deployment(1), scripted(2))
    result = kubescene.run(given, autoscalers=[Scripted])
    assert result.cluster.get("deployments", "web")["spec"]["replicas"] == 2
    assert result.tables["scaling"].rows
    without = kubescene.run(given)
    assert without.cluster.get("deployments", "web")["spec"]["replicas"] == 1


class Counted(Scripted):
    """Is counted as it is made and given back."""

    open: ClassVar[list["Counted"]] = []
    last: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self) -> None:
        super().__init__()
        Counted.open.append(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Counted":
        twin = Counted()
        twin.told, twin.answers = [*self.told], deepcopy(self.answers, memo)
        return twin

    def close(self) -> None:
        Counted.open.remove(self)
        if self.told:
            Counted.last[:] = self.told[-1:]


@pytest.fixture
def counted() -> type[Counted]:
    Counted.open.clear()
    Counted.last.clear()
    return Counted


def interrupted(*_: object) -> HorizontalRecommendationResponse:
    raise KeyboardInterrupt


def ends_in(how: str, monkeypatch: pytest.MonkeyPatch) -> JsonObject:
    """A scenario that is fine, that fails, or that somebody interrupts in its middle."""
    given = scenario(deployment(1), scripted(2))
    if how == "failed":
        given["spec"]["operations"].insert(-1, {"id": "no", "step": 3, "deleteOperation": NOBODY})
    if how == "interrupted":
        monkeypatch.setattr(Counted, "horizontal_recommendation", interrupted)
    return given


NOBODY = {
    "typeMeta": {"apiVersion": "v1", "kind": "Pod"},
    "objectMeta": {"name": "nobody", "namespace": "default"},
}


@pytest.mark.parametrize("how", ["well", "failed", "interrupted"])
def test_a_run_that_is_over_gives_its_autoscalers_back(
    how: str, counted: type[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ends_in(how, monkeypatch)
    if how == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            kubescene.run(given, autoscalers=[counted])
    else:
        assert kubescene.run(given, autoscalers=[counted]).ok is (how == "well")
    assert counted.open == []
    assert [each[2:] for each in counted.last] == [("DELETE",)]


def test_a_world_that_goes_on_after_its_run_has_a_new_one(counted: type[Counted]) -> None:
    result = kubescene.run(scenario(deployment(1), scripted(2, 5)), autoscalers=[counted])
    assert counted.open == []
    result.cluster.advance("30s")
    assert len(counted.open) == 1
    assert replicas(result.cluster) == 5


def test_one_that_cannot_be_given_back_is_named(tmp_path: Path) -> None:
    class Stuck(Scripted):
        def close(self) -> None:
            if self.told:
                raise OSError("no way")

    given = scenario(deployment(1), scripted(2))
    with pytest.raises(AutoscalerError, match=r"scripted.example.com' at close: OSError: no way"):
        kubescene.run(given, autoscalers=[Stuck], out=tmp_path / "out")
    assert (tmp_path / "out" / "summary.json").exists()


def test_playing_by_hand_gives_them_back(
    counted: type[Counted], capsys: pytest.CaptureFixture[str]
) -> None:
    request = RunRequest(scenario=scenario(deployment(1), scripted(2)), autoscalers=(counted,))
    session = Session(request, Console())
    session.run(["major", "major", "back", "end", "quit"])
    assert "Succeeded" in capsys.readouterr().out
    assert counted.open == []


def test_a_process_is_told_and_asked_the_same(tmp_path: Path) -> None:
    """It says how many pods it knows: one, and nothing changes."""
    command = program("behaving", "well")
    given = scenario(deployment(1), plugin("behaving.example.com", {}, horizontalInterval="10s"))
    assert len(unknown_types(given)) == 1
    result = kubescene.run(given, autoscaler_processes=[command])
    assert result.ok
    assert condition(result.cluster)[:2] == ("True", "Asked")
    assert result.cluster.get(PLUGINS, "web")["status"]["desiredReplicas"] == 1


def test_a_world_with_a_process_cannot_be_forked() -> None:
    command = program("behaving", "well")
    process = ProcessAutoscaler(command)
    try:
        cluster = world(
            deployment(1),
            plugin("behaving.example.com", {}),
            autoscaler_plugins=(process,),
        )
        with pytest.raises(
            ConfigurationError, match=r"world with the autoscaler .* another process"
        ):
            cluster.fork()
        cluster.advance("1m")
        assert condition(cluster)[:2] == ("True", "Asked")
        process.close()
        cluster.advance("1m")
        assert condition(cluster)[:2] == ("False", "AutoscalerFailed")
    finally:
        process.close()


def test_a_go_plugin_and_a_python_one_do_the_same() -> None:
    """Both want one more than there are, at every question."""
    go = shlex.join(
        [str(require_program("plugin-interop", "scripts/build-plugin-interop")), "plugin"]
    )
    made = []
    for command in (go, program("counting")):
        process = ProcessAutoscaler(command, types=("counting.example.com",))
        try:
            cluster = world(
                deployment(1),
                plugin("counting.example.com", {"kind": "Any"}, horizontalInterval="10s"),
                autoscaler_plugins=(process,),
            )
            decisions = Decisions(cluster)
            cluster.instruments.attach(decisions)
            cluster.advance("35s")
            made.append(decisions.made)
        finally:
            process.close()
    assert made[0] == made[1] == [(10.0, 1, 2), (20.0, 2, 3), (30.0, 3, 4)]


def test_requests_that_wait_bring_the_first_pod() -> None:
    """What nobody serves is told of with the question; the last pod goes when they have gone."""
    points = [{"at": "0s", "rps": 0}, {"at": "1m", "rps": 20}, {"at": "2m", "rps": 0}]
    load = {"pattern": "piecewise", "piecewise": {"points": points, "interpolation": "step"}}
    cluster, decisions = started(
        deployment(0),
        traffic(arrivals=load, whenNone="wait"),
        plugin(obj=concurrency(target=4, minScale=0, initialScale=0), horizontalInterval="2s"),
    )
    cluster.advance("10m")
    assert 60 < decisions.made[0][0] <= 64
    assert (decisions.made[0][1], decisions.made[-1][2]) == (0, 0)


def test_a_pod_that_is_asked_to_end_has_gone() -> None:
    delays = KubeletDelays(terminate=8 * SECOND)
    cluster, _ = started(deployment(2), scripted(1), kubelet=delays)
    cluster.advance("30s")
    assert [one[1] for one in told(cluster) if one[2] == "DELETE"] == [10.0]


def test_another_object_of_the_same_words_begins_anew() -> None:
    cluster, _ = started(deployment(1), scripted(2))
    cluster.delete(PLUGINS, "web")
    cluster.create(scripted(2))
    cluster.settle()
    assert [(one[0], one[2]) for one in told(cluster) if len(one) == 3] == [
        ("1", "CREATE"),
        ("1", "DELETE"),
        ("2", "CREATE"),
    ]


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    stateful = {**deployment(1), "kind": "StatefulSet"}
    stateful["spec"]["serviceName"] = "web"
    obj = scripted(1)
    obj["spec"]["scaleTargetRef"] = {**TARGET, "kind": "StatefulSet"}
    cluster, _ = started(stateful, obj)
    cluster.advance("5s")
    cluster.delete("pods", "web-0")
    cluster.advance("10s")
    pods = [one[1:4] for one in told(cluster) if len(one) == 5]
    assert pods == [(0.0, "CREATE", "web-0"), (5.0, "DELETE", "web-0"), (5.0, "CREATE", "web-0")]
