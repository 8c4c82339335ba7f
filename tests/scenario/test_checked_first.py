"""`kubescene run` looks at all objects before it plays anything, and says where a fault is."""

from pathlib import Path

import pytest

from kubescene.cli.run.command import run_as_asked
from kubescene.cli.run.playing import RunArguments
from kubescene.cli.validate.faults import validate_files
from kubescene.scenario import ScenarioBuilder, parse_spec
from kubescene.scenario.operations import IndexedTemplate
from kubescene.scenario.validation.objects import object_faults
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

HEAD = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  operations:
    - step: 1
      createOperation:
        object: {apiVersion: v1, kind: Node, metadata: {name: n}}
    - step: 2
      createOperation:
"""
QUANTITY = f"""{HEAD}\
        object:
          apiVersion: v1
          kind: Pod
          metadata: {{name: p}}
          spec:
            containers:
              - name: c
                image: i
                resources:
                  requests: {{memory: 1Gi, cpu: 1x}}
"""
COUNT = f"""{HEAD}\
        count: 3
        object:
          apiVersion: v1
          kind: ConfigMap
          metadata: {{name: c}}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (QUANTITY, "20:43: step 2, operation 'op-2': spec.containers[0].resources.requests.cpu is"),
        (COUNT, "15:22: step 2, operation 'op-2': count makes several objects of the same name"),
    ],
    ids=["quantity", "count"],
)
def test_a_fault_of_a_later_step_is_bad_input(
    text: str, told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "s.yaml", tmp_path / "out"
    file.write_text(text)
    assert run_as_asked(file, RunArguments(out=str(out), quiet=True), None, delete=False) == 2
    assert f"{file}:{told}" in capfd.readouterr().err
    assert not out.exists()


def test_every_wrong_value_is_told_with_itself() -> None:
    pod = make_pod("p").cpu("1x").build()
    pod["spec"]["containers"].append({"name": "d", "image": 5})
    pod["spec"]["priority"] = "high"
    faults = object_faults(parse_spec(ScenarioBuilder("s").create(pod).build()))
    assert [(fault.path[5:], fault.message.partition(": ")[0]) for fault in faults] == [
        (
            ("spec", "containers", 0, "resources", "requests", "cpu"),
            "spec.containers[0].resources.requests.cpu is '1x'",
        ),
        (("spec", "containers", 1, "image"), "spec.containers[1].image is 5"),
        (("spec", "priority"), "spec.priority is 'high'"),
    ]


def test_a_kind_that_may_still_come_is_left_to_the_run(tmp_path: Path) -> None:
    """A controller, or a patch of a definition, may bring it."""
    file = tmp_path / "s.yaml"
    file.write_text(
        f"{HEAD}        object: {{apiVersion: a.b/v1, kind: C, metadata: {{name: c}}}}\n"
    )
    assert run_as_asked(file, RunArguments(quiet=True), None, delete=False) == 1


def part(subresource: str, obj: JsonObject) -> JsonObject:
    return {"step": 2, "createOperation": {"subresource": subresource, "object": obj}}


def patched(subresource: str, kind: str, api_version: str = "v1") -> JsonObject:
    """A patch of an object that may come from anywhere."""
    types = {"apiVersion": api_version, "kind": kind}
    named: JsonObject = {"typeMeta": types, "objectMeta": {"name": "x"}, "patch": "{}"}
    return {"step": 2, "patchOperation": {**named, "subresource": subresource}}


def whole(kind: str, name: str, api_version: str = "v1", **more: object) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


DEPLOYMENT = {
    **whole("Deployment", "web", "apps/v1"),
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
PARTS = [
    (part("scale", whole("Node", "n-1", spec={"replicas": 1})), "a Node has no subresource scale"),
    (part("status", whole("Node", "m")), 'nothing creates the Node "m"'),
    (part("status", whole("Node", "n-1")), ""),
    (part("status", whole("Node", "default")), 'nothing creates the Node "default"'),
    (part("eviction", whole("Eviction", "p", "policy/v1")), 'nothing creates the Pod "p"'),
    (part("eviction", whole("Eviction", "web-5-x", "policy/v1")), ""),
    (
        part("binding", whole("Binding", "p", target={"kind": "Node", "name": "n-1"})),
        'nothing creates the Pod "p"',
    ),
    (part("scale", whole("Deployment", "web", "apps/v1", spec={"replicas": 1})), ""),
    (patched("scale", "Node"), "a Node has no subresource scale"),
    (patched("status", "ConfigMap"), "a ConfigMap has no subresource status"),
    (patched("scale", "Deployment", "apps/v1"), ""),
]


@pytest.mark.parametrize(("operation", "told"), PARTS)
def test_a_part_of_an_object_needs_the_object(operation: JsonObject, told: str) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n-$(INDEX)"), count=2).create(DEPLOYMENT)
    built = scenario.build()
    built["spec"]["operations"].append(operation)
    spec = parse_spec(built)
    found = [fault.message for fault in object_faults(spec)]
    assert [message.startswith(told) for message in found] == ([True] if told else [])
    if told.startswith("nothing"):
        assert list(object_faults(spec, is_whole=False)) == []


def test_the_longest_name_of_a_counted_create_is_looked_at() -> None:
    service = whole("Service", "a" * 62 + "$(INDEX)", spec={"ports": [{"port": 80}]})
    for count, messages in ((10, 0), (11, 1)):
        spec = parse_spec(ScenarioBuilder("s").create(service, count=count).build())
        found = [fault.message for fault in object_faults(spec)]
        assert ["no more than 63 characters" in each for each in found] == [True] * messages


CONFIGURED = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  simulation:
    schedulerConfig:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: KubeSchedulerConfiguration
      profiles:
        - schedulerName: a
          plugins:
            score:
              enabled:
                - name: NodeResourcesFit
  operations:
    - {step: 1, doneOperation: {}}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("      profiles:\n", "      podInitialBackoffSeconds: -1\n      profiles:\n", "9:7"),
        ("- name: NodeResourcesFit", "- name: Nope", "14:19"),
        ("plugins:", "plugin:", "11:11"),
    ],
)
def test_a_fault_of_the_scheduler_configuration_has_its_line(
    right: str, wrong: str, place: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(CONFIGURED.replace(right, wrong))
    assert validate_files([file]) == 2
    assert capfd.readouterr().err.startswith(f"{file}:{place}: ")


def test_a_file_of_objects_is_told_by_its_path_beside_the_scenario(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "objects.yaml").write_text("foo: [\n")
    file = tmp_path / "s.yaml"
    file.write_text(f"{HEAD}        objectFrom: objects.yaml\n")
    assert validate_files([file]) == 2
    assert "objectFrom: objects.yaml:2:1: not valid YAML" in capfd.readouterr().err


def test_another_word_is_not_what_was_meant() -> None:
    scenario = ScenarioBuilder("s").build()
    scenario["metadata"]["operations"] = []
    scenario["metadata"]["nameq"] = "s"
    messages = [fault.message for fault in find_faults(scenario)]
    assert [each for each in messages if "did you mean" in each] == [
        "unknown field 'nameq': did you mean name?"
    ]


@pytest.mark.parametrize("name", ["c-$(INDEX)", "c"])
def test_the_mark_of_the_index_can_be_written_as_it_is(name: str) -> None:
    data = {"said": "$$(INDEX) is $(INDEX)", "twice": "$$(INDEX)$$(INDEX)"}
    template = IndexedTemplate(whole("ConfigMap", name, data=data))
    made = template.instance(3)
    assert made["metadata"]["name"] == name.replace("$(INDEX)", "3")
    assert made["data"] == {"said": "$(INDEX) is 3", "twice": "$(INDEX)$(INDEX)"}
