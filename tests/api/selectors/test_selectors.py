"""Selectors against what Kubernetes itself answers, and against naive evaluation.

``data/selectors.json`` holds random selectors with the answers of k8s.io/apimachinery and
k8s.io/component-helpers v0.36.0: canonical text or error text, and what they match.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.selectors import (
    EVERYTHING,
    NOTHING,
    SUPPORTED_FIELDS,
    FieldRequirement,
    FieldSelector,
    LabelSelector,
    NodeSelector,
    Operator,
    Requirement,
    SelectorError,
    aggregate,
    field_value,
    find_untolerated,
    from_label_selector,
    from_labels,
    node_selector,
    node_selector_term,
    parse_fields,
    parse_labels,
    read_label_selector,
    tolerates,
)
from kubescene.api.selectors.field_selectors import escape
from kubescene.errors import BadRequestError

UPSTREAM: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "selectors.json").read_text()
)
NODE_NAMES = ("n0", "n1", "n2")

properties = settings(deadline=None, max_examples=150)


def upstream(kind: str) -> pytest.MarkDecorator:
    rows = [pytest.param(row, id=f"{kind}-{index}") for index, row in enumerate(UPSTREAM[kind])]
    return pytest.mark.parametrize("row", rows)


# Labels


@upstream("labels")
def test_label_text_agrees_with_apimachinery(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(BadRequestError) as refusal:
            parse_labels(row["given"])
        assert refusal.value.message == row["error"]
        return
    selector = parse_labels(row["given"])
    assert str(selector) == row["text"]
    for labels, answer in row["matches"]:
        assert selector.matches(labels) is answer


@upstream("object")
def test_label_selector_object_agrees_with_apimachinery(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(SelectorError) as refusal:
            from_label_selector(row["given"])
        assert str(refusal.value) == row["error"]
        return
    selector = from_label_selector(row["given"])
    assert str(selector) == row["text"]
    for labels, answer in row["matches"]:
        assert selector.matches(labels) is answer


@pytest.mark.parametrize(
    ("text", "labels", "answer"),
    [
        ("a=b,c!=d,e in (f,g),!h,i>5", {"a": "b", "e": "g", "i": "6"}, True),
        ("a=b,c!=d,e in (f,g),!h,i>5", {"a": "b", "e": "g", "i": "5"}, False),
        ("a==b", {"a": "b"}, True),
        ("a!=b", {}, True),
        ("a notin (b)", {}, True),
        ("a in ()", {"a": ""}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("i<5", {"i": "-1"}, True),
        ("i<5", {"i": "many"}, False),
        ("", {"a": "b"}, True),
    ],
)
def test_label_operators(text: str, labels: dict[str, str], answer: bool) -> None:
    assert parse_labels(text).matches(labels) is answer


def test_absent_selector_matches_nothing_and_empty_one_everything() -> None:
    assert from_label_selector(None) is NOTHING
    assert from_label_selector(None).is_nothing
    assert not from_label_selector(None).matches({})
    assert from_label_selector({}) == EVERYTHING
    assert from_label_selector({}).is_everything
    assert not NOTHING.is_everything


def test_unknown_operator_of_an_object_is_refused() -> None:
    with pytest.raises(SelectorError, match='"Gt" is not a valid label selector operator'):
        from_label_selector({"matchExpressions": [{"key": "a", "operator": "Gt"}]})


def test_exact_label_can_be_asked_for() -> None:
    selector = parse_labels("app=web,tier in (a),zone in (a,b)")
    assert selector.exact("app") == "web"
    assert selector.exact("tier") == "a"
    assert selector.exact("zone") is None
    assert selector.exact("other") is None


def test_selectors_can_be_narrowed() -> None:
    more = Requirement("zone", Operator.EXISTS)
    assert str(parse_labels("z=1,a=2").adding(more)) == "a=2,z=1,zone"
    assert NOTHING.adding(more) is NOTHING


def test_no_value_at_all_is_never_in() -> None:
    assert not Requirement("a", Operator.IN).matches({})
    assert Requirement("a", Operator.NOT_IN).matches({"a": "b"})


def test_plain_labels_select() -> None:
    assert from_labels({"a": "1"}).matches({"a": "1", "b": "2"})
    assert not from_labels({"a": "1"}).matches({"b": "2"})
    assert from_labels({}).is_everything
    assert from_labels(None).is_everything


names = st.from_regex(r"[a-z]([-a-z0-9]{0,5}[a-z0-9])?", fullmatch=True)
keys = st.sampled_from(["a", "b", "app", "example.com/tier", "in", "notin"])
values = st.one_of(st.just(""), names, st.integers(0, 12).map(str))
label_sets = st.dictionaries(keys, values)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(Operator))
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        listed: list[str] = []
    elif operator in (Operator.IN, Operator.NOT_IN):
        listed = sorted(draw(st.sets(values, min_size=1, max_size=4)))
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        listed = [str(draw(st.integers(0, 12)))]
    else:
        listed = [draw(values)]
    return Requirement(draw(keys), operator, tuple(listed))


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Naive evaluation, by the words of the API reference."""
    present, value = requirement.key in labels, labels.get(requirement.key, "")
    match requirement.operator.value:
        case "in" | "=" | "==":
            return present and value in requirement.values
        case "notin" | "!=":
            return not present or value not in requirement.values
        case "exists":
            return present
        case "!":
            return not present
        case "gt":
            return present and value.isdecimal() and int(value) > int(requirement.values[0])
        case _:
            return present and value.isdecimal() and int(value) < int(requirement.values[0])


