"""Workload files: how they are read, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.benchmarks import load_workloads
from kubescene.benchmarks.operations import OpCode
from kubescene.errors import WorkloadError

UPSTREAM_LIKE = """
# The shapes that people write: flow and block style, comments, labels, an anchor for what repeats.
- name: First
  defaultPodTemplatePath: templates/pod.yaml
  featureGates:
    SomeGate: true
  workloadTemplate: &steps
  - opcode: createNodes
    countParam: $initNodes
    nodeTemplatePath: templates/node.yaml
    labelNodePrepareStrategy:
      labelKey: "topology.kubernetes.io/zone"
      labelValues: ["zone1"]
  - opcode: createPodSets
    countParam: $initNamespaces
    namespacePrefix: init-ns
    createPodsOp:
      opcode: createPods
      countParam: $initPodsPerNamespace
      podTemplatePath: templates/pod.yaml
  - opcode: createPods
    countParam: $measurePods
    collectMetrics: true
  workloads:
  - name: 5Nodes
    labels: [integration-test, short]
    featureGates:
      SomeGate: false
    params: &small
      initNodes: 5
      initNamespaces: 2
      initPodsPerNamespace: 3
      measurePods: 4
  - name: 5000Nodes
    labels: [performance]
    threshold: 24
    params: {initNodes: 5000, initNamespaces: 100, initPodsPerNamespace: 40, measurePods: 2000}
- name: Second
  workloadTemplate: *steps
  workloads:
  - name: again
    threshold: {dra: 40, dra_experimental: 0}
    params: *small
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "performance-config.yaml"
    file.write_text(text)
    return file


def test_a_file_as_upstream_writes_them(tmp_path: Path) -> None:
    first, large, again = load_workloads(written(tmp_path, UPSTREAM_LIKE))
    assert [first.full_name, large.full_name] == ["First/5Nodes", "First/5000Nodes"]
    assert [each.code for each in first.operations] == [
        OpCode.CREATE_NODES,
        OpCode.CREATE_PODS,
        OpCode.CREATE_PODS,
        OpCode.CREATE_PODS,
    ]
    assert [each.index for each in first.operations] == [0, 1, 2, 3]
    assert [each.get("namespace") for each in first.operations[1:3]] == ["init-ns-0", "init-ns-1"]
    assert [each.get("count") for each in first.operations] == [5, 3, 3, 4]
    assert len(large.operations) == 102
    assert (first.threshold, large.threshold, again.threshold) == (0, 24, 40)
    assert first.feature_gates == {"SomeGate": False}
    assert large.feature_gates == {"SomeGate": True}
    assert first.default_pod_template == tmp_path / "templates/pod.yaml"
    assert first.labels == ("integration-test", "short")


def test_a_parameter_wins_over_the_literal(tmp_path: Path) -> None:
    for operation in (
        {"opcode": "createPods", "count": 1, "countParam": "$n"},
        {"opcode": "createPods", "countParam": "$n", "count": 1},
    ):
        (workload,) = load_workloads(written(tmp_path, config(operation, {"n": 9})))
        assert workload.operations[0].get("count") == 9


def config(operation: Any, params: Any = None, **fields: Any) -> str:
    workload = {"name": "w", **({"params": params} if params is not None else {})}
    case = {"name": "c", "workloadTemplate": [operation], "workloads": [workload], **fields}
    return dump_yaml([case])


SLEEP = {"opcode": "sleep", "duration": "1s"}


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (config({"opcode": "fly"}), "c/w: [0].workloadTemplate[0].opcode", "'fly' is not known"),
        (config({"count": 1}), "[0].workloadTemplate[0].opcode", "None is not known"),
        (config("sleep"), "[0].workloadTemplate[0]", "an operation is expected"),
        (config({"opcode": "createNodes"}), "[0].workloadTemplate[0]", "needs the field count"),
        (
            config({"opcode": "createNodes", "count": "many"}),
            "[0].workloadTemplate[0].count",
            "a whole number is expected, not 'many'",
        ),
        (
            config({"opcode": "createNodes", "count": -1}),
            "[0].workloadTemplate[0].count",
            "a whole number is expected",
        ),
        (
            config({"opcode": "createNodes", "count": 1, "cuont": 2}),
            "[0].workloadTemplate[0].cuont",
            "createNodes has no field cuont",
        ),
        (
            config({"opcode": "createNodes", "countParam": "$n"}, {"m": 1}),
            "[0].workloadTemplate[0].countParam",
            "the parameter 'n' is not among the workload's params",
        ),
        (
            config({"opcode": "createNodes", "countParam": "n"}, {"n": 1}),
            "[0].workloadTemplate[0].countParam",
            "$NAME of a parameter is expected",
        ),
        (config(SLEEP, {"n": 1}), "c/w: [0]", "the parameter 'n' is given but not used"),
        (config(SLEEP, colour="red"), "[0]", "the field 'colour' is not known"),
        (dump_yaml([{"name": "c", "workloads": [{"name": "w"}]}]), "[0]", "workloadTemplate"),
        (dump_yaml([{"workloads": []}]), "[0]", "the field 'name' is missing"),
        (dump_yaml([{"name": "c"}, {"name": "c"}]), "[1]", "'c' is given twice"),
        (
            dump_yaml(
                [
                    {
                        "name": "c",
                        "workloadTemplate": [SLEEP],
                        "workloads": [{"name": "w"}, {"name": "w"}],
                    }
                ]
            ),
            "[0].workloads[1]",
            "'w' is given twice",
        ),
        ("a: 1", "performance-config.yaml", "a list of test cases is expected"),
        ("[", "performance-config.yaml", "not valid YAML"),
        (
            config(
                {
                    "opcode": "createPodSets",
                    "count": 1,
                    "namespacePrefix": "x",
                    "createPodsOp": SLEEP,
                }
            ),
            "[0].workloadTemplate[0].createPodsOp",
            "createPods is expected, not sleep",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_workload_and_path(
    tmp_path: Path, text: str, where: str, message: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(WorkloadError) as caught:
        load_workloads(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert where in str(caught.value)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="cannot be read"):
        load_workloads(tmp_path / "none.yaml")
