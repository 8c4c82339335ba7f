"""Which settings programs outside need, and what their commands and files lack."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kubescene.cli.app import app
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.outside.command_lines import flags_of, gates_of, is_on
from kubescene.outside.commands import check_command, kind_of, missing_in, words_of
from kubescene.outside.manager_settings import (
    TIMED,
    advised_manager_settings,
    manager_arguments,
    missing_manager_settings,
    runs,
)
from kubescene.outside.settings import (
    advised_settings,
    missing_settings,
    recommended_arguments,
    recommended_configuration,
)
from kubescene.scenario.outside import OutsideController, OutsideKind, ShownPods
from kubescene.types import JsonObject
from real_programs import require_program

GOOD = recommended_configuration()
FLUSH = "--pod-max-in-unschedulable-pods-duration"
FLAGS = [f"{FLUSH}=240h", "--feature-gates=OpportunisticBatching=false"]


def test_what_is_recommended_lacks_nothing() -> None:
    assert recommended_arguments() == FLAGS
    assert missing_settings(GOOD, FLAGS) == []
    assert advised_settings(GOOD) == []
    assert recommended_arguments(FLAGS) == []


def test_a_plain_scheduler_lacks_everything() -> None:
    missing = missing_settings(None)
    assert [each.partition(" is ")[0] for each in missing] == [
        "parallelism",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "--kube-api-qps",
        "--kube-api-burst",
        "--pod-max-in-unschedulable-pods-duration",
        "--feature-gates OpportunisticBatching",
    ]
    assert missing[0].startswith("parallelism is 16 by default, must be 1: ")


MINE = OutsideController("mine", OutsideKind.SCHEDULER, ("mine",))
EXTENDER = {"urlPrefix": "http://127.0.0.1:1"}
SORTED = {"schedulerName": "mine", "plugins": {"queueSort": {"enabled": [{"name": "Fair"}]}}}
LACKING = [
    pytest.param({"parallelism": 2}, "parallelism is 2, must be 1", id="parallelism"),
    pytest.param({"podInitialBackoffSeconds": 86399}, "is 86399, must be at least", id="first"),
    pytest.param({"podMaxBackoffSeconds": None}, "podMaxBackoffSeconds is 10 by default", id="max"),
    pytest.param({"podMaxBackoffSeconds": True}, "podMaxBackoffSeconds is True", id="nonsense"),
    pytest.param({"extenders": [EXTENDER]}, "extenders is http://127.0.0.1:1", id="extender"),
    pytest.param({"clientConnection": {"qps": 9999, "burst": -1}}, "qps is 9999", id="qps"),
    pytest.param({"clientConnection": {"qps": 1e6, "burst": 0}}, "burst is 0", id="burst"),
    pytest.param({"clientConnection": None}, "clientConnection.qps is 50 by default", id="client"),
]


@pytest.mark.parametrize(("change", "told"), LACKING)
def test_each_setting_is_named_with_what_it_is(change: JsonObject, told: str) -> None:
    missing = missing_settings({**GOOD, **change}, FLAGS)
    assert told in missing[0]
    assert missing_settings(recommended_configuration({**GOOD, **change}), FLAGS) == (
        missing if "extenders" in change else []
    )


FLAG_CASES = [
    pytest.param(FLAGS[1:], "is 5m by default", id="no flush"),
    pytest.param([FLUSH, "1h", FLAGS[1]], "is 1h", id="short"),
    pytest.param([f"{FLUSH}=soon", FLAGS[1]], "soon", id="no time"),
    pytest.param(FLAGS[:1], "OpportunisticBatching is true by default", id="batching"),
    pytest.param([*FLAGS, "--feature-gates", "OpportunisticBatching=true"], "is true,", id="on"),
    pytest.param([*FLAGS, "--feature-gates=kube:SchedulerAsyncAPICalls=true"], "Async", id="async"),
    pytest.param([*FLAGS, "--feature-gates=AllBeta=true"], "SchedulerAsyncAPICalls", id="all beta"),
]


@pytest.mark.parametrize(("arguments", "told"), FLAG_CASES)
def test_each_flag_is_looked_at(arguments: list[str], told: str) -> None:
    (missing,) = missing_settings(GOOD, arguments)
    assert told in missing
    assert missing_settings(GOOD, [*arguments, *recommended_arguments(arguments)]) == []


@pytest.mark.parametrize("gate", ["GangScheduling", "AllAlpha"])
def test_gangs_are_the_authors_business(gate: str) -> None:
    """Without them it is another scheduler, with them one that never stands still."""
    arguments = [FLAGS[0], f"--feature-gates=OpportunisticBatching=false,{gate}=true"]
    (missing,) = missing_settings(GOOD, arguments)
    assert missing.startswith("--feature-gates GangScheduling is true, must be false: a gang that")
    added = recommended_arguments(arguments)
    assert missing_settings(GOOD, [*arguments, *added]) == [missing]
    assert missing_settings(GOOD, [*arguments, "--feature-gates=GangScheduling=false"]) == []


def test_without_a_document_the_flags_of_the_client_count() -> None:
    fast = ["--kube-api-qps=10000", "--kube-api-burst", "20000"]
    assert not any("kube-api" in each for each in missing_settings(None, fast))
    assert any("clientConnection.qps" in each for each in missing_settings({}, fast))


def test_leader_election_is_advice() -> None:
    assert "leaderElect is true, better false" in advised_settings(None)[0]
    assert advised_settings(None, ["--leader-elect=false"]) == []
    assert advised_settings(GOOD, ["--leader-elect", "false"]) != []  # as the program reads it


def test_the_profile_must_be_the_one_whose_pods_are_given() -> None:
    mine = {**GOOD, "profiles": [{"schedulerName": "mine"}]}
    assert missing_settings(mine, FLAGS, MINE) == []
    assert (
        "profiles is default-scheduler, must be mine alone"
        in missing_settings(GOOD, FLAGS, MINE)[0]
    )
    two = {**GOOD, "profiles": [{"schedulerName": "mine"}, {"schedulerName": "other"}]}
    assert "profiles is mine, other" in missing_settings(two, FLAGS, MINE)[0]


def test_another_order_of_the_queue_needs_all_pods_at_once() -> None:
    fair = {**GOOD, "profiles": [SORTED]}
    assert "queueSort is Fair" in missing_settings(fair, FLAGS, MINE)[0]
    at_once = OutsideController("mine", OutsideKind.SCHEDULER, ("mine",), ShownPods.ALL_PODS)
    assert missing_settings(fair, FLAGS, at_once) == []


@pytest.mark.parametrize(
    ("point", "name", "told"),
    [
        ("permit", "Coscheduling", ["profiles.plugins.permit is Coscheduling"]),
        ("preBind", "Attach", ["profiles.plugins.preBind is Attach"]),
        ("preBind", "VolumeBinding", []),
        ("preBind", "DynamicResources", []),
        ("score", "Mine", []),
    ],
)
def test_plugins_that_may_hold_a_pod_up_are_refused_by_name(
    point: str, name: str, told: list[str]
) -> None:
    profile = {"schedulerName": "mine", "plugins": {point: {"enabled": [{"name": name}]}}}
    found = missing_settings({**GOOD, "profiles": [profile]}, FLAGS, MINE)
    assert [each.partition(",")[0] for each in found] == told


def test_what_its_author_has_set_stays() -> None:
    base = {
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/k", "qps": 20_000},
        "leaderElection": {"resourceName": "mine"},
        "podInitialBackoffSeconds": 100_000,
        "profiles": [SORTED],
        "extenders": [EXTENDER],
    }
    made = recommended_configuration(base)
    assert made["clientConnection"] == {"kubeconfig": "/k", "qps": 20_000, "burst": 10_000}
    assert made["leaderElection"] == {"resourceName": "mine", "leaderElect": False}
    assert (made["podInitialBackoffSeconds"], made["podMaxBackoffSeconds"]) == (100_000, 100_000)
    assert (made["profiles"], made["extenders"]) == ([SORTED], [EXTENDER])
    assert base["clientConnection"] == {"kubeconfig": "/k", "qps": 20_000}


@pytest.mark.parametrize("wrong", ["text", 7, [1], {"a": 1}, True, None])
@pytest.mark.parametrize("name", ["clientConnection", "leaderElection", "extenders", "profiles"])
def test_a_document_of_the_wrong_form_is_no_crash(name: str, wrong: Any) -> None:
    if name in ("extenders", "profiles") and not isinstance(wrong, list | type(None)):
        return
    missing_settings({**GOOD, name: wrong}, FLAGS)
    recommended_configuration({**GOOD, name: wrong})


# -- command lines ---------------------------------------------------------------------------------


def test_flags_are_read_as_the_programs_read_them() -> None:
    line = "prog --a=1 --b 2 -c=3 --leader-elect next --d_e --f --a=4 -- --g=5"
    flags = flags_of(line.split())
    assert flags == {
        "a": ["1", "4"],
        "b": ["2"],
        "c": ["3"],
        "leader-elect": ["true"],
        "d-e": ["--f"],
    }


def test_gates_may_be_named_together_and_with_their_component() -> None:
    gates = gates_of(["A=true,B=false", "kube:C=True"])
    assert gates == {"A": True, "B": False, "C": True}
    assert is_on({"AllBeta": True, "X": False}, "X", default=True) is False
    assert is_on({"AllBeta": True}, "X", default=False) is True


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/opt/kube-scheduler --v=2", OutsideKind.SCHEDULER),
        ("my-scheduler", OutsideKind.SCHEDULER),
        ("kube-controller-manager", OutsideKind.BAG),
        ("python operator.py", OutsideKind.OPERATOR),
    ],
)
def test_what_a_program_seems_to_be(command: str, kind: OutsideKind) -> None:
    assert kind_of(words_of(command)) is kind


@pytest.mark.parametrize(("command", "why"), [("", "empty"), ("a 'b", "No closing quotation")])
def test_a_command_that_cannot_be_read(command: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        words_of(command)


def test_a_scheduler_without_its_settings_is_refused_unless_the_scenario_says_otherwise() -> None:
    with pytest.raises(ScenarioError, match="settings: Unchecked") as caught:
        check_command(MINE, ["kube-scheduler"])
    assert "\n  parallelism is 16 by default" in str(caught.value)
    check_command(
        OutsideController("mine", OutsideKind.SCHEDULER, unchecked=True), ["kube-scheduler"]
    )
    check_command(OutsideController("mine"), ["operator"])


# -- the controller manager ------------------------------------------------------------------------


def test_the_flags_for_a_controller_manager_lack_nothing() -> None:
    assert missing_manager_settings(manager_arguments()) == []
    assert advised_manager_settings(manager_arguments()) == []
    words = ["env", "A=1", "/opt/kube-controller-manager"]
    assert missing_in([*words, *manager_arguments(["job-controller"])], OutsideKind.BAG) == []
    assert missing_in(words, OutsideKind.BAG) != []
    assert missing_in(["my-operators"], OutsideKind.BAG) == []


def test_controllers_that_go_by_the_machines_clock_must_not_run() -> None:
    plain = missing_manager_settings(["--kube-api-qps=1e4", "--kube-api-burst=10000"])
    off_by_default = 1
    assert len(plain) == len(TIMED) - off_by_default
    assert any("--controllers runs cronjob-controller" in each for each in plain)
    assert len(missing_manager_settings([])) == len(plain) + 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("*", True),
        ("*,-cronjob-controller", False),
        ("*,-cronjob", False),
        ("deployment-controller", False),
        ("cronjob", True),
        ("-cronjob-controller,*", False),
    ],
)
def test_which_controllers_run(value: str, expected: bool) -> None:
    assert runs("cronjob-controller", [value]) is expected


# -- the command -----------------------------------------------------------------------------------


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["outside", "settings", *arguments])


def test_the_command_names_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("parallelism: 4\n", encoding="utf-8")
    result = invoke(f"kube-scheduler --config {file}")
    assert result.exit_code == 1
    assert "missing  parallelism is 4, must be 1" in result.stdout
    assert "--feature-gates=OpportunisticBatching=false" in result.stdout


def test_the_command_completes_a_configuration(tmp_path: Path) -> None:
    file, made = tmp_path / "config.yaml", tmp_path / "made.yaml"
    file.write_text("profiles: [{schedulerName: mine}]\nparallelism: 4\n", encoding="utf-8")
    result = invoke(f"kube-scheduler --config={file}", "--write", str(made))
    assert result.exit_code == 0, result.output
    written = yaml.safe_load(made.read_text(encoding="utf-8"))
    assert (written["parallelism"], written["profiles"]) == (1, [{"schedulerName": "mine"}])
    again = invoke(f"kube-scheduler --config={made} {' '.join(FLAGS)}", "--scheduler-name", "mine")
    assert (again.exit_code, again.stdout) == (0, "nothing is missing\n")


def test_what_a_completed_configuration_still_lacks_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("extenders: [{urlPrefix: 'http://x'}]\n", encoding="utf-8")
    result = invoke(f"kube-scheduler --config={file}", "--write", "-")
    assert result.exit_code == 1
    assert "missing  extenders is http://x" in result.stderr
    assert yaml.safe_load(result.stdout)["parallelism"] == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [("a: [", "config.yaml: "), ("- 1\n", "must hold one object"), ("a: 1\n---\nb: 1\n", "one")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=why):
        missing_in(["s", f"--config={file}"], OutsideKind.SCHEDULER)
    with pytest.raises(ConfigurationError, match="No such file"):
        missing_in(["s", "--config=/nowhere/at/all"], OutsideKind.SCHEDULER)


def test_a_controller_manager_and_an_operator() -> None:
    manager = invoke("kube-controller-manager")
    assert manager.exit_code == 1
    assert "flags    --controllers=deployment-controller,replicaset-controller" in manager.stdout
    assert invoke("kube-controller-manager", "--write", "-").exit_code != 0
    assert invoke("my-operator").exit_code == 0


def test_the_real_scheduler_accepts_what_is_recommended(tmp_path: Path) -> None:
    kubeconfig, config, written = tmp_path / "kube", tmp_path / "config.yaml", tmp_path / "written"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "contexts": [context],
                "current-context": "c",
            }
        ),
        encoding="utf-8",
    )
    made = recommended_configuration({**GOOD, "clientConnection": {"kubeconfig": str(kubeconfig)}})
    config.write_text(yaml.safe_dump(made), encoding="utf-8")
    scheduler = str(require_program("kube-scheduler"))
    asked = [scheduler, f"--config={config}", f"--write-config-to={written}", *FLAGS]
    subprocess.run(asked, check=True, capture_output=True, timeout=120)
    found = yaml.safe_load(written.read_text(encoding="utf-8"))
    assert (found["parallelism"], found["podMaxBackoffSeconds"]) == (1, 86_400)
    assert missing_settings(found, FLAGS) == []
