"""Encoded pods with places for the names of their claims."""

import orjson
import pytest

from kubescene.registry.shortcuts.templates import claim_names, claiming_spec
from kubescene.types import JsonObject


def claiming(claim: str) -> JsonObject:
    return {"name": "v", "persistentVolumeClaim": {"claimName": claim}}


def encoded(spec: JsonObject) -> bytes:
    return b',"spec":' + orjson.dumps(spec)[:-1]


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [claiming("a")], "x": "y"},
        {"x": '100% "a"', "volumes": [claiming("a"), {"name": "w"}, claiming("b")]},
        {"volumes": [claiming("a"), {"name": "added", "emptyDir": {}}]},
    ],
)
def test_any_names_can_take_the_places_of_the_first_ones(spec: JsonObject) -> None:
    given = [each for each in spec["volumes"] if each["name"] != "added"]
    blank = claiming_spec(spec, encoded(spec), given)
    assert blank % claim_names(given) == encoded(spec)
    others = [claiming('c"%') if "persistentVolumeClaim" in each else each for each in given]
    wanted = {**spec, "volumes": [*others, *spec["volumes"][len(given) :]]}
    assert blank % claim_names(others) == encoded(wanted)


def test_a_text_that_could_be_taken_for_a_place_is_left_alone() -> None:
    spec: JsonObject = {"volumes": [claiming("a")], "x": "\0"}
    assert claiming_spec(spec, encoded(spec), spec["volumes"]) == b""


def test_a_spec_that_was_encoded_otherwise_is_left_alone() -> None:
    spec: JsonObject = {"volumes": [claiming("a")], "nodeName": "n1"}
    assert claiming_spec(spec, encoded({"volumes": spec["volumes"]}), spec["volumes"]) == b""
