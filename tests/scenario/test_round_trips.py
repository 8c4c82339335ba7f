"""Any JSON survives a scenario file and the results of a run."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.scenario import ScenarioBuilder, load_scenario
from kubescene.scenario.reading.files import load_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from(["yes", "~", "1e3", "12:30", "0x1f", "2026-01-01", "<<", "=", "- a", "&a"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def scenario(value: Any, text: str) -> ScenarioBuilder:
    """Content that nobody interprets: a patch's text, and what the spec holds beside it."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": text}}
    return ScenarioBuilder("s").create(obj).create({**obj, "extra": value}, id=text or "x")


@settings(deadline=None, max_examples=100)
@given(JSON, TEXT)
def test_a_saved_scenario_is_loaded_as_it_was_built(value: Any, text: str) -> None:
    built = scenario(value, text)
    with tempfile.TemporaryDirectory() as directory:
        assert load_scenario(built.save(Path(directory) / "scenario.yaml")) == built.build()


@settings(deadline=None, max_examples=40)
@given(JSON, TEXT)
def test_results_are_written_as_they_are(value: Any, text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = kubescene.run(scenario(value, text), out=directory, full_status=True)
        if run.bad_input:  # such as an id that begins with @
            assert not any(Path(directory).iterdir())
            return
        written = (Path(directory) / "result.yaml").read_text(encoding="utf-8")
    assert load_yaml(written, "scenario.yaml") == [run.scenario]
