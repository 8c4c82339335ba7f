"""What `kubescene validate` finds without playing."""

from typing import Any

import pytest

from kubescene.errors import ScenarioError
from kubescene.scenario import ScenarioBuilder, parse_spec
from kubescene.scenario.checking import check_objects
from kubescene.testing import make_node, make_pod

BAD_POD: dict[str, Any] = {**make_pod("p").build(), "spec": {"contayners": []}}
HUNGRY = make_pod("p").cpu("lots")


def check(scenario: ScenarioBuilder) -> None:
    check_objects(parse_spec(scenario.build()))


@pytest.mark.parametrize(
    ("scenario", "complaint"),
    [
        (ScenarioBuilder("s").create(BAD_POD), 'unknown field "spec.contayners"'),
        (ScenarioBuilder("s").create(HUNGRY), "quantities must match"),
        (ScenarioBuilder("s").create(make_pod("No Good")), "metadata.name: Invalid value"),
        (ScenarioBuilder("s").create({**BAD_POD, "kind": "Pot"}), 'no kind "Pot" is registered'),
        (ScenarioBuilder("s").create(make_node("n"), count=2), "put $(INDEX) into metadata.name"),
    ],
    ids=["unknown field", "quantity", "name", "kind", "same name"],
)
def test_a_bad_object_is_found_with_its_place(scenario: ScenarioBuilder, complaint: str) -> None:
    with pytest.raises(ScenarioError) as found:
        check(scenario)
    assert complaint in str(found.value)
    assert str(found.value).startswith("step 1, operation 'op-1': ")


def test_what_depends_on_the_moment_is_left_for_the_run() -> None:
    pod = make_pod("p").namespace("not-yet").priority_class("not-yet")
    check(ScenarioBuilder("s").create(make_node("n-$(INDEX)"), count=2).create(pod))


def test_unknown_fields_pass_if_the_author_says_so() -> None:
    operation = {
        "step": 1,
        "createOperation": {
            "object": {**make_node("n").build(), "extra": 1},
            "createOptions": {"fieldValidation": "Ignore"},
        },
    }
    scenario = ScenarioBuilder("s").build()
    scenario["spec"]["operations"] = [operation]
    check_objects(parse_spec(scenario))
