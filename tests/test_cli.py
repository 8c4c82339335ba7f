"""The command line: exit codes, errors that say what to do, and help with examples."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from commands import kubescene, started
from kubescene import run as play_scenario
from kubescene.cli.app import app
from kubescene.clock import ScenarioStep
from kubescene.errors import ScenarioError
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.timeline import Instrument
from kubescene.version import __version__

EXAMPLE = Path(__file__).parents[1] / "examples" / "01-first-scenario" / "scenario.yaml"
COMMANDS = [
    command.name or command.callback.__name__
    for command in app.registered_commands
    if command.callback
]
HEAD = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: a}
"""


class Done(NamedTuple):
    exit_code: int
    stdout: str


def invoke(*arguments: str | Path) -> Done:
    """The same without a process, for what does not depend on one."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return Done(result.exit_code, result.stdout)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


# -- exit codes --------------------------------------------------------------------------------


def test_a_run_that_succeeds_exits_0(tmp_path: Path) -> None:
    done = kubescene("run", EXAMPLE, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (0, 5), done.stderr
    assert "first-scenario  Succeeded" in done.stdout
    assert f"Results are in {tmp_path / 'out'}" in done.stdout.replace("\n", "")
    assert (tmp_path / "out" / "summary.json").exists()


def test_a_run_that_is_paused_exits_0_and_says_so(file: Path) -> None:
    ScenarioBuilder("s").create(make_node("n")).save(file)
    done = invoke("run", file)
    assert done.exit_code == 0
    assert "Paused" in done.stdout
    assert "no done operation" in done.stdout


def test_a_run_that_fails_exits_1(file: Path) -> None:
    ScenarioBuilder("s").delete("v1", "Node", "n", id="away").save(file)
    done = kubescene("run", file)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"kubescene: {file}:9:5: step 1, operation 'away': delete was refused: "
    )


def test_a_faulty_scenario_exits_2(file: Path) -> None:
    ScenarioBuilder("s").simulate("kube-schedular").save(file)
    done = kubescene("run", file)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"kubescene: {file}:9:7: spec.controllers.simulationControllers")
    assert "'kube-schedular'" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "there is no such file", id="missing"),
        pytest.param(HEAD + "spec: {a: [\n", ":5:1: not valid YAML", id="bad YAML"),
        pytest.param(
            HEAD + "kind: X\n", ":4:1: not valid YAML: the key 'kind' is given twice", id="dup"
        ),
        pytest.param("apiVersion: v1\nkind: Pod\n", "found 'v1' and 'Pod'", id="wrong kind"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exits_2(
    file: Path, text: str | None, message: str
) -> None:
    if text is not None:
        file.write_text(text)
    done = kubescene("run", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kubescene: {file}")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_results_that_cannot_be_written_are_one_line_and_exit_2(file: Path) -> None:
    ScenarioBuilder("s").save(file)
    done = kubescene("run", file, "--out", file)
    assert (done.returncode, done.stdout) == (2, "")
    expected = f"kubescene: cannot write results to {file}: File exists; choose another --out\n"
    assert done.stderr == expected


def test_results_cannot_be_written_where_a_link_leads_to_itself(file: Path, tmp_path: Path) -> None:
    file.write_text(ScenarioBuilder("s").done().to_yaml())
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    done = kubescene("run", file, "--out", tmp_path / "loop")
    assert done.returncode == 2
    assert done.stderr.startswith("kubescene: cannot write results to")


def test_a_full_disk_is_one_line_and_exits_1(file: Path, tmp_path: Path) -> None:
    ScenarioBuilder("s").create(make_pod("p-$(INDEX)"), count=50).save(file)
    (tmp_path / "timeline.jsonl").symlink_to("/dev/full")
    done = kubescene("run", file, "--quiet", "--out", tmp_path)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


# -- options -----------------------------------------------------------------------------------


def test_quiet_prints_nothing_if_all_is_well(tmp_path: Path) -> None:
    done = kubescene("run", EXAMPLE, "--quiet", "--out", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_quiet_still_says_what_failed(file: Path) -> None:
    ScenarioBuilder("s").delete("v1", "Node", "n", id="away").save(file)
    done = kubescene("run", file, "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert "step 1, operation 'away': delete was refused" in done.stderr


def test_a_seed_changes_generated_names(tmp_path: Path) -> None:
    timelines = []
    for seed in ("1", "1", "2"):
        assert invoke("run", EXAMPLE, "--seed", seed, "--out", tmp_path).exit_code == 0
        timelines.append((tmp_path / "timeline.jsonl").read_bytes())
    assert timelines[0] == timelines[1] != timelines[2]


def test_the_version_is_told() -> None:
    assert invoke("--version").stdout == f"kubescene {__version__}\n"


def test_progress_goes_to_stderr(tmp_path: Path) -> None:
    done = kubescene("run", EXAMPLE, "--out", tmp_path)
    assert "step 2 (2 of 5) at rest after 8 minor steps: " in done.stderr
    assert "at rest" not in done.stdout


def test_progress_counts_operations_however_many_writes_they_take() -> None:
    done = kubescene("run", EXAMPLE.parents[1] / "07-node-fails/scenario.yaml")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("step 5 (5 of 5) at rest after 0 minor steps: 9 of 9 objects written")
    assert last.count("6 pods bound, 2 failed attempts") == 1
    assert "step 3 (3 of 5) at rest after 0 minor steps: 7 of 9" in done.stderr
    assert re.search(r"1 failed attempt(, [\d,]+ a second.*)?\n", done.stderr)


# -- validate ----------------------------------------------------------------------------------


def test_validate_tells_of_every_file(file: Path) -> None:
    file.write_text(HEAD + "spec: {operations: [{step: 1, id: x}]}\n")
    done = kubescene("validate", EXAMPLE, file, EXAMPLE)
    assert done.returncode == 2
    assert done.stdout.count(f"{EXAMPLE}: fine, 12 operations in 5 steps\n") == 2
    assert done.stderr.startswith(f"{file}:4:21: spec.operations[0] (id 'x'): exactly one of")


def test_validate_exits_0_if_all_is_well() -> None:
    assert invoke("validate", EXAMPLE).exit_code == 0


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("apiVersion: v1\nkind: Pod\n", "kubescene convert {file} > scenario.yaml"),
        ("kind: Pod\n---\nkind: Node\n", "kubescene convert {file} > scenario.yaml"),
        ("kind: TrafficRun\n", "kubescene traffic run {file}"),
    ],
)
def test_a_file_of_another_kind_is_told_its_command(file: Path, text: str, advice: str) -> None:
    file.write_text(text)
    for command in ("run", "validate"):
        done = kubescene(command, file)
        assert done.returncode == 2
        assert done.stderr.endswith(f": {advice.format(file=file)}\n")


@pytest.mark.parametrize("text", ["a: b", "- kind: Pod", "kind: Scenario", "a: ["])
def test_what_is_of_no_kind_gets_no_advice(file: Path, text: str) -> None:
    file.write_text(text)
    assert "kubescene " not in kubescene("run", file).stderr.removeprefix("kubescene: ")


def test_traffic_says_who_plays_scenarios() -> None:
    told = kubescene("traffic", "run", EXAMPLE).stderr
    assert told.endswith(f"; to play it: kubescene run {EXAMPLE}\n")


# -- files -------------------------------------------------------------------------------------


def test_a_dash_is_standard_input() -> None:
    done = started(
        "run", "-", text=ScenarioBuilder("piped").create(make_node("n")).done().to_yaml()
    )
    assert done.returncode == 0
    assert "piped  Succeeded" in done.stdout
    done = kubescene("validate", "-", text=HEAD + "spec: {operations: [{step: 0}]}")
    assert done.returncode == 2
    assert done.stderr.startswith("<stdin>:4:22: spec.operations[0] (id 'op-1').step: must be")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("validate {file} 2>&-", 0),
        ("run {file} --out {out} >&- 2>&-", 0),
        ("run {file} --interactive <&-", 0),
        ("run - <&-", 2),
    ],
)
def test_a_standard_stream_may_be_closed(
    file: Path, tmp_path: Path, arguments: str, code: int
) -> None:
    file.write_text(ScenarioBuilder("s").create(make_node("n")).done().to_yaml())
    called = arguments.format(file=file, out=tmp_path / "out")
    command = ["sh", "-c", f"{sys.executable} -m kubescene {called}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


@pytest.mark.parametrize("out", [".", "./x/..", "../here"])
def test_results_never_overwrite_the_scenario(tmp_path: Path, out: str) -> None:
    folder = tmp_path / "here"
    (folder / "x").mkdir(parents=True)
    file = ScenarioBuilder("s").create(make_node("n")).save(folder / "scenario.yaml")
    before = file.read_bytes()
    quiet = kubescene("run", "scenario.yaml", "--out", out, "--quiet", cwd=folder)
    assert quiet.returncode == 0
    assert file.read_bytes() == before
    result = file.rename(folder / "result.yaml")
    done = kubescene("run", "result.yaml", "--out", out, cwd=folder)
    assert (done.returncode, result.read_bytes()) == (2, before)
    assert "the results would overwrite result.yaml" in done.stderr


def test_an_empty_out_is_refused(file: Path) -> None:
    ScenarioBuilder("s").save(file)
    done = kubescene("run", file, "--out", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kubescene: --out is empty: name a directory for the results\n"


BAD_INPUTS = {
    "no YAML": "a: [",
    "no Scenario": "kind: Pod",
    "no such strategy": ScenarioBuilder("s").build()
    | {"spec": {"operations": [], "simulation": {"explain": "All"}}},
    "no such controller": ScenarioBuilder("s").build()
    | {"spec": {"controllers": {"simulationControllers": {"enabled": [{"name": "x"}]}}}},
    "no such field": ScenarioBuilder("s").build()
    | {"spec": {"operations": [{"id": "a", "step": 1, "createOperations": {}}]}},
}


@pytest.mark.parametrize("bad", BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
def test_bad_input_writes_nothing_and_leaves_an_earlier_run_as_it_was(
    file: Path, tmp_path: Path, bad: object
) -> None:
    out, none = tmp_path / "out", tmp_path / "none"
    ScenarioBuilder("s").create(make_node("n")).save(file)
    assert invoke("run", file, "--out", out, "--report").exit_code == 0
    before = {each.name: each.read_bytes() for each in out.iterdir()}
    assert {"summary.json", "timeline.jsonl", "report.html"} <= set(before)
    file.write_text(bad if isinstance(bad, str) else json.dumps(bad))
    assert kubescene("run", file, "--out", out).returncode == 2
    assert {each.name: each.read_bytes() for each in out.iterdir()} == before
    assert kubescene("run", file, "--out", none).returncode == 2
    assert not none.exists()


def test_a_run_that_begins_takes_the_summary_of_an_earlier_one_away(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ScenarioBuilder("s").create(make_node("n")).save(file)
    assert invoke("run", file, "--out", out).exit_code == 0
    seen: list[bool] = []

    class Look(Instrument):
        def step_finished(self, step: ScenarioStep) -> None:
            seen.append((out / "summary.json").exists())

    play_scenario(file, out=out, instruments=(Look(),))
    assert seen == [False]
    assert (out / "summary.json").exists()


def test_what_was_played_with_a_seed_can_be_played_again(file: Path, tmp_path: Path) -> None:
    web = make_replica_set("web").replicas(2)
    ScenarioBuilder("s").create(make_node("n"), web).save(file)
    out, again = tmp_path / "out", tmp_path / "again"
    assert invoke("run", file, "--seed", "7", "--out", out).exit_code == 0
    assert invoke("run", out / "result.yaml", "--out", again).exit_code == 0
    assert (out / "timeline.jsonl").read_bytes() == (again / "timeline.jsonl").read_bytes()
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["seed"], summary["version"]) == (7, __version__)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", ":1: this is not text in UTF-8"),
        (b"a: b\0c", ": this is not a text file"),
        (b"a: b\nc: \xff", ":2: this is not text in UTF-8"),
    ],
    ids=["image", "zero", "latin"],
)
def test_a_binary_file_is_one_plain_line(file: Path, data: bytes, complaint: str) -> None:
    file.write_bytes(data)
    done = kubescene("run", file)
    assert (done.returncode, done.stderr) == (2, f"kubescene: {file}{complaint}\n")


def test_control_characters_are_not_sent_to_the_terminal(file: Path) -> None:
    operations = '[{id: "a\\e[31mb", step: 1, doneOperation: {done: false}}]'
    file.write_text(HEAD + f"spec: {{operations: {operations}}}\n")
    for command in ("run", "validate"):
        done = kubescene(command, file)
        assert done.returncode == 2
        assert "\x1b" not in done.stderr
        assert "a\\x1b[31mb" in done.stderr


def test_bad_metadata_is_the_scenarios_fault_with_its_line(file: Path) -> None:
    file.write_text(HEAD.replace("{name: a}", "{name: No Good}") + "spec: {operations: []}\n")
    done = kubescene("run", file)
    assert done.returncode == 2
    assert done.stderr.startswith(f"kubescene: {file}:3:1: ")
    assert "Scenario" in done.stderr
    assert "ConfigMap" not in done.stderr


def test_an_interrupt_says_what_was_reached(file: Path, tmp_path: Path) -> None:
    pods = make_pod("p-$(INDEX)").cpu("1m")
    ScenarioBuilder("s").create(make_node("n")).next_step().create(pods, count=1_000_000).save(file)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "kubescene", "run", str(file), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, stdout=subprocess.PIPE)
    assert process.stderr is not None
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert first.startswith("step 1 (1 of 2) at rest")
    assert process.returncode == 130
    assert rest.startswith("kubescene: interrupted at step ")
    assert f"{out} holds what happened until then, without a summary" in rest
    assert "Traceback" not in rest


INTERRUPTING = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            del sys.meta_path[0]
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from kubescene.cli import main
main()
"""


