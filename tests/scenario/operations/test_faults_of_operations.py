"""What is wrong with a drain, an eviction or a selector is said with file, line and column."""

from pathlib import Path

import pytest

from kubescene.cli.validate.faults import validate_files

SCENARIO = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: faulty}
spec:
  operations:
  - id: it
    step: 1
    %s
"""
POD = "typeMeta: {apiVersion: v1, kind: Pod}"
SOME = "selector: {matchLabels: {a: b}}"


@pytest.mark.parametrize(
    ("operation", "fault", "said"),
    [
        ("drainOperation: {}", "drainOperation", "exactly one of names and selector must be set"),
        ("drainOperation: {names: [n], selector: {}}", "drainOperation", "exactly one of names"),
        ("drainOperation: {names: []}", "names", "needs the name of at least one node"),
        ("drainOperation: {names: [n, n]}", "names", "n is there twice"),
        ("drainOperation: {selector: {}}", "selector", "it is empty and matches everything"),
        ("drainOperation: {names: [n], timeout: soon}", "timeout", "'soon' is not a duration"),
        ("drainOperation: {names: [n], timeout: -5m}", "timeout", "'-5m' is not a duration"),
        (
            "drainOperation: {names: [n], ignoreDaemonsets: true}",
            "ignoreDaemonsets",
            "did you mean ignoreDaemonSets?",
        ),
        (
            "drainOperation: {names: [n], skipWaitForDeleteTimeoutSeconds: -5}",
            "skipWait",
            "must be a whole number of at least 1",
        ),
        (f"evictOperation: {{{SOME}, share: 150%}}", "share", "must be a percentage above 0%"),
        (f"evictOperation: {{{SOME}, timeout: -1s}}", "timeout", "'-1s' is not a duration"),
        (
            f"evictOperation: {{objectMeta: {{name: x}}, {SOME}}}",
            "selector",
            "objectMeta is set, too",
        ),
        (
            "evictOperation: {selector: {matchExpressions: [{key: a, operator: Im}]}}",
            "operator",
            "must be one of In, NotIn, Exists, DoesNotExist, not 'Im'",
        ),
        (f"deleteOperation: {{{POD}, {SOME}, limit: 0}}", "limit", "must be a whole number from 1"),
        (
            f"patchOperation: {{{POD}, objectMeta: {{name: x}}, share: 50%, patch: '{{}}'}}",
            "share",
            "only beside a selector",
        ),
        (
            f"patchOperation: {{{POD}, objectMeta: {{name: x}}, count: 3, patch: '{{}}'}}",
            "name",
            "put $(INDEX) into the name",
        ),
    ],
)
def test_a_fault_has_its_place(
    operation: str, fault: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.yaml"
    text = SCENARIO % operation
    file.write_text(text)
    assert validate_files([file]) == 2
    told = capsys.readouterr().err.splitlines()[0]
    assert said in told
    place = told.removeprefix(f"{file}:").split(":")
    line, column = int(place[0]), int(place[1])
    named = text.splitlines()[7].index(fault) + 1
    assert (line, column) == (8, named)


def test_a_fault_of_an_outage_has_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.yaml"
    spec = "{what: ImagePull, nodes: {}, pullTime: long, cpuShare: 0.5}"
    head = "apiVersion: kubescene.dev/v1alpha1, kind: Outage, metadata: {name: o}"
    text = SCENARIO % f"createOperation: {{object: {{{head}, spec: {spec}}}}}"
    file.write_text(text)
    assert validate_files([file]) == 2
    told = capsys.readouterr().err.splitlines()
    columns = [text.splitlines()[7].index(each) + 1 for each in ("pullTime", "cpuShare")]
    assert [each.removeprefix(f"{file}:").split(":")[:2] for each in told] == [
        ["8", str(column)] for column in columns
    ]
