"""What the status and the summary say of controllers outside, and who may take part at all."""

from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from msgspec import structs
from rich.console import Console
from typer.testing import CliRunner

from kubescene.cli.app import app
from kubescene.cli.validate.faults import validate_files
from kubescene.clock import ScenarioStep
from kubescene.outside.stage import judged
from kubescene.reports.terminal import print_summary
from kubescene.results import Summary
from kubescene.results.summary import OutsideOutcome, Placement
from kubescene.scenario.outside import OutsideController, OutsideKind, OutsideStatus, WaiterSpec
from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.resource import ScenarioState, status_of
from outside_runs import FAN_OUT, config_map, create, done, scenario, stage

SCHEDULER, OPERATOR, BAG = OutsideKind.SCHEDULER, OutsideKind.OPERATOR, OutsideKind.BAG
JUDGEMENTS = [
    pytest.param(SCHEDULER, ("park-pod", "still"), True, {}, "", id="a scheduler, exactly"),
    pytest.param(SCHEDULER, ("park-pod", "still"), False, {}, "not known", id="unknown"),
    pytest.param(
        SCHEDULER, ("park-pod", "still"), True, {"unchecked": True}, "Unchecked", id="unchecked"
    ),
    pytest.param(SCHEDULER, ("park-pod", "quiet"), True, {}, "silence", id="by silence"),
    pytest.param(SCHEDULER, ("parked", "still"), True, {}, "silence", id="without park pods"),
    pytest.param(OPERATOR, ("parked", "quiet"), False, {}, "", id="one that parks"),
    pytest.param(OPERATOR, ("still",), True, {}, "judged from outside", id="one that does not"),
    pytest.param(BAG, ("still", "linger"), True, {}, "race", id="a bag"),
    pytest.param(SCHEDULER, (), True, {}, "never had a turn", id="nobody's turn"),
]


@pytest.mark.parametrize(("kind", "by", "known", "more", "doubt"), JUDGEMENTS)
def test_equal_runs_are_promised_only_where_nothing_was_guessed(
    kind: OutsideKind, by: tuple[str, ...], known: bool, more: dict[str, Any], doubt: str
) -> None:
    status = judged(OutsideController("x", kind, **more), by, settings_known=known)
    assert (status.name, status.kind, status.judged_by) == ("x", kind, by)
    watched = structs.replace(OutsideController("x", kind, **more), waiter=WaiterSpec("workloads"))
    signs = (*by, "waiter workloads") if by else ()
    assert judged(watched, by, settings_known=known) == structs.replace(status, judged_by=signs)
    assert status.same_bytes is (not doubt)
    assert doubt in status.message


def test_the_status_says_it_in_the_words_of_the_api() -> None:
    told = OutsideStatus("x", "operator", ("parked", "still"), same_bytes=True)
    state = ScenarioState(ScenarioPhase.RUNNING, "", ScenarioStep(0, 0), None, "", (), ())
    assert "outside" not in status_of(state)
    assert status_of(state._replace(outside=(told,)))["outside"] == [
        {
            "name": "x",
            "kind": "operator",
            "judgedBy": ["parked", "still"],
            "sameBytes": True,
        }
    ]


STORY = [create(1, config_map("a", fan_out=2)), done(2)]


@pytest.mark.parametrize("parks", [True, False])
def test_it_is_told_of_a_program_that_took_part(parks: bool) -> None:
    with stage({"fan-out": f"{FAN_OUT} --park" if parks else FAN_OUT}) as made:
        declared = {"name": "fan-out", "timeout": "60s"}
        run = made.play(scenario(STORY, declared, simulated=("fan-out",)))
    assert run.phase == "Succeeded", run.message
    (told,) = run.status["outside"]
    assert (told["name"], told["kind"], told["sameBytes"]) == ("fan-out", "operator", parks)
    assert ("parked" in told["judgedBy"]) is parks
    assert ("message" in told) is not parks


