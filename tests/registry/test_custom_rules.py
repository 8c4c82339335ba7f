"""CEL rules of custom kinds in a world: asked of every write, within bounds."""

from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.cluster import Cluster
from kubescene.errors import InvalidError
from kubescene.registry import Registry
from widgets import widget_definition

WIDGET = GroupVersionKind("example.com", "v1", "Widget")
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def ruled(properties: dict[str, Any], *rules: Any, **more: Any) -> dict[str, Any]:
    """A definition whose objects have a spec with these properties and rules."""
    written = [{"rule": each} if isinstance(each, str) else each for each in rules]
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": written, **more}
    return widget_definition(schema={"type": "object", "properties": {"spec": spec}})


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


NUMBERS = {"min": {"type": "integer"}, "max": {"type": "integer"}}


def test_a_rule_refuses_what_it_is_against(client: DirectClient) -> None:
    client.create(ruled(NUMBERS, {"rule": "self.min <= self.max", "message": "min over max"}))
    client.create(widget("a", min=1, max=2))
    with pytest.raises(InvalidError, match="spec: Invalid value: min over max"):
        client.create(widget("b", min=3, max=2))
    with pytest.raises(InvalidError, match="min over max"):
        client.patch(ObjectRef(WIDGET, "a", "default"), {"spec": {"max": 0}})


def test_a_copy_of_a_world_keeps_its_rules() -> None:
    world = Cluster()
    world.create(ruled(NUMBERS, "self.min < 5"))
    with pytest.raises(InvalidError, match=r"failed rule: self\.min < 5"):
        world.fork().create(widget(min=7))


def test_what_was_broken_before_is_a_warning(registry: Registry, client: DirectClient) -> None:
    client.create(ruled(NUMBERS))
    client.create(widget(min=9, max=1))
    rule = {"rule": "self < 5", "message": "too much"}
    strict = ruled({**NUMBERS, "min": {"type": "integer", "x-kubernetes-validations": [rule]}})
    versions = {"spec": {"versions": strict["spec"]["versions"]}}
    client.patch(ObjectRef(DEFINITION, "widgets.example.com"), versions)
    told: list[str] = []
    kind = registry.scheme.of_kind("example.com/v1", "Widget")
    options = WriteOptions(warn=told.append)
    registry.patch(
        Actor("a"), kind, "default", "w", {"spec": {"max": 2}}, PatchType.MERGE, options=options
    )
    assert told == ["spec.min: Invalid value: 9: too much"]
    with pytest.raises(InvalidError, match="too much"):
        registry.patch(Actor("a"), kind, "default", "w", {"spec": {"min": 8}}, PatchType.MERGE)


def test_an_estimate_grows_with_what_there_can_be(client: DirectClient) -> None:
    """A comparison of each with each of ``most``: somewhat more than the square of it."""

    def numbers(most: int) -> dict[str, Any]:
        return ruled({"l": {"type": "array", "maxItems": most, "items": {"type": "integer"}}}, rule)

    rule = "self.l.all(x, self.l.all(y, x != y))"
    client.create(numbers(1_000))
    with pytest.raises(InvalidError, match=r"estimated rule cost exceeds budget by factor of 2\."):
        Cluster().create(numbers(2_000))
    with pytest.raises(InvalidError, match="by factor of more than 100x"):
        Cluster().create(numbers(20_000))


def test_a_definition_that_keeps_its_schema_keeps_its_price(client: DirectClient) -> None:
    """Only what is new is refused for what it costs."""
    client.create(ruled(NUMBERS, "self.min < 5"))
    columns = [{"name": "Min", "type": "integer", "jsonPath": ".spec.min"}]
    version = {**ruled(NUMBERS, "self.min < 5")["spec"]["versions"][0]}
    version["additionalPrinterColumns"] = columns
    patch = {"spec": {"versions": [version]}}
    client.patch(ObjectRef(DEFINITION, "widgets.example.com"), patch)


def test_an_object_that_makes_rules_dear_is_refused(client: DirectClient) -> None:
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    rule = "self.l.all(x, self.l.all(y, x != -y - 1))"
    client.create(ruled({"l": numbers}, rule))
    client.create(widget("a", l=[*range(50)]))
    with pytest.raises(InvalidError, match="call cost exceeds limit for rule"):
        client.create(widget("b", l=[*range(1000)]))


def test_rules_stand_at_any_depth() -> None:
    deepest = {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5"}]}
    schema: dict[str, Any] = deepest
    value: Any = 9
    for _ in range(90):
        schema = {"type": "object", "properties": {"d": schema}}
        value = {"d": value}
    world = Cluster()
    world.create(widget_definition(schema=schema))
    with pytest.raises(InvalidError, match="failed rule: self < 5"):
        world.create({**{name: widget()[name] for name in widget() if name != "spec"}, **value})


def test_a_rule_about_a_change_is_no_warning_where_nothing_changed(
    registry: Registry, client: DirectClient
) -> None:
    rule = {"rule": "self != oldSelf", "message": "must change"}
    properties = {**NUMBERS, "min": {"type": "integer", "x-kubernetes-validations": [rule]}}
    client.create(ruled(properties))
    client.create(widget(min=1, max=1))
    with pytest.raises(InvalidError, match="must change"):
        client.patch(ObjectRef(WIDGET, "w", "default"), {"spec": {"max": 2}})
    client.patch(ObjectRef(WIDGET, "w", "default"), {"spec": {"min": 2}})


def test_the_version_of_an_object_is_never_forgiven(client: DirectClient) -> None:
    """It is shown in any version, so that nobody knows what it was."""
    client.create(widget_definition(schema={"type": "object"}))
    client.create({name: part for name, part in widget().items() if name != "spec"})
    strict = {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'other/v1'"}]}
    schema = {"type": "object", "properties": {"apiVersion": strict}}
    versions = {"spec": {"versions": widget_definition(schema=schema)["spec"]["versions"]}}
    client.patch(ObjectRef(DEFINITION, "widgets.example.com"), versions)
    with pytest.raises(InvalidError, match="apiVersion: Invalid value"):
        client.patch(ObjectRef(WIDGET, "w", "default"), {"metadata": {"labels": {"a": "b"}}})


def test_all_rules_of_an_object_together_have_a_budget(client: DirectClient) -> None:
    """Each stays below what one may do; the twelfth is not asked any more."""
    numbers = {"type": "array", "maxItems": 330, "items": {"type": "integer"}}
    rules = [f"self.l.all(x, self.l.all(y, x != -y - {each}))" for each in range(1, 13)]
    client.create(ruled({"l": numbers}, *rules))
    client.create(widget("a", l=[1, 2, 3]))
    with pytest.raises(InvalidError, match="running out of cost budget, no further validation"):
        client.create(widget("b", l=[*range(330)]))


def test_a_default_keeps_to_the_rules_also_of_new_objects() -> None:
    rule = {"rule": "oldSelf.hasValue()", "optionalOldSelf": True, "message": "never new"}
    default = {"type": "integer", "default": 1, "x-kubernetes-validations": [rule]}
    with pytest.raises(
        InvalidError, match=r"properties\[n\]\.default: Invalid value: 1: never new"
    ):
        Cluster().create(ruled({"n": default}))
