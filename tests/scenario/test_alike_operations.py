"""Alike objects are read once: nothing that is wrong with one of them gets lost by that."""

from collections.abc import Iterator
from copy import deepcopy
from enum import IntEnum
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.api.copies import own_copy
from kubescene.api.kinds import SCENARIO
from kubescene.errors import ScenarioError
from kubescene.runs.local import RunResult
from kubescene.scenario import parse_spec
from kubescene.scenario.reading import handed_over as taking
from kubescene.scenario.reading.alike import SharedBodies
from kubescene.scenario.reading.files import check_identity
from kubescene.scenario.reading.handed_over import taken_over
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.testing import make_node
from kubescene.timeline.facts import LineWriter
from kubescene.types import JsonObject

FAULTY = 3
"""Which of the alike operations is unlike the others."""
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}


def pod(name: str) -> JsonObject:
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        "tolerations": [dict(TOLERATION)],
        "priority": None,
    }
    metadata = {"name": name, "labels": {"app": "a"}, "annotations": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def scenario() -> JsonObject:
    """Six pods and three nodes, each in an operation of its own."""
    nodes = [make_node(f"n-{number}").cpu("8").build() for number in range(3)]
    operations: list[JsonObject] = [
        *({"step": 1, "createOperation": {"object": each}} for each in nodes),
        *({"step": 2, "createOperation": {"object": pod(f"p-{number}")}} for number in range(6)),
        {"step": 2, "doneOperation": {}},
    ]
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": "alike"},
        "spec": {"operations": operations},
    }


def faulty(path: str, value: Any) -> JsonObject:
    """The scenario with another value below one of its operations."""
    whole = scenario()
    holder: Any = whole["spec"]["operations"][3 + FAULTY]
    *steps, last = path.split(".")
    for step in steps:
        holder = holder[int(step) if step.isdigit() else step]
    holder[last] = value
    return whole


def lines(run: RunResult) -> list[bytes]:
    writer = LineWriter()
    return [writer.line(fact) for fact in run.log]


class Number(IntEnum):
    ONE = 1


OBJECT = "createOperation.object"
TOLERATED = f"{OBJECT}.spec.tolerations.0.tolerationSeconds"
AT = "spec.operations[6]"
NAMED = f"{AT} (id 'op-7')"
NOT_JSON = [
    (TOLERATED, float("nan"), "tolerationSeconds is not a finite number"),
    (TOLERATED, float("inf"), "tolerationSeconds is not a finite number"),
    (TOLERATED, 2**64, "tolerationSeconds is too large a number"),
    (TOLERATED, 1j, "tolerationSeconds is a complex, which JSON cannot hold"),
    (TOLERATED, b"1", "tolerationSeconds is a bytes, which JSON cannot hold"),
    (f"{OBJECT}.spec.tolerations", (TOLERATION,), "tolerations is a tuple, which JSON cannot hold"),
    (f"{OBJECT}.spec.affinity", {1: "a"}, "spec.affinity is not text: put it in quotes"),
    (f"{OBJECT}.metadata.labels.app", "\ud800", "labels.app is not valid Unicode"),
    (f"{OBJECT}.metadata.name", b"p", "metadata.name is a bytes, which JSON cannot hold"),
    (f"{OBJECT}.metadata.name", "\ud800", "metadata.name is not valid Unicode"),
]