@properties
@given(st.lists(requirements(), max_size=4), label_sets)
def test_all_requirements_must_hold(parts: list[Requirement], labels: dict[str, str]) -> None:
    selector = LabelSelector(tuple(parts))
    assert selector.matches(labels) == all(holds(each, labels) for each in parts)


@properties
@given(st.lists(requirements(), max_size=4))
def test_label_text_reads_back(parts: list[Requirement]) -> None:
    selector = EVERYTHING.adding(*parts)
    assert parse_labels(str(selector)) == selector


# Fields


def text_at(values_by_path: Mapping[str, str], path: str) -> str:
    return values_by_path.get(path, "")


@upstream("fields")
def test_field_text_agrees_with_apimachinery(row: dict[str, Any]) -> None:
    if "error" in row:
        with pytest.raises(BadRequestError) as refusal:
            parse_fields(row["given"])
        assert refusal.value.message == row["error"]
        return
    selector = parse_fields(row["given"])
    assert str(selector) == row["text"]
    for given_fields, answer in row["matches"]:
        assert selector.matches(partial(text_at, given_fields)) is answer


@properties
@given(
    st.lists(st.tuples(names, st.sampled_from(["=", "!="]), st.text(max_size=8)), max_size=4),
)
def test_field_text_reads_back(parts: list[tuple[str, Any, str]]) -> None:
    wanted = {FieldRequirement(*part) for part in parts}
    text = ",".join(
        map(str, FieldSelector(tuple(FieldRequirement(*part) for part in parts)).requirements)
    )
    assert set(parse_fields(text).requirements) == wanted


@properties
@given(st.text())
def test_escaped_value_is_one_term(value: str) -> None:
    assert parse_fields(f"a={escape(value)}").exact("a") == value


def test_exact_field_can_be_asked_for() -> None:
    selector = parse_fields("spec.nodeName=n1,status.phase!=Failed")
    assert selector.exact("spec.nodeName") == "n1"
    assert selector.exact("status.phase") is None