@pytest.mark.parametrize("module", ["kubescene.cli.app", "typer", "kubescene.errors"])
def test_an_interrupt_while_the_command_is_loaded_is_one_line(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTING, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = (130, "", "kubescene: interrupted before anything began\n")
    assert (done.returncode, done.stdout, done.stderr) == told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("serve", "--port", "abc"), "'--port': 'abc' is not a valid whole number."),
        (("traffic", "sweep", "f", "--jobs", "1.5"), "'--jobs': '1.5' is not a valid whole number"),
        (("autoscaler", "check", "--call-timeout", "x", "c"), "'x' is not a valid number."),
    ],
)
def test_what_is_no_number_is_told_in_words(arguments: tuple[str, ...], told: str) -> None:
    done = kubescene(*arguments)
    assert done.returncode == 2
    assert told in done.stderr


# -- what is not simulated ---------------------------------------------------------------------


def test_what_is_not_simulated_is_named_and_strict_refuses_it(file: Path) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "h"},
        "spec": {"podSelector": {}},
    }
    ScenarioBuilder("s").create(policy, id="crunch").save(file)
    fault = "NetworkPolicy has no effect: there is no network to keep apart"
    warning = f"{fault} (operation 'crunch')"
    run, checked = kubescene("run", file), kubescene("validate", file)
    assert run.returncode == checked.returncode == 0
    assert warning in " ".join(run.stdout.split())
    assert f"{file}: warning: {warning}" in checked.stderr
    for command in ("run", "validate"):
        strict = kubescene(command, file, "--strict")
        assert strict.returncode == 2
        assert f"{file}:9:5: step 1, operation 'crunch': {fault}\n" in strict.stderr


