"""Expectations on the command line: positions, exit codes, JUnit XML, here and on a server."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from commands import in_terminal, kubescene, started
from kubescene.apiserver.server import Server
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

HEAD = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: a}
spec:
  operations:
  - {step: 1, doneOperation: {}}
  expectations:
"""


def scenario() -> ScenarioBuilder:
    node = make_node("n").cpu("1").memory("1Gi").pods("9")
    return ScenarioBuilder("s").create(node).create(make_pod("p-$(INDEX)").cpu("1"), count=2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.yaml"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


# -- positions -------------------------------------------------------------------------------------

PLACE = "@"
"""Marks in these texts where the fault is; it is not in the file."""
WRITTEN = {
    "plain": "  - name: x\n    expression: pods.all(p, p@.nod == 1)",
    "single quotes": "  - {name: x, expression: 'phase == ''y'' && pods.all(p, p@.nod == 1)'}",
    "double quotes": '  - {name: x, expression: "pod[\\"a\\"]@.nod == 1"}',
    "block": "  - name: x\n    expression: |\n      pods.all(p,\n        p@.nod)\n",
    "folded": "  - name: x\n    expression: >-\n      pods.all(p,\n      p@.nod)\n",
    "plain lines": "  - name: x\n    expression: pods.all(p,\n        p@.nod)\n",
    "unicode": "  - name: x\n    expression: phase == 'é漢😀' && @nod\n",
    "its end": "  - name: x\n    expression: 1 +@\n",
    "not clear": '  - name: x\n    @expression: "\\x70od.nod"\n',
    "blank lines": "  - name: x\n    @expression: >\n      1 ==\n\n      nod\n",
    "the whole": "  - name: x\n    expression: @pods.size()\n",
    "message": "  - {name: x, expression: 'true', messageExpression: 1 @+ '' }",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_fault_names_the_very_place_in_the_file(text: str, file: Path) -> None:
    before = (HEAD + text).partition(PLACE)[0]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    file.write_text(HEAD + text.replace(PLACE, ""))
    found = kubescene("validate", file)
    assert found.returncode == 2
    assert found.stderr.startswith(f"{file}:{line}:{column}: spec.expectations[0] (name 'x')")
    played = kubescene("run", file)
    assert played.returncode == 2
    assert played.stderr == f"kubescene: {found.stderr}"


def test_validate_lists_all_of_them_beside_other_faults(file: Path) -> None:
    bad = "  - {name: x, expression: podz}\n  - {name: y, expression: '1'}\n"
    file.write_text(HEAD.replace("step: 1", "step: 0") + bad)
    lines = kubescene("validate", file).stderr.splitlines()
    assert [line.removeprefix(f"{file}:").partition(":")[0] for line in lines] == ["6", "8", "9"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  - {name: x}", "spec.expectations[0]: needs expression"),
        ("  - {expression: 'true'}", "spec.expectations[0]: needs name"),
        ("  - {name: x, expressions: 'true'}", "did you mean expression?"),
        ("  - {name: x, expression: true}", "must be text, not True"),
        ("  - true", "must be an object, not True"),
        (
            "  - {name: x, expression: 'true'}\n  - {name: x, expression: 'true'}",
            "the name 'x' is used twice, at index 0 and 1",
        ),
    ],
)
def test_form_is_checked_like_that_of_other_fields(text: str, told: str, file: Path) -> None:
    file.write_text(HEAD + text)
    assert told in kubescene("validate", file).stderr


# -- exit codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "code"),
    [("pending.size() == 1", 0), ("pending.size() == 0", 3), ("pod['x'].node == ''", 3)],
    ids=["holds", "fails", "no value"],
)
@pytest.mark.parametrize("is_done", [True, False], ids=["Succeeded", "Paused"])
def test_an_expectation_that_does_not_hold_is_exit_3(
    expression: str, code: int, is_done: bool, file: Path
) -> None:
    built = scenario().expect("x", expression)
    (built.done() if is_done else built).save(file)
    assert kubescene("run", file).returncode == code


def test_a_run_that_fails_is_exit_1_whatever_it_expects(file: Path) -> None:
    scenario().step(2).create(make_node("n")).done().expect("x", "false").save(file)
    assert kubescene("run", file).returncode == 1


def test_what_does_not_hold_is_shown_last_and_told_on_standard_error(file: Path) -> None:
    expecting = scenario().done().expect("fine", "true")
    expecting.expect("nobody waits", "pending.size() == 0", "somebody does").save(file)
    run = kubescene("run", file)
    shown = run.stdout.splitlines()[-3:]
    assert [line.rstrip() for line in shown] == [
        "Expectations: 1 of 2 hold",
        "  holds  fine",
        "  FAILS  nobody waits: somebody does (1 == 0)",
    ]
    quiet = kubescene("run", file, "--quiet")
    assert (quiet.returncode, quiet.stdout) == (3, "")
    line = file.read_text().splitlines().index("  - name: nobody waits") + 1
    told = "expectation 'nobody waits' does not hold: somebody does (1 == 0)\n"
    assert quiet.stderr == f"kubescene: {file}:{line}:5: {told}"
    assert run.stdout.splitlines()[0] == "s  1 of 2 expectations failed  Succeeded"