@pytest.mark.parametrize(
    ("resource", "text", "message"),
    [
        (("", "pods"), "spec.x=1", "field label not supported: spec.x"),
        (("", "nodes"), "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (("batch", "jobs"), "status.x=1", 'field label "status.x" not supported for Job'),
        (
            ("apps", "replicasets"),
            "status.replicas=1",
            '"status.replicas" is not a known field selector: '
            'only "metadata.name", "metadata.namespace"',
        ),
        (
            ("resource.k8s.io", "resourceslices"),
            "x=1",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x",
        ),
    ],
)
def test_unsupported_field_is_refused(resource: tuple[str, str], text: str, message: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        parse_fields(text).for_resource(resource)
    assert refusal.value.message == message


@pytest.mark.parametrize("resource", SUPPORTED_FIELDS, ids=str)
def test_supported_fields_are_accepted(resource: tuple[str, str]) -> None:
    for label, path in SUPPORTED_FIELDS[resource].items():
        assert parse_fields(f"{label}=x").for_resource(resource).exact(path) == "x"


def test_old_names_are_translated() -> None:
    assert parse_fields("spec.host=n1").for_resource(("", "pods")).exact("spec.nodeName") == "n1"
    events = ("events.k8s.io", "events")
    selector = parse_fields("regarding.name=web").for_resource(events)
    assert selector.exact("involvedObject.name") == "web"


def test_custom_resources_bring_their_own_fields() -> None:
    resource, selector = ("example.com", "widgets"), parse_fields("spec.color=red")
    assert selector.for_resource(resource, custom_fields=["spec.color"]) == selector
    with pytest.raises(BadRequestError, match=r"^field label not supported: spec\.color$"):
        selector.for_resource(resource, custom_fields=[])
    with pytest.raises(BadRequestError, match=r"metadata\.namespace$"):
        parse_fields("metadata.namespace=x").for_resource(
            resource, custom_fields=[], namespaced=False
        )


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    [
        ({"metadata": {"name": "web"}}, "metadata.name", "web"),
        ({"metadata": {"name": "web"}}, "metadata.namespace", ""),
        ({"spec": {"nodeName": "n1"}}, "spec.nodeName", "n1"),
        ({}, "spec.nodeName", ""),
        ({"spec": {}}, "spec.hostNetwork", "false"),
        ({"spec": {"hostNetwork": True}}, "spec.hostNetwork", "true"),
        ({}, "spec.unschedulable", "false"),
        ({"spec": {"unschedulable": True}}, "spec.unschedulable", "true"),
        ({}, "status.replicas", "0"),
        ({"status": {"replicas": 3}}, "status.replicas", "3"),
        ({"status": {"succeeded": 2}}, "status.successful", "2"),
        ({"status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]}}, "status.podIP", "10.0.0.1"),
        ({"status": {"podIP": "10.0.0.1"}}, "status.podIP", "10.0.0.1"),
        ({"status": {"podIPs": [{"ip": "10.0.0.1"}]}}, "status.podIPs", ""),
        ({"involvedObject": {"name": "a"}}, "involvedObject.name", "a"),
        ({"regarding": {"name": "a"}}, "involvedObject.name", "a"),
        ({"source": {"component": "kubelet"}}, "source", "kubelet"),
        ({"source": {}, "reportingComponent": "x"}, "source", "x"),
        ({"reportingController": "x"}, "reportingComponent", "x"),
        ({"spec": {"size": 3, "on": True}}, "spec.size", "3"),
        ({"spec": {"size": 3, "on": True}}, "spec.on", "true"),
    ],
)
def test_field_values(obj: dict[str, Any], path: str, value: str) -> None:
    assert field_value(obj, path) == value
    assert parse_fields(f"{path}={value}").matches_object(obj)
    assert not parse_fields(f"{path}!={value}").matches_object(obj)


# Nodes


@upstream("node")
def test_node_selector_agrees_with_component_helpers(row: dict[str, Any]) -> None:
    selector = node_selector({"nodeSelectorTerms": row["given"]})
    errors = tuple(dict.fromkeys(error for term in selector.terms for error in term.errors))
    assert (aggregate(errors) if errors else "") == row.get("error", "")
    for index, (labels, answer) in enumerate(row["matches"]):
        assert selector.matches(labels, NODE_NAMES[index]) is answer


@upstream("preferred")
def test_preferred_terms_are_refused_in_the_words_of_component_helpers(row: dict[str, Any]) -> None:
    terms = [node_selector_term(each, path=f"[{at}]") for at, each in enumerate(row["given"])]
    errors = tuple(dict.fromkeys(error for term in terms for error in term.errors))
    assert (aggregate(errors) if errors else "") == row.get("error", "")


@pytest.mark.parametrize("terms", [[], [{}], [{"matchExpressions": []}]], ids=str)
def test_terms_that_ask_for_nothing_match_no_node(terms: list[dict[str, Any]]) -> None:
    assert not node_selector({"nodeSelectorTerms": terms}).matches({"a": "b"}, "n0")


def test_compiled_requirements_of_a_term_are_exposed() -> None:
    term = node_selector_term(
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["b", "a"]},
                {"key": "cores", "operator": "Gt", "values": ["8"]},
            ],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
        }
    )
    assert term.expressions == (
        Requirement("zone", Operator.IN, ("b", "a")),
        Requirement("cores", Operator.GREATER_THAN, ("8",)),
    )
    assert term.expressions[1].number == 8
    assert term.fields == (Requirement("metadata.name", Operator.NOT_IN, ("n1",)),)
    assert term.matches({"zone": "a", "cores": "9"}, "n0")
    assert not term.matches({"zone": "a", "cores": "9"}, "n1")


def named(*node_names: str) -> dict[str, Any]:
    """A term with one requirement per name, each of which may be a list: "n1 n2"."""
    fields = [
        {"key": "metadata.name", "operator": "In", "values": each.split()} for each in node_names
    ]
    return {"matchFields": fields}


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([named("n1"), named("n0")], ("n1", "n0")),
        ([named("n1"), {"matchExpressions": [{"key": "a", "operator": "Exists"}]}], None),
        ([named("n1"), {}], None),
        ([named("n1", "n2")], ()),
        ([named("n1 n2", "n2 n3")], ("n2",)),
        ([], None),
    ],
    ids=str,
)
def test_names_that_a_selector_is_limited_to(
    terms: list[dict[str, Any]], expected: tuple[str, ...] | None
) -> None:
    assert node_selector({"nodeSelectorTerms": terms}).node_names() == expected