# -- help --------------------------------------------------------------------------------------


def test_the_commands_are_listed() -> None:
    listed = invoke("--help").stdout
    assert {"run", "validate"} <= set(COMMANDS)
    assert all(command in listed for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(command: str) -> None:
    shown = invoke(command, "--help")
    assert shown.exit_code == 0
    assert f"Example: kubescene {command}" in shown.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["run", str(EXAMPLE)], ["kubeconfig"]], ids=["run", "echo"])
def test_an_output_that_is_full_is_told(command: list[str], tmp_path: Path) -> None:
    more = ["--out", str(tmp_path)] if command[0] == "run" else []
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "kubescene", *command, *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == "kubescene: the output: No space left on device"
    assert "Traceback" not in process.stderr


def test_a_run_does_not_wait_for_the_server(tmp_path: Path) -> None:
    """The HTTP stack is there, and nobody but ``serve`` imports it."""
    code = (
        "import sys; sys.argv = ['kubescene', 'run', sys.argv[1], '--quiet']\n"
        "from kubescene.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "stack = ('uvicorn', 'uvloop', 'httptools', 'h11', 'asyncio', 'kubescene.apiserver')\n"
        "print([name for name in stack if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLE)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_server_with_an_unknown_results_strategy_does_not_start(how: str) -> None:
    arguments = ["serve", "--port", "0"]
    environment: dict[str, Any] = {}
    if how == "option":
        arguments += ["--results-strategy", "Sometimes"]
    else:
        environment["UPDATE_SCENARIO_RESULTS_STRATEGY"] = "Sometimes"
    done = kubescene(*arguments, **environment)
    assert done.returncode == 2
    assert "'Sometimes'; it must be one of: AtMovingNextStep, OnPause, OnDone" in done.stderr


def test_options_that_would_do_nothing_are_refused(file: Path) -> None:
    ScenarioBuilder("s").create(make_node("n")).done().save(file)
    alone = kubescene("run", file, "--delete")
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "--delete goes with --server" in alone.stderr
    there = kubescene("run", file, "--server", "http://127.0.0.1:9", "--plugin-errors", "stop")
    assert there.returncode == 2
    assert "--plugin-errors stop cannot be used with --server" in there.stderr
    assert kubescene("validate", file, "--plugin-errors", "stop").returncode == 2


def test_validate_tells_of_faults_in_form_and_in_objects_at_once(file: Path) -> None:
    file.write_text(
        HEAD.replace("name: a", "name: A_a")
        + """spec:
  operations:
  - step: 0
    doneOperation: {}
  - step: 1
    createOperation:
      object: {apiVersion: v1, kind: Podd, metadata: {name: p}}
      createOptions: {dryRun: [All]}
  controllers: {simulationControllers: {enabled: [{name: nobody}]}}
"""
    )
    done = kubescene("validate", file)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    told = ["metadata.name: Invalid value", "from 1 to", "Podd", "dryRun", "named 'nobody'"]
    assert len(lines) == len(told), done.stderr
    assert all(each in line for each, line in zip(told, lines, strict=True)), done.stderr


ALL_OF_THEM = """\
spec:
  controllers:
    simulationControllers:
      enabled: [{name: kube-scheduler}, {name: nobody}, {name: nothing}]
  simulation:
    startTime: yesterday
    kubelet: {startDelay: soon, readyDelay: never}
  expectations: [{name: a, expression: 1 +}]
"""


def test_validate_tells_of_every_wrong_value_of_a_part(file: Path) -> None:
    file.write_text(HEAD + ALL_OF_THEM)
    told = kubescene("validate", file).stderr.splitlines()
    assert [line.removeprefix(f"{file}:").split(" ")[0] for line in told] == [
        "7:7:",
        "7:7:",
        "9:5:",
        "10:15:",
        "10:33:",
        "11:43:",
    ]
    assert "spec.simulation.startTime: 'yesterday' is not an RFC 3339 time" in told[2]


def test_a_plugin_that_is_not_there_does_not_hide_other_faults(file: Path) -> None:
    config = "apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration"
    profile = "profiles: [{plugins: {score: {enabled: [{name: Bogus}]}}}]"
    spec = f"spec:\n  simulation: {{schedulerConfig: {{{config}, {profile}}}}}\n"
    file.write_text(HEAD + spec + "  expectations: [{name: a, expression: 1 +}]\n")
    plugin, expression = kubescene("validate", file).stderr.splitlines()
    assert plugin.startswith(f"{file}:5:152: spec.simulation.schedulerConfig: ")
    assert plugin.endswith('"Bogus" does not exist')
    assert expression.startswith(f"{file}:6:43: spec.expectations[0]")


def test_validate_does_not_blame_objects_whose_kind_a_faulty_operation_would_define(
    file: Path,
) -> None:
    file.write_text(
        HEAD
        + """spec:
  operations:
  - step: 1
    createOperation:
      objectt: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}
  - step: 2
    createOperation: {object: {apiVersion: a.b/v1, kind: Own, metadata: {name: p}}}
"""
    )
    done = kubescene("validate", file)
    assert "Own" not in done.stderr
    assert "objectt" in done.stderr


def test_a_seed_that_no_scenario_can_hold_is_named(file: Path) -> None:
    ScenarioBuilder("s").create(make_node("n")).done().save(file)
    for seed in (str(2**63), "-99999999999999999999"):
        done = kubescene("run", file, "--seed", seed)
        assert done.returncode == 2
        assert "seed" in done.stderr
        assert "nested" not in done.stderr
    with pytest.raises(ScenarioError, match="seed must be a whole number of 64 bits"):
        play_scenario(file, seed=2**63)


def test_progress_counts_an_eviction_as_one_write(file: Path) -> None:
    """It changes a condition before it deletes."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    builder = ScenarioBuilder("s").create(make_node("n")).create(make_pod("p")).next_step()
    builder.create(eviction).done().save(file)
    done = kubescene("run", file)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 objects written" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_waiter_that_cannot_be_had_is_told_also_if_nobody_waits(command: str) -> None:
    done = kubescene(command, EXAMPLE, "--waiter", "nowhere:Waiter")
    assert done.returncode == 2
    assert "'nowhere:Waiter' cannot be imported" in done.stderr


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("# later\n")
    done = kubescene("run", "s.yaml", cwd=tmp_path)
    told = "kubescene: s.yaml: there is nothing in it: one Scenario is expected\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_runs_of_the_other_sort_are_told_with_the_command_that_takes_them(tmp_path: Path) -> None:
    step = EXAMPLE.parents[1] / "traffic" / "step.yaml"
    assert kubescene("traffic", "run", step, "--out", tmp_path / "t", "--quiet").returncode == 0
    assert kubescene("run", EXAMPLE, "--out", tmp_path / "s", "--quiet").returncode == 0
    for command in (("report", "t"), ("compare", "s", "t"), ("results", "t")):
        assert "t is a run of traffic: kubescene traffic report" in (
            kubescene(*command, cwd=tmp_path).stderr
        )
    for asked in (("report", "s"), ("compare", "t", "s")):
        assert "s: this is a run of a scenario: kubescene report" in (
            kubescene("traffic", *asked, cwd=tmp_path).stderr
        )
    assert "nope: there is no such directory" in kubescene("traffic", "report", "nope").stderr


def test_one_attempt_is_not_several(tmp_path: Path) -> None:
    assert kubescene("run", EXAMPLE, "--out", tmp_path, "--quiet").returncode == 0
    done = kubescene("explain", "pod", "database", "--run", tmp_path, "--attempt", "9")
    assert done.stderr == "kubescene: database has 1 attempt, or -1 for the last\n"


def test_a_price_list_that_is_none_says_what_one_has(tmp_path: Path) -> None:
    assert kubescene("run", EXAMPLE, "--out", tmp_path, "--quiet").returncode == 0
    prices = tmp_path / "prices.yaml"
    prices.write_text("price: 3\n")
    done = kubescene("results", tmp_path, "--prices", prices)
    assert done.returncode == 2
    assert "unknown field `price`; a price list has `currency`, `label`, `hourly`" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("serve", "--port", "0", "--data-dir", EXAMPLE),
        ("controller", "--kubeconfig", "nowhere.yaml"),
        ("run", EXAMPLE, "--server", "http://127.0.0.1:1"),
    ],
)
def test_what_the_system_says_is_told_in_words(command: tuple[object, ...]) -> None:
    done = kubescene(*command)
    assert done.returncode in (1, 2)
    assert re.search("File exists|No such file or directory|Connection refused", done.stderr)
    assert "Errno" not in done.stderr


def test_a_file_is_looked_at_once_for_the_places_of_all_its_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubescene.api.text import positions

    builder = ScenarioBuilder("s")
    for number in range(20):
        builder = builder.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": number}})
    file = tmp_path / "faults.yaml"
    builder.save(file)
    looks: list[bytes] = []
    compose = positions.compose

    def counted(text: bytes) -> object:
        looks.append(text)
        return compose(text)

    monkeypatch.setattr(positions, "compose", counted)
    done = kubescene("validate", file)
    assert len(done.stderr.splitlines()) >= 20
    assert len(looks) == 1
