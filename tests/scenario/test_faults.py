"""Faults in a scenario are found before anything is touched, and say where they are."""

from typing import Any

import pytest

from kubescene.cluster import ClusterWorld
from kubescene.errors import ScenarioError
from kubescene.runs.local import run
from kubescene.scenario import Engine, ScenarioPhase, parse_spec
from kubescene.scenario.fields.definition import DEFINITION
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.validation.scenarios import find_faults, tolerated
from kubescene.testing import make_node, make_pod
from kubescene.timeline import TimelineRecorder
from kubescene.types import JsonObject

CREATE: JsonObject = {"object": make_node("n").build()}
TARGET: JsonObject = {
    "typeMeta": {"apiVersion": "v1", "kind": "Node"},
    "objectMeta": {"name": "n"},
}


def scenario(**spec: Any) -> JsonObject:
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "faulty"},
        "spec": spec,
    }


def one(**operation: Any) -> JsonObject:
    return scenario(operations=[{"id": "x", "step": 1, **operation}])


def simulated(*names: str) -> JsonObject:
    return {"simulationControllers": {"enabled": [{"name": name} for name in names]}}


FAULTS = [
    pytest.param(one(), "spec.operations[0] (id 'x')", "found: none", id="no operation field"),
    pytest.param(
        one(createOperation=CREATE, doneOperation={}),
        "spec.operations[0] (id 'x')",
        "found: createOperation, doneOperation",
        id="two operation fields",
    ),
    pytest.param(
        one(createOperation={"object": {"": 1}}),
        "spec.operations[0] (id 'x').createOperation.object",
        "needs apiVersion",
        id="a field without a name is not one that is needed",
    ),
    pytest.param(
        scenario(operations=[{"step": 1}]), "(id 'op-1')", "exactly one of", id="assigned id"
    ),
    pytest.param(
        scenario(
            operations=[
                {"id": "x", "step": 1, "createOperation": CREATE},
                {"id": "y", "step": 1, "doneOperation": {}},
                {"id": "x", "step": 2, "doneOperation": {}},
            ]
        ),
        "spec.operations",
        "id 'x' is used twice, at index 0 and 2",
        id="duplicate id",
    ),
    pytest.param(
        one(step=0, doneOperation={}),
        "(id 'x')",
        "must be a whole number from 1 to 2147483647, not 0",
        id="step 0",
    ),
    pytest.param(one(step="1", doneOperation={}), "(id 'x')", "not '1'", id="step as text"),
    pytest.param(one(step=True, doneOperation={}), "(id 'x')", "not True", id="step true"),
    pytest.param(
        one(createOperation={**CREATE, "createOptions": {"dryRun": ["All"]}}),
        "(id 'x').createOperation",
        "createOptions.dryRun: it makes no sense",
        id="dry run of a create",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "patchOptions": {"dryRun": ["All"]}}),
        "(id 'x').patchOperation",
        "patchOptions.dryRun: it makes no sense",
        id="dry run of a patch",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "deleteOptions": {"dryRun": ["All"]}}),
        "(id 'x').deleteOperation",
        "deleteOptions.dryRun: it makes no sense",
        id="dry run of a delete",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "deleteOptions": {"gracePeriodSeconds": "soon"}}),
        "deleteOperation.deleteOptions",
        "gracePeriodSeconds: must be a whole number of at least 0, not 'soon'",
        id="grace that is no number",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "deleteOptions": {"preconditions": "none"}}),
        "deleteOptions.preconditions",
        "must be an object",
        id="preconditions that are no object",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "deleteOptions": {"propagationPolicy": "Foo"}}),
        "deleteOperation.deleteOptions",
        "Background, Foreground, Orphan",
        id="unknown propagation policy",
    ),
    pytest.param(
        one(createOperation={**CREATE, "createOptions": {"fieldManager": "m" * 129}}),
        "(id 'x').createOperation",
        "createOptions.fieldManager: Too long: may not be more than 128 bytes",
        id="manager that is too long",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "patchOptions": {"fieldManager": "ä" * 65}}),
        "(id 'x').patchOperation",
        "patchOptions.fieldManager: Too long: may not be more than 128 bytes",
        id="manager that is too long in bytes",
    ),
    pytest.param(
        one(createOperation={**CREATE, "createOptions": {"fieldManager": "a\x01b"}}),
        "(id 'x').createOperation",
        r'fieldManager: Invalid value: "a\u0001b": should only contain printable characters',
        id="manager that cannot be printed",
    ),
    pytest.param(
        one(createOperation={**CREATE, "createOptions": {"foo": "bar"}}),
        "createOperation.createOptions",
        "unknown field 'foo': known are: fieldManager",
        id="unknown option",
    ),
    pytest.param(
        one(createOperaton=CREATE), "(id 'x')", "did you mean createOperation?", id="typo"
    ),
    pytest.param(
        one(createOperation={"object": {"kind": "Node"}}),
        "createOperation",
        "apiVersion",
        id="kind",
    ),
    pytest.param(one(createOperation={**CREATE, "count": 0}), "count", "not 0", id="count 0"),
    pytest.param(
        one(deleteOperation={"typeMeta": TARGET["typeMeta"]}),
        "deleteOperation",
        "needs objectMeta",
        id="no target",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "objectMeta": {"name": ""}}),
        "objectMeta",
        "needs name",
        id="no name",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": {}}),
        "patch",
        "must be text, not an object",
        id="patch object",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "patchType": "magic"}),
        "patchOperation",
        "magic",
        id="unknown patch type",
    ),
    pytest.param(one(doneOperation={"done": False}), "done", "must be true", id="done false"),
    pytest.param(one(advanceOperation={"duration": "0s"}), "advance", "longer", id="no time"),
    pytest.param(one(advanceOperation={"duration": "soon"}), "advance", "'soon'", id="soon"),
    pytest.param(
        scenario(
            operations=[
                {"id": "x", "step": 1, "advanceOperation": {"duration": "5m"}},
                {"step": 1, "createOperation": CREATE},
            ]
        ),
        "(id 'x')",
        "must be the last operation of its step",
        id="advance before another",
    ),
    pytest.param(
        scenario(
            operations=[{"step": 1, "doneOperation": {}}],
            events=[{"step": 1, "operation": "Done", "doneOperation": {"done": True}}],
        ),
        "spec",
        "both set",
        id="events and operations",
    ),
    pytest.param(
        scenario(events=[{"id": "e", "step": 1, "operation": "Create", "doneOperation": {}}]),
        "spec.events[0] (id 'e')",
        "operation is 'Create' but doneOperation is set",
        id="event that does not match",
    ),
    pytest.param(
        scenario(simulation={"sede": 1, "kubelet": {"delay": "1s"}}),
        "spec.simulation",
        "unknown field 'sede': did you mean seed?",
        id="misspelled setting",
    ),
    pytest.param(scenario(simulation={"explain": "Loud"}), "spec.simulation", "Loud", id="explain"),
    pytest.param(
        scenario(controllers=simulated("kube-scheduler", "kube-scheduler")),
        "simulationControllers.enabled",
        "kube-scheduler is named twice",
        id="the same controller twice",
    ),
]