def test_a_terminal_shows_what_was_seen_once(file: Path) -> None:
    scenario().done().expect("x", "pending.size() == 0").save(file)
    code, told = in_terminal("run", file, columns=200)
    assert code == 3
    assert told.count("1 == 0") == 1
    line = file.read_text().splitlines().index("  - name: x") + 1
    assert f"{line}:5: expectation 'x' does not hold\r\n" in told


def test_a_run_by_hand_ends_with_the_same_code(file: Path) -> None:
    scenario().done().expect("x", "pending.size() == 0").save(file)
    done = kubescene("run", file, "--interactive", text="end\n")
    assert done.returncode == 3
    assert (
        "expectation 'x' does not hold: failed expression: pending.size() == 0 (1 == 0)"
        in done.stdout
    )


# -- JUnit XML -------------------------------------------------------------------------------------


def cases(junit: Path) -> dict[str, str]:
    found = fromstring(junit.read_text()).iter("testcase")
    return {case.attrib["name"]: ",".join(each.tag for each in case) for case in found}


def test_junit_has_a_case_for_the_run_and_each_expectation(file: Path, tmp_path: Path) -> None:
    scenario().done().expect("a", "true").expect("b", "false").save(file)
    junit = tmp_path / "new" / "junit.xml"
    assert kubescene("run", file, "--quiet", "--junit", junit).returncode == 3
    assert cases(junit) == {"the scenario is played": "", "a": "", "b": "failure"}


def test_junit_of_a_run_that_failed(file: Path, tmp_path: Path) -> None:
    scenario().step(2).create(make_node("n")).done().expect("a", "true").save(file)
    junit = tmp_path / "junit.xml"
    assert kubescene("run", file, "--quiet", "--junit", junit).returncode == 1
    assert cases(junit) == {"the scenario is played": "error", "a": "skipped"}


@pytest.mark.parametrize("text", ["a: [", HEAD + "  - {name: x, expression: podz}"])
def test_junit_of_a_scenario_that_cannot_be_played(text: str, file: Path, tmp_path: Path) -> None:
    file.write_text(text)
    junit = tmp_path / "junit.xml"
    assert kubescene("run", file, "--quiet", "--junit", junit).returncode == 2
    assert cases(junit)["the scenario is played"] == "error"


@pytest.mark.parametrize("is_scenario", [True, False], ids=["the scenario", "another file"])
def test_junit_overwrites_nothing_but_junit(is_scenario: bool, file: Path, tmp_path: Path) -> None:
    scenario().done().save(file)
    other = file if is_scenario else tmp_path / "pods.yaml"
    if not is_scenario:
        other.write_text("kind: Pod")
    before = other.read_bytes()
    run = kubescene("run", file, "--junit", other)
    assert run.returncode == 2
    assert f"{other} is there and holds no test results: choose another --junit" in run.stderr
    assert other.read_bytes() == before


def test_equal_runs_write_equal_junit(file: Path, tmp_path: Path) -> None:
    scenario().done().expect("a", "true").save(file)
    for name in ("1", "2"):
        kubescene("run", file, "--quiet", "--junit", tmp_path / name)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


# -- a server plays it -----------------------------------------------------------------------------


def test_a_server_gives_the_same_code_summary_and_junit(
    server: Server, file: Path, tmp_path: Path
) -> None:
    scenario().done().expect("a", "true").expect("b", "pod['x'].node == ''").save(file)
    here = kubescene("run", file, "--junit", tmp_path / "here.xml")
    there = started("run", file, "--server", server.url, "--junit", tmp_path / "there.xml")
    assert here.returncode == there.returncode == 3
    assert here.stdout == there.stdout
    assert here.stderr.splitlines()[-1] == there.stderr.splitlines()[-1]
    assert (tmp_path / "here.xml").read_bytes() == (tmp_path / "there.xml").read_bytes()


def test_a_server_that_refuses_an_expression_is_quoted_with_line_and_column(
    server: Server, file: Path, tmp_path: Path
) -> None:
    file.write_text(HEAD + "  - {name: x, expression: podz}")
    run = started("run", file, "--server", server.url, "--junit", tmp_path / "junit.xml")
    assert run.returncode == 2
    assert run.stderr.startswith(f"kubescene: {file}:8:15: spec.expectations[0].expression: ")
    assert "undeclared reference to 'podz'" in run.stderr
    assert cases(tmp_path / "junit.xml") == {"the scenario is played": "error"}


def test_a_server_knows_no_measures_of_somebodys_own(server: Server, file: Path) -> None:
    scenario().done().expect("few", "measures.surge < 3").save(file)
    refused = started("run", file, "--server", server.url)
    assert refused.returncode == 2
    assert "undefined field 'surge'" in refused.stderr
