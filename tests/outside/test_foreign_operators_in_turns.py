"""Operators that know nothing of us, on controller-runtime and on kopf, take part in Scenarios."""

import sys
from importlib.util import find_spec

import pytest

from kubescene.types import JsonObject
from outside_runs import Played, create, done, scenario, stage
from real_programs import SOURCES, require_program


def controller_runtime(option: str) -> str:
    return f"{require_program('fan-out-operator')} -kubeconfig {{kubeconfig}} {option}"


def kopf(option: str) -> str:
    if find_spec("kopf") is None:
        pytest.skip("kopf is not installed: pip install kopf")
    return f"{sys.executable} {SOURCES / 'kopf_operator.py'} {{kubeconfig}} {option}"


COMMANDS = {"controller-runtime": controller_runtime, "kopf": kopf}


def source(name: str, copies: int) -> JsonObject:
    metadata = {"name": name, "labels": {"fan-out": str(copies)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


STORY = [
    create(1, source("red", 3)),
    create(2, source("blue", 2)),
    create(2, source("green", 2)),
    done(3),
]


def played(program: str, option: str) -> Played:
    outside = {"name": "fan-out", "timeout": "100s"}
    with stage({"fan-out": COMMANDS[program](option)}) as made:
        return made.play(scenario(STORY, outside, simulated=("fan-out",)))


def creations(run: Played) -> list[tuple[str, str]]:
    told = run.told_by("fan-out")
    return [(step, name) for step, kind, name in told if kind == "ObjectCreated"]


@pytest.mark.parametrize("program", COMMANDS)
def test_an_unmodified_operator_goes_write_by_write_in_every_run(program: str) -> None:
    runs = [played(program, "") for _ in range(3)]
    assert [(run.phase, run.message) for run in runs] == [("Succeeded", "")] * 3
    made = creations(runs[0])
    assert [name for _, name in made][:3] == ["red-0", "red-1", "red-2"]
    assert sorted(name for _, name in made[3:]) == ["blue-0", "blue-1", "green-0", "green-1"]
    steps = [step for step, _ in made]
    assert len(set(steps)) == len(steps)
    assert all(run.told_by("fan-out") == runs[0].told_by("fan-out") for run in runs)


@pytest.mark.parametrize("program", COMMANDS)
def test_one_that_parks_writes_a_loop_in_one_minor_step(program: str) -> None:
    run = played(program, "--park" if program == "kopf" else "-park")
    assert (run.phase, run.message) == ("Succeeded", "")
    steps: dict[str, list[str]] = {}
    for step, name in creations(run):
        steps.setdefault(step, []).append(name)
    second = [sorted(names) for step, names in steps.items() if step.startswith("2.")]
    assert sorted(second) == [["blue-0", "blue-1"], ["green-0", "green-1"]]
