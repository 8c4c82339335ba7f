"""A glance at a scenario says "nothing is wrong" only where nothing is."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubescene.scenario.fields.table import SCENARIO_FIELDS, Field, record, text
from kubescene.scenario.reading.files import load_yaml
from kubescene.scenario.validation.faults import misfits
from kubescene.scenario.validation.fitting import fits, scenario_shape, shape_of

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*/scenario.yaml"))
SCENARIO: Any = {
    "apiVersion": "simulation.kubescene.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "s", "labels": {"a": "b"}},
    "spec": {
        "controllers": {"simulationControllers": {"enabled": [{"name": "kube-scheduler"}]}},
        "simulation": {"seed": 3, "explain": "Full"},
        "operations": [
            {
                "id": "a",
                "step": 1,
                "createOperation": {"object": {"apiVersion": "v1", "kind": "X"}},
            },
            {
                "step": 2,
                "patchOperation": {
                    "typeMeta": {"apiVersion": "v1", "kind": "Pod"},
                    "objectMeta": {"name": "p"},
                    "patch": "{}",
                    "PatchType": "merge",
                },
            },
            {"step": 3, "doneOperation": {"done": True}},
        ],
    },
}
STRANGE = st.sampled_from([None, "", "x", 0, -1, 2**31, 2**64, True, 1.0, [], [None], {}, {"a": 1}])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner: dict[Any, Any] = {}
    if isinstance(value, dict | list):
        inner = value if isinstance(value, dict) else dict(enumerate(value))
    for name, each in inner.items():
        yield from places(each, (*path, name))


def changed(path: tuple[Any, ...], name: Any, strange: Any) -> Any:
    """The scenario with something strange at a place, or beside it under another name."""
    scenario = deepcopy(SCENARIO)
    holder = scenario
    for step in path[:-1]:
        holder = holder[step]
    at = path[-1] if name is None or isinstance(holder, list) else name
    holder[at] = strange
    return scenario


@settings(max_examples=400)
@example(("spec", "simulation", "explain"), None, "x")
@example(("spec", "operations", 0, "step"), None, 0)
@given(
    st.sampled_from([path for path in places(SCENARIO) if path]),
    st.sampled_from([None, "typo", "patchType", "PatchType", "Name", "preSimulationControllers"]),
    STRANGE,
)
def test_what_fits_at_a_glance_has_no_faults(path: Any, name: Any, strange: Any) -> None:
    scenario = changed(path, name, strange)
    if fits(scenario, scenario_shape()):
        assert list(misfits(scenario, SCENARIO_FIELDS)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_glance_is_enough_for_every_example(path: Path) -> None:
    for scenario in load_yaml(path.read_bytes(), str(path)):
        assert fits(scenario, scenario_shape())


def test_a_glance_is_enough_for_other_spellings() -> None:
    assert fits(SCENARIO, scenario_shape())


TWO: Field = record("", "", text("a", "", also=("b",)))


@pytest.mark.parametrize(
    ("value", "fitting"),
    [({"a": "x"}, True), ({"b": "x"}, True), ({"a": "x", "b": "x"}, False), ({"c": "x"}, False)],
    ids=["one", "the other", "both", "neither"],
)
def test_a_field_is_spelled_once(value: Any, fitting: bool) -> None:
    assert fits(value, shape_of(TWO)) is fitting
    assert (not list(misfits(value, TWO))) is fitting