@properties
@given(st.lists(st.lists(requirements(), min_size=1, max_size=3), max_size=3), label_sets)
def test_one_term_must_hold(parts: list[list[Requirement]], labels: dict[str, str]) -> None:
    written = {
        Operator.IN: "In",
        Operator.NOT_IN: "NotIn",
        Operator.EXISTS: "Exists",
        Operator.DOES_NOT_EXIST: "DoesNotExist",
        Operator.GREATER_THAN: "Gt",
        Operator.LESS_THAN: "Lt",
    }
    known = [[each for each in part if each.operator in written] for part in parts]
    terms = [
        {
            "matchExpressions": [
                {"key": each.key, "operator": written[each.operator], "values": list(each.values)}
                for each in part
            ]
        }
        for part in known
    ]
    expected = any(part and all(holds(each, labels) for each in part) for part in known)
    assert node_selector({"nodeSelectorTerms": terms}).matches(labels, "n0") == expected


# Tolerations


@upstream("taint")
def test_toleration_agrees_with_the_api_package(row: dict[str, Any]) -> None:
    toleration, taint = row["given"]
    assert tolerates(toleration, taint) is row["matches"]


def test_first_untolerated_taint_is_found() -> None:
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    hard = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    evicting = {"key": "down", "effect": "NoExecute"}
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    assert find_untolerated([soft, hard, evicting], tolerations) is evicting
    assert find_untolerated([soft, hard], tolerations) is None
    assert find_untolerated([soft, hard], tolerations, ("PreferNoSchedule",)) is soft
    assert find_untolerated([hard], ()) is hard


# All of them


def test_compiling_leaves_its_input_alone() -> None:
    given_selector = {
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [{"key": "c", "operator": "In", "values": ["z", "y"]}],
    }
    given_terms = {"nodeSelectorTerms": [{"matchExpressions": given_selector["matchExpressions"]}]}
    before = copy.deepcopy((given_selector, given_terms))
    from_label_selector(given_selector)
    node_selector(given_terms)
    assert (given_selector, given_terms) == before


@pytest.mark.parametrize(
    "selector",
    [parse_labels("a=b"), parse_fields("a=b"), NodeSelector((node_selector_term(named("n1")),))],
    ids=["labels", "fields", "nodes"],
)
def test_selectors_are_frozen_and_hashable(selector: Any) -> None:
    assert hash(selector) == hash(copy.copy(selector))
    with pytest.raises(FrozenInstanceError):
        setattr(selector, fields(selector)[0].name, ())


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, "must be an object with matchLabels or matchExpressions"),
        ("app=web", "must be an object with matchLabels or matchExpressions"),
        ({"labels": {}}, "unknown field labels; known are: matchLabels, matchExpressions"),
        ({"matchLabels": [[]]}, "matchLabels: must be an object of labels"),
        ({"matchLabels": "x"}, "matchLabels: must be an object of labels"),
        ({"matchLabels": {"app": {}}}, "matchLabels.app: must be text, in quotes if need be, not "),
        ({"matchLabels": {"app": -1e18}}, "matchLabels.app: must be text, in quotes if need be"),
        ({"matchExpressions": {}}, "matchExpressions: must be a list"),
        ({"matchExpressions": [3]}, "matchExpressions[0]: must be an object with key, operator"),
        ({"matchExpressions": [{"key": []}]}, "matchExpressions[0].key: must be text, in quotes"),
        (
            {"matchExpressions": [{"key": "a", "operator": [1]}]},
            "matchExpressions[0].operator: must be text, in quotes if need be, not [1]",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
            "matchExpressions[0].values: must be a list of texts",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [["x" * 99]]}]},
            "matchExpressions[0].values: must be text, in quotes if need be, not ['" + "x" * 38,
        ),
        ({"matchExpressions": [{"key": "a", "operator": "Ib"}]}, '"Ib" is not a valid label sel'),
    ],
)
def test_a_selector_that_nobody_has_looked_at_is_refused_in_words(written: Any, said: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        read_label_selector(written)
    assert str(refusal.value).startswith(said)


def test_a_selector_that_is_sound_is_read_alike() -> None:
    whole = {
        "matchLabels": {"app": "a"},
        "matchExpressions": [{"key": "b", "operator": "In", "values": ["c"]}],
    }
    for sound in (whole, {}, {"matchLabels": None, "matchExpressions": None}):
        assert read_label_selector(sound) == from_label_selector(sound)
