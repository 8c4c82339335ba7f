"""An operator in a process of its own takes part in a Scenario, unchanged or parking itself."""

import pytest

from outside_runs import FAN_OUT, Played, config_map, create, done, scenario, stage

STORY = [
    create(1, config_map("a", fan_out=3)),
    create(2, config_map("c", fan_out=2)),
    create(2, config_map("b", fan_out=2)),
    done(3),
]
UNCHANGED = [
    ("1.1", "ObjectCreated", "a-0"),
    ("1.2", "ObjectCreated", "a-1"),
    ("1.3", "ObjectCreated", "a-2"),
    ("2.1", "ObjectCreated", "c-0"),
    ("2.2", "ObjectCreated", "c-1"),
    ("2.3", "ObjectCreated", "b-0"),
    ("2.4", "ObjectCreated", "b-1"),
]

WATCHER = f"{FAN_OUT} --label nobody-has-it"
"""Watches ConfigMaps, as all of them do, and has nothing to do with any."""


def played(command: str, **declared: object) -> Played:
    outside = {"name": "fan-out", "timeout": "60s", **declared}
    with stage({"fan-out": command}) as made:
        return made.play(scenario(STORY, outside, simulated=("fan-out", "kube-scheduler")))


def test_an_unchanged_operator_goes_write_by_write() -> None:
    run = played(FAN_OUT)
    assert (run.phase, run.message) == ("Succeeded", "")
    assert run.told_by("fan-out") == UNCHANGED


def test_it_does_so_in_every_run() -> None:
    runs = [played(FAN_OUT) for _ in range(3)]
    assert [run.told_by("fan-out") for run in runs] == [UNCHANGED] * 3


def test_one_that_parks_has_one_minor_step_for_each_loop() -> None:
    run = played(f"{FAN_OUT} --park")
    assert run.told_by("fan-out") == [
        ("1.1", "ObjectCreated", "a-0"),
        ("1.1", "ObjectCreated", "a-1"),
        ("1.1", "ObjectCreated", "a-2"),
        ("2.1", "ObjectCreated", "c-0"),
        ("2.1", "ObjectCreated", "c-1"),
        ("2.2", "ObjectCreated", "b-0"),
        ("2.2", "ObjectCreated", "b-1"),
    ]


def test_one_that_dies_fails_the_scenario_with_its_last_words() -> None:
    run = played(f"{FAN_OUT} --die-after 4")
    assert run.phase == "Failed"
    assert run.message == (
        "controller fan-out: the program exited with code 1 "
        "(its last words: fan-out: nothing makes sense any more)"
    )
    assert run.told_by("fan-out") == UNCHANGED[:4]


def test_a_loop_that_never_ends_fails_the_scenario_in_real_time() -> None:
    run = played(f"{FAN_OUT} --park --hang-after 4", timeout="2s")
    assert run.phase == "Failed"
    assert "controller fan-out: after 2 s its loop was not over: it did not park" in run.message


def test_one_that_never_comes_is_named() -> None:
    with stage() as made:
        run = made.play(
            scenario(STORY, {"name": "fan-out", "attachTimeout": "1s"}, simulated=("fan-out",))
        )
    assert run.phase == "Failed"
    assert "controller fan-out: after 1 s nobody watches anything in its name" in run.message
    assert "kubescene kubeconfig --as fan-out" in run.message


def test_one_that_runs_and_never_comes_is_not_to_be_started() -> None:
    with stage({"fan-out": "sleep 600"}) as made:
        declared = {"name": "fan-out", "attachTimeout": "1s"}
        run = made.play(scenario(STORY, declared, simulated=("fan-out",)))
    assert run.phase == "Failed"
    assert "after 1 s the program runs, but nobody watches anything in its name" in run.message
    assert "start the program" not in run.message


def test_of_a_run_that_it_has_failed_nobody_promises_the_same_bytes() -> None:
    """What the others did until then is no promise, either."""
    programs = {"fan-out": f"{FAN_OUT} --park --hang-after 4", "other": WATCHER}
    outside = [{"name": "other", "timeout": "60s"}, {"name": "fan-out", "timeout": "2s"}]
    with stage(programs) as made:
        run = made.play(scenario(STORY, *outside, simulated=("other", "fan-out")))
    assert "controller fan-out: after 2 s its loop was not over" in run.message
    told = {each["name"]: (each["sameBytes"], each["message"]) for each in run.status["outside"]}
    why = "the scenario failed because of {}: when it did depends on the machine"
    assert told == {
        "other": (False, why.format("fan-out")),
        "fan-out": (False, why.format("it")),
    }


def test_after_a_failure_the_next_scenario_plays() -> None:
    with stage({"fan-out": f"{FAN_OUT} --die-after 4"}) as made:
        outside = {"name": "fan-out", "timeout": "60s"}
        assert made.play(scenario(STORY, outside, simulated=("fan-out",))).phase == "Failed"
        made.start("fan-out", FAN_OUT)
        again = made.play(scenario(STORY, outside, simulated=("fan-out",), name="again"))
    assert again.phase == "Succeeded"
    assert again.told_by("fan-out") == UNCHANGED


@pytest.mark.parametrize("role", ["simulation", "presimulation"])
def test_its_writes_count_as_its_role_says(role: str) -> None:
    simulated = ("fan-out",) if role == "simulation" else ("kube-scheduler",)
    with stage({"fan-out": FAN_OUT}) as made:
        outside = {"name": "fan-out", "timeout": "60s"}
        run = made.play(scenario(STORY, outside, simulated=simulated))
    steps = [step for step, _, _ in run.told_by("fan-out")]
    expected = [step for step, _, _ in UNCHANGED]
    assert steps == (expected if role == "simulation" else ["1.0"] * 3 + ["2.0"] * 4)