def test_a_waiter_that_nobody_brings_fails_before_anything_is_touched() -> None:
    with stage() as made:
        run = made.play(scenario(STORY, {"name": "x", "waiter": {"name": "nobody"}}))
    assert run.phase == "Failed"
    assert "no waiter is named 'nobody'; there are: kube-scheduler, workloads, quiet" in run.message
    assert run.facts == [] or [type(fact).__name__ for fact in run.facts] == ["ScenarioEnded"]


NEVER = {
    "conditions": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "default",
            "expression": "object.metadata.name != 'a-1'",
            "message": "a-1 must go",
        }
    ]
}


def test_a_waiter_that_never_comes_true_is_named_with_what_was_not_so() -> None:
    with stage({"fan-out": FAN_OUT}) as made:
        declared = {"name": "fan-out", "timeout": "2s", "waiter": NEVER}
        run = made.play(scenario(STORY, declared, simulated=("fan-out",)))
    assert run.phase == "Failed"
    assert "controller fan-out: after 2 s" in run.message
    assert "ConfigMap default/a-1: a-1 must go" in run.message


# -- on the terminal ----------------------------------------------------------------------------


def test_the_summary_shows_it() -> None:
    summary = Summary(scenario="s", phase="Succeeded")
    assert "outside" not in summary.to_dict()
    summary.outside = [
        OutsideOutcome("mine", "scheduler", ["park-pod", "still"], same_bytes=True),
        OutsideOutcome("kcm", "bag", ["quiet"], message="its workers race"),
    ]
    text = StringIO()
    print_summary(summary, Console(file=text, width=100))
    shown = [" ".join(line.split()) for line in text.getvalue().splitlines()]
    assert "mine scheduler park-pod, still same bytes" in shown
    assert "kcm bag quiet its workers race" in shown
    assert summary.to_dict()["outside"][1]["message"] == "its workers race"


def test_nodes_that_nobody_has_counted_are_not_shown_as_none() -> None:
    summary = Summary(scenario="s", phase="Succeeded")
    summary.placements = [Placement("default/p", "1.1", "n", candidates=0, feasible=0)]
    text = StringIO()
    print_summary(summary, Console(file=text, width=100))
    assert "0 of 0" not in text.getvalue()


def saved(tmp_path: Path, *outside: dict[str, Any], simulated: str = "fan-out") -> Path:
    file = tmp_path / "scenario.yaml"
    document = scenario(STORY, *outside, simulated=(simulated,))
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def test_a_run_with_a_program_tells_how_it_was_judged(tmp_path: Path) -> None:
    file = saved(tmp_path, {"name": "fan-out"})
    out = tmp_path / "out"
    asked = ["run", str(file), "--outside", f"fan-out={FAN_OUT} --park", "--out", str(out)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "fan-out" in result.stdout
    assert "same bytes" in result.stdout
    (told,) = orjson.loads((out / "summary.json").read_bytes())["outside"]
    assert told["same_bytes"] is True


def test_a_scheduler_without_its_settings_is_not_started(tmp_path: Path) -> None:
    file = saved(
        tmp_path, {"name": "kube-scheduler", "kind": "scheduler"}, simulated="kube-scheduler"
    )
    asked = ["run", str(file), "--outside", "kube-scheduler=/nowhere/kube-scheduler"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code != 0
    assert "parallelism is 16 by default, must be 1" in str(result.exception)


def test_validate_knows_the_waiters_that_are_brought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Mine:\n    name = 'mine'\n    def condition(self, reader):\n        return True\n"
    (tmp_path / "brought_waiters.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    file = saved(tmp_path, {"name": "fan-out", "waiter": {"name": "mine"}})
    assert validate_files([file]) == 2
    assert "no waiter is named 'mine'" in capsys.readouterr().err
    assert validate_files([file], waiters=["brought_waiters:Mine"]) == 0