def before(*names: str, **more: Any) -> JsonObject:
    return {"enabled": [{"name": name} for name in names], **more}


FAULTS += [
    pytest.param(scenario(operations={}), "spec.operations", "a list, not an object", id="no list"),
    pytest.param(one(id=["x"], doneOperation={}), "id", "must be text, not a list", id="list id"),
    pytest.param(
        one(id="x[0]", doneOperation={}), "[0] (id 'x[0]').id", "one operation do", id="instance id"
    ),
    pytest.param(
        one(id="@1.0-1", doneOperation={}), "id", "what controllers do", id="generated id"
    ),
    pytest.param(
        scenario(
            events=[
                {"id": "x", "step": 1, "operation": "Done", "doneOperation": {}},
                {"id": "x", "step": 1, "operation": "Done", "doneOperation": {}},
            ]
        ),
        "spec.events[1] (id 'x').id",
        "used twice, at index 0 and 1",
        id="events are named events",
    ),
    pytest.param(
        one(operation="Delete", createOperation=CREATE),
        "spec.operations[0] (id 'x')",
        "operation is 'Delete' but createOperation is set",
        id="operation that does not match",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "patchOptions": {"force": "yes"}}),
        "patchOptions.force",
        "must be true or false, not 'yes'",
        id="force as text",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "patchType": "json", "PatchType": "json"}),
        "patchOperation.PatchType",
        "patchType and PatchType are one field",
        id="two spellings of patchType",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{a: ["}),
        "patchOperation.patch",
        "neither JSON nor YAML: line 2, column 1: ",
        id="patch that cannot be read",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "a: &x [1,2,3,4,5]\nb: [" + "*x," * 99_999 + "]"}),
        "patchOperation.patch",
        "aliases stand for more than",
        id="alias bomb in a patch",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{1: 2}"}),
        "patchOperation.patch",
        "the key 1 is not text",
        id="number as key in a patch",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "[]"}),
        "patchOperation.patch",
        "a list is a patch of patchType json",
        id="list as merge patch",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "patchType": "json"}),
        "patchOperation.patch",
        "must be a list of operations",
        id="object as JSON patch",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "typeMeta": {**TARGET["typeMeta"], "group": "apps"}}),
        "deleteOperation.typeMeta.group",
        "unknown field 'group'",
        id="member of typeMeta",
    ),
    pytest.param(
        one(deleteOperation={**TARGET, "objectMeta": {"name": "n", "nmespace": "x"}}),
        "objectMeta.nmespace",
        "did you mean namespace?",
        id="member of objectMeta",
    ),
    pytest.param(
        scenario(controllers={**simulated("kube-scheduler"), "presimulationControler": {}}),
        "spec.controllers.presimulationControler",
        "did you mean presimulationControllers?",
        id="misspelt member of controllers",
    ),
    pytest.param(
        scenario(
            controllers={
                **simulated("kube-scheduler"),
                "presimulationControllers": {},
                "preSimulationControllers": {},
            }
        ),
        "spec.controllers.preSimulationControllers",
        "are one field: keep one",
        id="two spellings of presimulationControllers",
    ),
    pytest.param(
        scenario(
            controllers={
                **simulated("kube-scheduler", "replicaset"),
                "presimulationControllers": before("replicaset"),
            }
        ),
        "presimulationControllers.enabled",
        "replicaset is a simulation controller, too",
        id="simulated and before it",
    ),
    pytest.param(
        scenario(
            controllers={
                **simulated("kube-scheduler"),
                "presimulationControllers": before("kubelet", disabled=[{"name": "kubelet"}]),
            }
        ),
        "presimulationControllers.disabled",
        "kubelet is enabled, too",
        id="enabled and disabled",
    ),
    pytest.param(
        one(createOperation={"objectFrom": "pods.yaml"}),
        "createOperation.objectFrom",
        "there is no folder to read from",
        id="objectFrom without a file",
    ),
    pytest.param(
        one(createOperation={**CREATE, "objectFrom": "pods.yaml"}),
        "createOperation",
        "exactly one of object and objectFrom",
        id="object and objectFrom",
    ),
    pytest.param(
        one(createOperation={**CREATE, "subresource": "binding"}),
        "createOperation.object",
        "takes a Binding",
        id="binding of a node",
    ),
    pytest.param(
        one(createOperation={**CREATE, "subresource": "scale"}),
        "createOperation.object.spec",
        "the subresource scale needs replicas, a number",
        id="scale without replicas",
    ),
    pytest.param(
        one(patchOperation={**TARGET, "patch": "{}", "subresource": "eviction"}),
        "patchOperation.subresource",
        "must be one of status, scale, not 'eviction'",
        id="eviction by patch",
    ),
    pytest.param(
        one(
            deleteOperation={
                "typeMeta": {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                },
                "objectMeta": {"name": DEFINITION},
            }
        ),
        "deleteOperation.objectMeta",
        "a scenario cannot change or delete the kind Scenario",
        id="the kind Scenario",
    ),
]


