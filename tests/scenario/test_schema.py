"""The schemas and the reference say what the engine does: all come from one table."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubescene.cli.files import read_scenario
from kubescene.scenario.fields.json_schema import editor_schema, spec_schema
from kubescene.scenario.fields.reference_page import reference_page
from kubescene.scenario.fields.table import OPERATION, SCENARIO_FIELDS, SPEC, Field, FieldType
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.scenario.simulation import FIELDS, KUBELET_FIELDS
from kubescene.scenario.spec import OperationKind
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.types import JsonObject

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/scenario.md"
EXAMPLES = sorted(ROOT.glob("examples/*/scenario.yaml"))


def fits(value: Any, schema: JsonObject) -> bool:
    """As much of JSON Schema as our schema uses."""
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    kinds: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": int | float,
        "boolean": bool,
        "object": dict,
        "array": list,
        "null": type(None),
    }
    if not any(isinstance(value, kinds[each]) for each in types):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, list):
        return all(fits(item, schema["items"]) for item in value)
    if not isinstance(value, dict):
        return bool(schema.get("minimum", -(2**63)) <= value if isinstance(value, int) else True)
    known = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    if (
        "oneOf" in schema
        and sum(set(each["required"]) <= set(value) for each in schema["oneOf"]) != 1
    ):
        return False
    return set(schema.get("required", ())) <= set(value) and all(
        fits(part, known[name]) if name in known else extra is not False
        for name, part in value.items()
    )


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.parent.name for file in EXAMPLES])
def test_every_example_fits_the_schema_for_editors(file: Path) -> None:
    scenario = yaml.safe_load(file.read_text())
    assert fits(scenario, editor_schema())
    _, operations = operations_of(scenario)
    operations[0]["stepp"] = 1
    assert not fits(scenario, editor_schema())


def test_the_schema_is_json() -> None:
    assert json.loads(json.dumps(editor_schema()))["title"] == "Scenario"


def test_the_structural_schema_keeps_what_the_engine_shall_name() -> None:
    def walk(schema: JsonObject) -> None:
        if schema.get("type", "object") == "object" and "additionalProperties" not in schema:
            assert schema["x-kubernetes-preserve-unknown-fields"] is True
        for part in schema.get("properties", {}).values():
            walk(part)
        if "items" in schema:
            walk(schema["items"])

    walk(spec_schema())
    assert set(spec_schema()["properties"]) == {field.name for field in SPEC.fields}


def test_the_table_names_what_the_engine_reads() -> None:
    bodies = {field.name for field in OPERATION.fields if field.type is FieldType.OBJECT}
    assert bodies == {kind.field for kind in OperationKind}
    simulation = SPEC.member("simulation")
    assert simulation is not None
    assert {field.name for field in simulation.fields} == set(FIELDS)
    kubelet = simulation.member("kubelet")
    assert kubelet is not None
    assert {field.name for field in kubelet.fields} == set(KUBELET_FIELDS)


def test_every_field_says_what_it_means() -> None:
    def walk(field: Field) -> None:
        assert field.about.endswith((".", "..."))
        for member in (*field.fields, *([field.items] if field.items else [])):
            walk(member)

    walk(SCENARIO_FIELDS)


def test_examples_have_no_faults() -> None:
    for file in EXAMPLES:
        # As it is read: with what files beside it say in their place.
        folder = ScenarioFolder(file.parent)
        assert list(find_faults(read_scenario(file).scenario, folder)) == []


def test_the_reference_page_is_current(update: bool) -> None:
    if update:
        PAGE.write_text(reference_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference_page()