@pytest.mark.parametrize(("path", "value", "complaint"), NOT_JSON)
def test_what_json_cannot_hold_is_found_in_one_of_many(
    path: str, value: Any, complaint: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        kubescene.run(faulty(path, value))
    assert f"{AT}.createOperation.object" in str(caught.value)
    assert complaint in str(caught.value)


REFUSED = [
    (TOLERATED, "1", "cannot unmarshal string into Go struct field Toleration"),
    (TOLERATED, True, "cannot unmarshal bool into Go struct field Toleration"),
    (TOLERATED, 1.5, "cannot unmarshal number 1.5 into Go struct field Toleration"),
    (f"{OBJECT}.spec.tolerations", {"key": "a"}, "spec.tolerations"),
    (f"{OBJECT}.spec.containers.0.resources.requests.cpu", "1x", "quantities must match"),
    (f"{OBJECT}.spec.tolerated", [], 'unknown field "spec.tolerated"'),
    (f"{OBJECT}.metadata.labels.app", 1, "cannot unmarshal number into Go struct field"),
    (f"{OBJECT}.metadata.name", "P", "a lowercase RFC 1123 subdomain"),
    (f"{OBJECT}.metadata.name", "p-1", 'pods "p-1" already exists'),
]


@pytest.mark.parametrize(("path", "value", "complaint"), REFUSED)
def test_what_the_api_refuses_is_refused_of_one_of_many(
    path: str, value: Any, complaint: str
) -> None:
    run = kubescene.run(faulty(path, value))
    assert run.message.startswith("step 2, operation 'op-7': create was refused: ")
    assert complaint in run.message
    assert run.failed_at == ("spec", "operations", 6, "createOperation")
    assert len(run.cluster.list("pods")) == FAULTY


MALFORMED: list[tuple[str, Any, str]] = [
    ("step", True, f"{NAMED}.step: must be a whole number from 1 to 2147483647, not True"),
    ("step", 2.5, f"{NAMED}.step: must be a whole number from 1 to 2147483647, not 2.5"),
    ("step", -1, f"{NAMED}.step: must be a whole number from 1 to 2147483647, not -1"),
    ("step", 0, f"{NAMED}.step: must be a whole number from 1 to 2147483647, not 0"),
    ("step", 2**31, f"{NAMED}.step: must be a whole number from 1 to 2147483647, not 2147483648"),
    ("step", None, f"{NAMED}: needs step"),
    ("id", 7, f"{NAMED}.id: must be text, not 7"),
    ("id", "@x", f"{AT} (id '@x').id: id '@x' begins with @"),
    ("id", "a[1]", f"{AT} (id 'a[1]').id: id 'a[1]' ends as those of the objects"),
    ("stepp", 2, f"{NAMED}.stepp: unknown field 'stepp': did you mean step?"),
    ("doneOperation", {}, f"{NAMED}: exactly one of createOperation"),
    ("createOperation", [], f"{NAMED}.createOperation: must be an object, not a list"),
    ("createOperation.counts", 1, f"{NAMED}.createOperation.counts: unknown field 'counts'"),
    ("createOperation.count", 0, f"{NAMED}.createOperation.count: must be a whole number from 1"),
    (OBJECT, None, f"{NAMED}.createOperation: exactly one of object and objectFrom must be set"),
    (f"{OBJECT}.kind", 1, f"{NAMED}.createOperation.object.kind: must be text, not 1"),
    (f"{OBJECT}.kind", "", f"{NAMED}.createOperation.object: needs kind"),
    (f"{OBJECT}.apiVersion", None, f"{NAMED}.createOperation.object: needs apiVersion"),
]


@pytest.mark.parametrize(("path", "value", "complaint"), MALFORMED)
def test_a_malformed_operation_among_many_is_named(path: str, value: Any, complaint: str) -> None:
    run = kubescene.run(faulty(path, value))
    assert run.bad_input
    assert complaint in run.message
    assert next(str(each.error) for each in find_faults(faulty(path, value))) in run.message


def test_all_faults_of_alike_operations_are_listed() -> None:
    whole = scenario()
    for number, operation in enumerate(whole["spec"]["operations"][3:9]):
        operation["createOperation"]["object"]["kind"] = 1 if number % 2 else ""
    found = [str(each.error) for each in find_faults(whole)]
    assert len(found) == 6
    assert found[0] == "spec.operations[3] (id 'op-4').createOperation.object: needs kind"
    assert found[5].startswith("spec.operations[8] (id 'op-9').createOperation.object.kind: must")


def test_a_fault_that_all_have_is_told_of_each() -> None:
    whole = scenario()
    for operation in whole["spec"]["operations"][3:9]:
        operation["createOperation"]["object"]["apiVersion"] = SCENARIO.api_version
        operation["createOperation"]["object"]["kind"] = SCENARIO.kind
    found = [each.path[2] for each in find_faults(whole)]
    assert found == [3, 4, 5, 6, 7, 8]


def test_a_draft_wants_the_type_of_each() -> None:
    whole = scenario()
    whole["spec"]["events"] = whole["spec"].pop("operations")
    assert [each.path for each in find_faults(whole)] == [("spec", "events", n) for n in range(10)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (TOLERATED, 1.0),
        (TOLERATED, Number.ONE),
        ("step", 2.0),
        ("step", Number.ONE),
        ("createOperation.count", 1),
        (f"{OBJECT}.metadata.annotations.a", "\u00e4\u00f6\u00fc"),
    ],
)
def test_other_ways_to_say_it_play(path: str, value: Any) -> None:
    run = kubescene.run(faulty(path, value))
    assert run.ok
    assert run.summary.placements_total == 6


