"""Expressions in objects are looked at when they are written, as kube-apiserver does it."""

from typing import Any

import pytest

from kubescene.cluster import Cluster
from kubescene.errors import InvalidError
from kubescene.types import JsonObject

SELECTOR = 'device.driver == "gpu.example.com"'
NESTED = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]"
ENDLESS = "true"
for _name in "abcde":
    ENDLESS = f"{NESTED}.all({_name}, {ENDLESS})"


def selectors(*texts: str) -> list[JsonObject]:
    return [{"cel": {"expression": each}} for each in texts]


def device_class(*texts: str) -> JsonObject:
    return made("DeviceClass", {"selectors": selectors(*texts)})


def made(kind: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec,
    }


def requesting(*texts: str, first: bool = False) -> JsonObject:
    asked = {"deviceClassName": "gpu", "selectors": selectors(*texts)}
    if first:
        return {
            "devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s", **asked}]}]}
        }
    return {"devices": {"requests": [{"name": "r", "exactly": asked}]}}


def refusal(obj: JsonObject) -> str:
    with pytest.raises(InvalidError) as caught:
        Cluster().create(obj)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 +", "compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>'"),
        ("device.nope == 1", "compilation failed: ERROR: <input>:1:7: undefined field 'nope'"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        (ENDLESS, "Forbidden: too complex, exceeds cost limit"),
        (f"{SELECTOR} && {'true && ' * 1500}true", "Too long: may not be more than 10240 bytes"),
    ],
)
def test_a_selector_that_cannot_be_used_is_refused(text: str, words: str) -> None:
    said = refusal(device_class(SELECTOR, text))
    assert "spec.selectors[1].cel.expression: " in said
    assert words in said


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        (
            made("ResourceClaim", requesting(SELECTOR, "1")),
            "spec.devices.requests[0].exactly.selectors[1].cel.expression",
        ),
        (
            made("ResourceClaim", requesting("1", first=True)),
            "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression",
        ),
        (
            made("ResourceClaimTemplate", {"spec": requesting("1")}),
            "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression",
        ),
    ],
)
def test_claims_and_their_templates_are_looked_at_too(obj: JsonObject, place: str) -> None:
    obj["metadata"]["namespace"] = "default"
    assert f'{place}: Invalid value: "1": must evaluate to bool' in refusal(obj)


def test_selectors_that_can_be_used_are_accepted() -> None:
    cluster = Cluster()
    cluster.create(device_class(SELECTOR, 'device.attributes["d"].ready'))
    for kind, spec in (
        ("ResourceClaim", requesting(SELECTOR)),
        ("ResourceClaimTemplate", {"spec": requesting(SELECTOR, first=True)}),
    ):
        obj = made(kind, spec)
        obj["metadata"]["namespace"] = "default"
        cluster.create(obj)


def test_a_changed_selector_is_looked_at_and_one_that_stays_is_not() -> None:
    cluster = Cluster()
    cluster.create(device_class(SELECTOR))
    held = cluster.get("deviceclasses", "x")
    with pytest.raises(InvalidError, match="must evaluate to bool"):
        cluster.apply({**held, "spec": {"selectors": selectors("1")}})


def definition(**schema: Any) -> JsonObject:
    root = {"type": "object", "properties": {"spec": {"type": "object", **schema}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                }
            ],
        },
    }


def rules(*texts: str) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": each} for each in texts]}


SPEC = "spec.validation.openAPIV3Schema.properties[spec]"


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (rules("f(1)", "f(1) && self.x <"), f"{SPEC}.x-kubernetes-validations[1].rule"),
        (
            {"properties": {"l": {"type": "array", "items": {"type": "string", **rules("(")}}}},
            f"{SPEC}.properties[l].items.x-kubernetes-validations[0].rule",
        ),
        (
            {"additionalProperties": {"type": "string", **rules("'")}},
            f"{SPEC}.additionalProperties.x-kubernetes-validations[0].rule",
        ),
    ],
)
def test_a_rule_of_a_definition_that_is_no_expression_is_refused(
    schema: dict[str, Any], place: str
) -> None:
    said = refusal(definition(**schema))
    assert f"{place}: Invalid value: " in said
    assert "compilation failed: ERROR: <input>:1:" in said


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("self.all(i, v, v > i)", "cannot be range of a comprehension"),
        ("authorizer.group('x').check('y').allowed()", "undeclared reference to 'group'"),
        ("f(1, 2)", "undeclared reference to 'f'"),
    ],
)
def test_a_rule_that_asks_for_what_there_is_not_is_refused(text: str, fault: str) -> None:
    assert fault in refusal(definition(**rules(text)))
