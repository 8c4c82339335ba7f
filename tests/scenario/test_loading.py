"""Scenario files: safe, bounded, and errors that name file, line and column."""

from pathlib import Path
from typing import Any

import pytest

import kubescene
from kubescene.errors import ScenarioError
from kubescene.scenario import load_scenario
from kubescene.scenario.reading import files as loading
from kubescene.scenario.reading.files import load_yaml

HEAD = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: a}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


def refusal(file: Path, text: str | bytes) -> str:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    return str(caught.value).replace(str(file), "FILE")


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.yaml: there is no such file"):
        load_scenario(file)


def test_a_directory_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        load_scenario(tmp_path)


def test_a_file_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is said to be 0."""
    monkeypatch.setattr(loading, "MAX_FILE_BYTES", 1000)
    with pytest.raises(ScenarioError, match="has 1001 bytes or more, more than the 1000"):
        load_scenario("/dev/zero")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(HEAD + "spec: {a: [1\n", "FILE:5:1: not valid YAML", id="broken"),
        pytest.param(
            HEAD + "spec: {}\nkind: X\n", "FILE:5:1: not valid YAML: the key 'kind'", id="dup"
        ),
        pytest.param(
            HEAD + "spec: {a: 1, a: 2}\n", "FILE:4:14: not valid YAML: the key 'a'", id="flow"
        ),
        pytest.param("", "there is nothing in it: one Scenario is expected", id="empty"),
        pytest.param("[" * 100_000, "FILE:1:201: not valid YAML: nested deeper", id="abyss"),
        pytest.param("- " * 50_000, "FILE:1:401: not valid YAML: nested deeper", id="stairs"),
        pytest.param(HEAD + "---\n" + HEAD, "found 2 documents", id="two"),
        pytest.param("[]", "must be an object", id="list"),
        pytest.param("kind: Pod\napiVersion: v1\n", "found 'v1' and 'Pod'", id="pod"),
        pytest.param(HEAD.replace("name: a", ""), "metadata.name is missing", id="no name"),
        pytest.param(
            HEAD + "spec: {1: a}\n",
            "FILE:4:8: not valid YAML: the key 1 is not text",
            id="number key",
        ),
        pytest.param(HEAD + "spec: [a]\n", "spec must be an object", id="spec list"),
        pytest.param(
            HEAD + "spec: {a: !!binary aGk=}\n",
            "FILE:4:11: not valid YAML: could not determine a constructor",
            id="bytes",
        ),
        pytest.param(HEAD + "spec: {a: !!python/name:os.system }\n", "not valid YAML", id="python"),
        pytest.param(HEAD + "spec: {true: a}\n", "the key True is not text", id="boolean key"),
        pytest.param(HEAD + "spec: {~: a}\n", "the key None is not text", id="null key"),
        pytest.param(HEAD + "spec: {a: 1e999}\n", "is not a finite number", id="infinite"),
        pytest.param(HEAD + "spec: {a: !!float .nan}\n", "is not a finite number", id="nan"),
        pytest.param(HEAD + f"spec: {{a: {'9' * 5000}}}\n", "FILE:4:11: not valid", id="digits"),
        pytest.param(HEAD + 'spec: {a: "\\ud800"}\n', "FILE:4:", id="surrogate"),
        pytest.param(
            HEAD + "spec: {a: " + "[" * 250 + "]" * 250 + "}\n", "deeper than 200", id="deep"
        ),
        pytest.param(
            HEAD + "spec: {a: 99999999999999999999}\n", "is too large a number", id="number"
        ),
        pytest.param(
            HEAD + "spec: {a: &a [*a]}\n", "FILE:4:15: not valid YAML: the alias *a", id="endless"
        ),
        pytest.param(
            HEAD.encode() + b"spec: {a: \xff}\n",
            "FILE:4: this is not text in UTF-8",
            id="not utf-8",
        ),
        pytest.param(HEAD + "spec: {a: \x00}\n", "FILE: this is not a text file", id="control"),
    ],
)
def test_what_cannot_be_read_says_where(file: Path, text: str | bytes, message: str) -> None:
    found = refusal(file, text)
    assert found.startswith("FILE")
    assert message in found


def test_aliases_that_multiply_are_refused_quickly(file: Path) -> None:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = HEAD + "spec:\n" + "".join(f"  {line}\n" for line in lines)
    assert "its aliases stand for more than" in refusal(file, text)


def test_aliases_in_reason_are_read(file: Path) -> None:
    file.write_text(HEAD + "spec: {a: &a {x: 1}, b: [" + "*a, " * 5000 + "]}\n")
    assert load_scenario(file)["spec"]["b"][4999] == {"x": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2026-01-01", "2026-01-01", id="dates stay text"),
        pytest.param("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", id="times stay text"),
        pytest.param("12:30", "12:30", id="no base sixty"),
        pytest.param("1e-07", 1e-07, id="exponent"),
        pytest.param("1.50", 1.5, id="float"),
        pytest.param("0644", 0o644, id="octal"),
        pytest.param("0o17", 0o17, id="new octal"),
        pytest.param("0", 0, id="zero"),
        pytest.param("0o", "0o", id="no octal"),
        pytest.param("0x_", "0x_", id="no hexadecimal"),
        pytest.param("-3", -3, id="negative"),
        pytest.param("100m", "100m", id="quantity"),
        pytest.param("true", True, id="bool"),
        pytest.param("null", None, id="null"),
        pytest.param("'5'", "5", id="quoted"),
    ],
)
def test_scalars_are_what_kubectl_reads(text: str, value: Any) -> None:
    assert load_yaml(f"a: {text}\n", "x") == [{"a": value}]


def test_json_is_read_as_well(file: Path) -> None:
    file.write_text(
        '{"apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",\n'
        '\t"kind": "Scenario", "metadata": {"name": "a"}, "spec": {}}'
    )
    assert load_scenario(file)["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (None, "a file, an object or a builder is expected, not NoneType"),
        (7, "not int"),
        ("apiVersion: v1\nkind: Scenario\n", "this is text, not the path of a file"),
    ],
)
def test_what_is_no_scenario_at_all_is_said(given: Any, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        kubescene.run(given)


def test_a_key_that_json_gives_twice_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "twice.json"
    file.write_text('{\n "kind": "Pod",\n "kind": "Node"}')
    with pytest.raises(ScenarioError, match=r"twice\.json:3:2: .*'kind' is given twice"):
        load_scenario(file)