@pytest.mark.parametrize("value", [1.0, Number.ONE])
def test_a_whole_number_is_the_same_however_it_is_given(value: Any) -> None:
    assert lines(kubescene.run(faulty(TOLERATED, value))) == lines(kubescene.run(scenario()))


def test_what_is_given_is_never_changed() -> None:
    given, before = scenario(), scenario()
    kubescene.run(given)
    assert given == before


def test_whoever_shares_parts_may_change_them_between_runs() -> None:
    whole, before = scenario(), lines(kubescene.run(scenario()))
    shared = whole["spec"]["operations"][3]["createOperation"]["object"]["spec"]
    for operation in whole["spec"]["operations"][4:9]:
        operation["createOperation"]["object"]["spec"] = shared
    first = kubescene.run(whole)
    data = first.cluster.get("pods", "p-4")
    shared["tolerations"][0]["tolerationSeconds"] = 5
    shared["containers"][0]["resources"]["requests"]["cpu"] = "100"
    second = kubescene.run(whole)
    assert lines(first) == before
    assert first.cluster.get("pods", "p-4") == data
    assert second.summary.placements_total == 0


def test_what_has_no_effect_is_counted_for_each() -> None:
    whole = scenario()
    for operation in whole["spec"]["operations"][3:9:2]:
        metadata = operation["createOperation"]["object"]["metadata"]
        metadata["annotations"] = {"kubescene.dev/run-time": "soon"}
    (warning,) = kubescene.run(whole).summary.warnings
    assert warning.endswith("(operation 'op-4' and 2 more)")


def test_operations_may_differ_in_ids_and_steps_and_be_alike() -> None:
    whole = scenario()
    for number, operation in enumerate(whole["spec"]["operations"][3:9]):
        operation |= {"id": f"pod-{number}", "step": 2 + number}
    whole["spec"]["operations"][-1]["step"] = 9
    spec = parse_spec(whole)
    assert [each.id for each in spec.operations[3:9]] == [f"pod-{number}" for number in range(6)]
    assert [*spec.by_step] == [1, 2, 3, 4, 5, 6, 7, 9]
    assert [each.body["object"] for each in spec.operations[3:9]] == [
        pod(f"p-{number}") for number in range(6)
    ]


def test_a_spec_is_read_from_the_same_parts_as_from_copies() -> None:
    shared, apart = scenario(), scenario()
    for operation in shared["spec"]["operations"][4:9]:
        first = shared["spec"]["operations"][3]["createOperation"]["object"]
        operation["createOperation"]["object"]["spec"] = first["spec"]
    assert parse_spec(shared) == parse_spec(deepcopy(apart))


# -- whatever is strange, wherever it is: as if each operation were looked at by itself


class Text(str):
    __slots__ = ()


STRANGE = [
    *(None, "", "x", "p-1", "\ud800", "\u00e4", Text("p-3"), 0, 1, -1, True, 1.0, 1.5),
    *(2**31, 2**64, float("nan"), (), (1,), b"", 1j, object(), [], [None], {}, {"a": 1}, {1: 2}),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner: dict[Any, Any] = {}
    if isinstance(value, dict | list):
        inner = value if isinstance(value, dict) else dict(enumerate(value))
    for name, each in inner.items():
        yield (*path, name)
        yield from places(each, (*path, name))


PLACES = [("spec", "operations", 6, *path) for path in places(scenario()["spec"]["operations"][6])]


def strange(path: tuple[Any, ...], value: Any, also: str) -> JsonObject:
    """The scenario with something strange at a place, or beside it under another name."""
    whole = scenario()
    holder: Any = whole
    for step in path[:-1]:
        holder = holder[step]
    holder[also if also and isinstance(holder, dict) else path[-1]] = value
    return whole


def read(document: JsonObject) -> list[Any]:
    """What is taken over and what is said of it, or what is said instead."""
    try:
        taken, listed = taken_over(document, "scenario")
    except ScenarioError as error:
        return [str(error)]
    return told(taken, listed)


def read_one_by_one(document: JsonObject) -> list[Any]:
    with patch.object(SharedBodies, "of", lambda self, obj: None):
        try:
            return told(check_identity(own_copy(document), "scenario"))
        except ScenarioError as error:
            return [str(error)]


def told(taken: JsonObject, listed: OperationList | None = None) -> list[Any]:
    faults = [repr(each) for each in find_faults(taken, None, listed)]
    # In bytes 1, 1.0 and true are not the same.
    text = orjson.dumps(taken)
    if faults:
        return [text, faults]
    operations = parse_spec(taken, None, listed).operations
    return [text, [orjson.dumps([each.id, each.path, each.step, each.body]) for each in operations]]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(STRANGE), st.sampled_from(["", "", "id", "x"]))
