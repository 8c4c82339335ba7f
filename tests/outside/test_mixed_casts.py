"""Real programs of Kubernetes beside controllers of ours, and beside each other."""

import json
from typing import Any

import pytest

from kubescene.types import JsonObject
from outside.test_schedulers_in_turns import deployment, node
from outside_runs import FAN_OUT, Played, Stage, config_map, create, done, scenario, stage
from real_programs import require_program

MANAGER = {"name": "kube-controller-manager", "kind": "bag", "timeout": "120s"}
SCHEDULER = {"name": "kube-scheduler", "kind": "scheduler", "timeout": "120s"}
TAKEN_OVER = {"disabled": [{"name": "deployment"}, {"name": "replicaset"}]}
STORY = [
    create(1, node("n$(INDEX)", 4), count=4),
    create(2, deployment("web", 5, "500m")),
    {
        "step": 3,
        "patchOperation": {
            "typeMeta": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "objectMeta": {"name": "web"},
            "patch": '{"spec": {"replicas": 8}}',
        },
    },
    done(4),
]


def with_manager(*others: JsonObject, simulated: tuple[str, ...] = ("kube-scheduler",)) -> Any:
    made = scenario(STORY, MANAGER, *others, simulated=simulated)
    made["spec"]["controllers"]["presimulationControllers"] = TAKEN_OVER
    return made


def start_manager(made: Stage) -> None:
    made.start(MANAGER["name"], f"{require_program('kube-controller-manager')} {{settings}}", "bag")


def start_scheduler(made: Stage) -> None:
    made.start("kube-scheduler", f"{require_program('kube-scheduler')} {{settings}}", "scheduler")


def bindings(run: Played) -> list[tuple[str, str, str]]:
    return [
        (str(fact.step), fact.name, fact.node)  # type: ignore[attr-defined]
        for fact in run.facts
        if type(fact).__name__ == "PodScheduled"
    ]


def end_state(made: Stage) -> JsonObject:
    """What is left, without what the way there decides."""
    listed = json.loads(made.server.engine.call(made.server.cluster.export))["items"]
    state = {}
    for obj in listed:
        if obj["kind"] not in ("Deployment", "Node", "Pod", "ReplicaSet"):
            # What was there before the scenario has the server's time.
            continue
        metadata = obj["metadata"]
        for name in ("generation", "managedFields", "resourceVersion"):
            metadata.pop(name, None)
        obj.get("status", {}).pop("observedGeneration", None)
        state[f"{obj['kind']} {metadata.get('namespace', '')}/{metadata['name']}"] = obj
    return state


@pytest.fixture(scope="module")
def by_ours() -> Played:
    with stage() as made:
        run = made.play(scenario(STORY))
    assert run.phase == "Succeeded"
    return run


def test_the_real_controller_manager_before_our_scheduler(by_ours: Played) -> None:
    states, told = [], []
    for _ in range(2):
        with stage() as made:
            start_manager(made)
            run = made.play(with_manager())
            assert (run.phase, run.message) == ("Succeeded", "")
            states.append(end_state(made))
            told.append(run.status["scenarioResult"])
    assert states[0] == states[1]
    assert told[0] == told[1]
    assert [node for _, _, node in bindings(run)] == [node for _, _, node in bindings(by_ours)]
    assert run.status["outside"][0]["judgedBy"] == ["still", "linger"]
    assert run.status["outside"][0]["sameBytes"] is False


def test_our_controllers_before_the_real_scheduler(by_ours: Played) -> None:
    with stage() as made:
        start_scheduler(made)
        run = made.play(scenario(STORY, SCHEDULER))
    assert (run.phase, run.message) == ("Succeeded", "")
    assert bindings(run) == bindings(by_ours)


def test_both_are_real(by_ours: Played) -> None:
    with stage() as made:
        start_manager(made)
        start_scheduler(made)
        run = made.play(with_manager(SCHEDULER))
    assert (run.phase, run.message) == ("Succeeded", "")
    assert [node for _, _, node in bindings(run)] == [node for _, _, node in bindings(by_ours)]


def test_two_simulation_controllers_outside_have_their_turns_in_order() -> None:
    story = [
        *STORY[:1],
        create(2, config_map("a", 2)),
        create(2, deployment("web", 2, "1")),
        done(3),
    ]
    operator = {"name": "fan-out", "timeout": "60s"}
    with stage({"fan-out": FAN_OUT}) as made:
        start_scheduler(made)
        run = made.play(
            scenario(story, operator, SCHEDULER, simulated=("fan-out", "kube-scheduler"))
        )
    assert (run.phase, run.message) == ("Succeeded", "")
    assert [step for step, _, _ in run.told_by("fan-out")] == ["2.1", "2.2"]
    assert [step for step, _, _ in bindings(run)] == ["2.3", "2.4"]
