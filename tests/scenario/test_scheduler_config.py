"""``spec.simulation.schedulerConfig`` and ``--scheduler-config``."""

import pickle
from pathlib import Path

import pytest

import kubescene
from kubescene.cli.run.playing import RunArguments, run_scenario
from kubescene.errors import ScenarioError, SchedulerConfigurationError
from kubescene.runs.local import play
from kubescene.runs.requests import RunRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler.configuration import read_configuration
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PACKING = {"scoringStrategy": {"type": "MostAllocated"}}
PACK = {**HEADER, "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": PACKING}]}]}
UNKNOWN = {**HEADER, "profiles": [{"plugins": {"score": {"enabled": [{"name": "Nope"}]}}}]}


def scenario(config: JsonObject | None = None) -> JsonObject:
    """Two nodes, one of them half full, and a pod that has to choose."""
    builder = ScenarioBuilder("choice").step(1)
    for name in ("empty", "used"):
        builder.create(make_node(name).cpu("4").memory("8Gi"))
    builder.create(make_pod("old").cpu("2").memory("4Gi").on("used"))
    builder.step(2).create(make_pod("new").cpu("1").memory("2Gi")).done()
    if config is not None:
        builder.settings(schedulerConfig=config)
    return builder.build()


def chosen(run: kubescene.Run) -> str:
    return run.cluster.pod("new").node


def test_a_scenario_brings_its_own_configuration() -> None:
    assert chosen(kubescene.run(scenario())) == "empty"
    assert chosen(kubescene.run(scenario(PACK))) == "used"


def test_who_plays_it_has_the_last_word() -> None:
    assert chosen(kubescene.run(scenario(PACK), scheduler=HEADER)) == "empty"
    assert chosen(kubescene.run(scenario(), scheduler=PACK)) == "used"


def test_a_configured_run_can_be_sent_to_another_process() -> None:
    request = RunRequest(scenario=scenario(), scheduler=read_configuration(PACK))
    result = play(pickle.loads(pickle.dumps(request)))
    assert result.ok
    assert chosen(kubescene.run(scenario(), scheduler=read_configuration(PACK))) == "used"


def test_a_fault_in_it_fails_the_scenario_and_says_where() -> None:
    run = kubescene.run(scenario({**HEADER, "parallelism": 0}))
    assert run.bad_input
    assert run.message == (
        "spec.simulation.schedulerConfig: parallelism: Invalid value: 0: should be an integer "
        "value greater than zero"
    )


def test_a_plugin_that_does_not_exist_is_named_with_its_place() -> None:
    with pytest.raises(ScenarioError) as caught:
        kubescene.run(scenario(UNKNOWN))
    assert str(caught.value).startswith(
        "spec.simulation.schedulerConfig: profiles[0].plugins.score.enabled[0]: "
    )
    with pytest.raises(SchedulerConfigurationError):
        kubescene.run(scenario(), scheduler=UNKNOWN)


def test_the_command_line_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kubescene.api.text.yaml_text import dump_yaml

    file, config = tmp_path / "scenario.yaml", tmp_path / "scheduler.yaml"
    file.write_text(dump_yaml(scenario(HEADER)))
    config.write_text(dump_yaml(PACK))
    code = run_scenario(file, RunArguments(out=str(tmp_path / "out"), scheduler_configs=[config]))
    assert code == 0
    assert "used" in capsys.readouterr().out