@pytest.mark.parametrize(("faulty", "where", "fault"), FAULTS)
def test_a_fault_is_named_with_its_place(faulty: JsonObject, where: str, fault: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_spec(faulty)
    assert where in str(caught.value)
    assert fault in str(caught.value)


@pytest.mark.parametrize(("faulty", "where", "fault"), FAULTS)
def test_a_faulty_scenario_fails_and_says_why(faulty: JsonObject, where: str, fault: str) -> None:
    result = run(faulty)
    assert (result.phase, result.bad_input) == (ScenarioPhase.FAILED, True)
    assert where in result.message
    assert fault in result.message
    assert len(result.timeline) == 0


CONTROLLER_FAULTS = [
    pytest.param(simulated(), "at least one controller is needed", id="empty"),
    pytest.param({}, "at least one controller is needed", id="left out"),
    pytest.param(simulated("kube-schedular"), "no controller is named 'kube-schedular'", id="typo"),
    pytest.param(
        {**simulated("kube-scheduler"), "presimulationControllers": {"enabled": [{"name": "x"}]}},
        "no controller is named 'x'",
        id="unknown presimulation controller",
    ),
]


@pytest.mark.parametrize(("controllers", "fault"), CONTROLLER_FAULTS)
def test_a_fault_in_the_controllers_lists_what_is_registered(
    controllers: JsonObject, fault: str
) -> None:
    result = run(scenario(operations=[], controllers=controllers))
    assert (result.phase, result.bad_input) == (ScenarioPhase.FAILED, True)
    assert fault in result.message
    assert "registered are: " in result.message
    assert "kube-scheduler" in result.message.split("registered are: ")[1]


def test_nothing_is_touched_by_a_faulty_scenario(cluster: ClusterWorld) -> None:
    cluster.create(make_node("mine"))
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    cluster.create(one())
    revision = cluster.store.revision
    (record,) = cluster.store.list(cluster.scheme.resolve("scenarios").group_resource)
    Engine(cluster, ScenarioResource(cluster.store, record), recorder).run()
    assert cluster.node("mine").name == "mine"
    assert cluster.get("scenarios", "faulty")["status"]["phase"] == "Failed"
    # The one write is the Scenario's own status.
    assert cluster.store.revision == revision + 1


WRONG_TYPES: list[Any] = ["text", 7, [1], [["a", "b"]], {"a": 1}, True]
SPEC_PLACES: list[tuple[str, ...]] = [
    ("operations",),
    ("events",),
    ("controllers",),
    ("controllers", "simulationControllers"),
    ("controllers", "simulationControllers", "enabled"),
    ("controllers", "presimulationControllers"),
    ("controllers", "presimulationControllers", "disabled"),
    ("simulation",),
    ("simulation", "kubelet"),
    ("simulation", "seed"),
    ("simulation", "startTime"),
    ("simulation", "maxMinorSteps"),
]


@pytest.mark.parametrize("place", SPEC_PLACES, ids=".".join)
def test_a_value_of_the_wrong_type_is_never_a_crash(place: tuple[str, ...]) -> None:
    for wrong in WRONG_TYPES:
        spec = wrong
        for name in reversed(place):
            spec = {name: spec}
        result = run(scenario(**{"operations": [], **spec}))
        assert result.ok or result.bad_input


OPERATION_PLACES = [
    ("createOperation", "object"),
    ("createOperation", "count"),
    ("createOperation", "createOptions"),
    ("patchOperation", "typeMeta"),
    ("patchOperation", "objectMeta"),
    ("patchOperation", "patch"),
    ("patchOperation", "patchType"),
    ("deleteOperation", "deleteOptions"),
    ("advanceOperation", "duration"),
]


@pytest.mark.parametrize("place", OPERATION_PLACES, ids=".".join)
@pytest.mark.parametrize("wrong", WRONG_TYPES, ids=repr)
def test_an_operation_of_the_wrong_type_is_never_a_crash(
    place: tuple[str, str], wrong: Any
) -> None:
    field, member = place
    body = {**CREATE, **TARGET, "patch": "{}", "duration": "1s", member: wrong}
    result = run(one(**{field: body}))
    assert result.phase in (ScenarioPhase.FAILED, ScenarioPhase.PAUSED)


def test_all_faults_are_found_at_once() -> None:
    faulty = scenario(
        operations=[
            {"id": "a", "step": 0, "createOperation": {**CREATE, "cuont": 1}},
            {"id": "b", "step": 1, "patchOperation": {**TARGET, "patch": "{"}},
            {"id": "a", "step": 1, "doneOperation": {"done": False}},
        ],
        controllers={"simulationController": {}},
        simulation={"startTime": "soon"},
    )
    paths = [fault.path[1:] for fault in find_faults(faulty)]
    assert set(paths) == {
        ("operations", 0, "step"),
        ("operations", 0, "createOperation", "cuont"),
        ("operations", 1, "patchOperation", "patch"),
        ("operations", 2, "doneOperation", "done"),
        ("operations", 2, "id"),
        ("controllers", "simulationController"),
        ("simulation", "startTime"),
    }
    assert len(paths) == 7


@pytest.mark.parametrize("validation", ["Warn", "Ignore"])
def test_unknown_fields_of_an_operation_pass_if_it_says_so(validation: str) -> None:
    options = {"fieldValidation": validation}
    lenient = one(createOperation={**CREATE, "extra": 1, "createOptions": options})
    assert parse_spec(lenient).operations[0].id == "x"
    assert [fault.path[-1] for fault in tolerated(lenient)] == ["extra"] * (validation == "Warn")


def test_an_empty_namespace_is_the_default_one() -> None:
    pod = {"typeMeta": {"apiVersion": "v1", "kind": "Pod"}}
    create = {"object": make_pod("p").build()}
    for namespace in ("", None):
        target = {**pod, "objectMeta": {"name": "p", "namespace": namespace}}
        operations = [
            {"step": 1, "createOperation": create},
            {"step": 2, "deleteOperation": target},
        ]
        result = run(scenario(operations=operations))
        assert result.phase is ScenarioPhase.PAUSED, result.message


def test_operations_after_done_are_named() -> None:
    operations = [
        {"id": "late", "step": 3, "createOperation": CREATE},
        {"id": "end", "step": 2, "doneOperation": {}},
        {"id": "with-it", "step": 2, "createOperation": CREATE},
    ]
    result = run(scenario(operations=operations))
    assert result.phase is ScenarioPhase.SUCCEEDED
    assert result.summary.ignored == ["late"]


@pytest.mark.parametrize(
    ("junk", "hint"),
    [
        ({"specs": {}}, "specs: unknown field 'specs': did you mean spec?"),
        ({"metadata": {"name": "s", "label": {}}}, "metadata.label: unknown field 'label'"),
        ({"metadata": {"name": "s", "labels": {"a": 1}}}, "metadata.labels.a: must be text, not 1"),
    ],
    ids=["top", "metadata", "label"],
)
def test_junk_around_the_spec_is_refused_when_it_is_read(junk: JsonObject, hint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        run({**scenario(operations=[]), **junk})
    assert hint in str(caught.value)