def test_strange_things_are_seen_as_if_each_operation_were_read_by_itself(
    path: tuple[Any, ...], value: Any, also: str
) -> None:
    given_one = strange(path, value, also)
    assert read(given_one) == read_one_by_one(given_one)


def test_what_is_taken_over_shares_nothing_with_what_was_given() -> None:
    given_one = scenario()
    taken, listed = taken_over(given_one, "scenario")
    before = deepcopy(taken)
    for operation in given_one["spec"]["operations"][:9]:
        obj = operation["createOperation"]["object"]
        obj["metadata"]["labels"] = {"other": "label"}
        obj.setdefault("spec", {})["x"] = obj["kind"] = "changed"
        operation["step"] = 9
    assert taken == before == scenario()
    assert listed is not None
    assert listed.is_of(taken)


def test_what_is_alike_is_held_once() -> None:
    taken, _ = taken_over(scenario(), "scenario")
    pods = [each["createOperation"]["object"] for each in taken["spec"]["operations"][3:9]]
    assert len({id(each["spec"]) for each in pods}) == 1
    assert len({id(each["metadata"]["labels"]) for each in pods}) == 1
    assert [each["metadata"]["name"] for each in pods] == [f"p-{number}" for number in range(6)]


def test_values_count_as_often_as_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = OperationList.of(scenario())
    most = len(orjson.dumps(listed.sampled(scenario()))) + listed.size
    monkeypatch.setattr(taking, "MAX_VALUES", most)
    assert taken_over(scenario(), "scenario")[1] is not None
    monkeypatch.setattr(taking, "MAX_VALUES", most - 1)
    assert taken_over(scenario(), "scenario") == (scenario(), None)
    monkeypatch.setattr("kubescene.scenario.reading.files.MAX_VALUES", 100)
    with pytest.raises(ScenarioError, match="values, more than 100"):
        taken_over(scenario(), "scenario")


def test_operations_share_what_is_alike_wherever_they_are_read() -> None:
    operations = parse_spec(scenario()).operations
    first, second = (each.body["object"] for each in operations[3:5])
    assert first["spec"] is second["spec"]
    assert operations[3].shared_body is operations[4].shared_body is not None


@pytest.mark.parametrize("said", [{"count": 2}, {"subresource": "status"}], ids=str)
def test_instances_and_parts_of_objects_are_like_nothing(said: JsonObject) -> None:
    whole = scenario()
    whole["spec"]["operations"][3]["createOperation"] |= said
    operations = parse_spec(whole).operations
    assert operations[3].alike == ()
    assert operations[4].shared_body is not None


def test_who_says_more_may_be_alike_and_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scenario()
    for operation in whole["spec"]["operations"][3:9]:
        operation["createOperation"]["createOptions"] = {"fieldManager": "me"}
    operations = parse_spec(whole).operations
    assert len({id(each.alike[0]) for each in operations[3:9]}) == 1
    assert {each.shared_body for each in operations[3:9]} == {None}
    fast = lines(kubescene.run(whole))
    monkeypatch.setattr(SharedBodies, "of", lambda self, obj: None)
    assert lines(kubescene.run(whole)) == fast


def test_operations_of_a_sound_scenario_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[JsonObject] = []
    of = SharedBodies.of

    def noted(self: SharedBodies, obj: JsonObject) -> Any:
        looked.append(obj)
        return of(self, obj)

    monkeypatch.setattr(SharedBodies, "of", noted)
    assert kubescene.run(scenario()).ok
    assert len(looked) == 9


def test_operations_that_were_looked_at_are_those_of_no_other_scenario() -> None:
    taken, listed = taken_over(scenario(), "scenario")
    fewer = {**taken, "spec": {"operations": taken["spec"]["operations"][:5]}}
    assert len(parse_spec(taken, None, listed).operations) == 10
    assert len(parse_spec(fewer, None, listed).operations) == 5
