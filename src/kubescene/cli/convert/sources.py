"""``kubescene convert``: scenarios from drafts, manifests and cluster dumps."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.cli.files import STDIN, complain
from kubescene.errors import ScenarioError
from kubescene.scenario.conversion import Conversion, merged_form, scenario_from
from kubescene.scenario.reading.files import MAX_FILE_BYTES, check_identity, check_text, load_yaml
from kubescene.scenario.reading.manifests import read_manifests
from kubescene.scenario.reading.object_files import ScenarioFolder, flattened
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.types import JsonObject


def convert_files(sources: Sequence[Path], *, name: str, out: Path | None, placed: bool) -> int:
    """Write a scenario to standard output, or to a file that is not there yet."""
    if out is not None and out.exists():
        raise ScenarioError("it exists: choose another --out, or remove it", where=str(out))
    scenario = converted(sources, name=name, placed=placed)
    text = dump_yaml(scenario)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
    return 0


def converted(sources: Sequence[Path], *, name: str, placed: bool) -> JsonObject:
    objects = [obj for source in sources for obj in objects_of(source)]
    scenarios = [obj for obj in objects if is_scenario(obj)]
    if len(scenarios) == 1 == len(objects):
        return merged_form(without_faults(scenarios[0], sources[0]))
    if scenarios:
        raise ScenarioError("a Scenario is converted alone: name one file", where=str(sources[0]))
    if not objects:
        raise ScenarioError("there is no object to make a scenario of", where=str(sources[0]))
    try:
        conversion = scenario_from(objects, name, placed=placed)
    except ScenarioError as error:
        raise ScenarioError(str(error), where=", ".join(map(str, sources))) from error
    complain(told(conversion), "kubescene: ")
    return conversion.scenario


def without_faults(scenario: JsonObject, source: Path) -> JsonObject:
    """A Scenario that can be converted whole; raises its first fault as a `ScenarioError`."""
    identified = check_identity(scenario, str(source))
    folder = None if str(source) == STDIN else ScenarioFolder(source.parent)
    for fault in find_faults(identified, folder):
        raise ScenarioError(str(fault.error), where=str(source))
    return identified


def objects_of(source: Path) -> Iterator[Any]:
    if str(source) != STDIN:
        yield from read_manifests(source)
        return
    text = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise ScenarioError(f"more than {MAX_FILE_BYTES} bytes", where="<stdin>")
    check_text(text, "<stdin>")
    yield from flattened(load_yaml(text, "<stdin>"))


def is_scenario(obj: Any) -> bool:
    return isinstance(obj, dict) and (obj.get("apiVersion"), obj.get("kind")) == (
        SCENARIO.api_version,
        SCENARIO.kind,
    )


def told(conversion: Conversion) -> Iterator[str]:
    """What was kept and what was left out, for the one who asked."""
    operations = len(conversion.scenario["spec"]["operations"]) - 1
    created = "1 object is created" if operations == 1 else f"{operations} objects are created"
    yield f"{created}; statuses and what servers fill in are left out"
    for (kind, why), times in sorted(conversion.left_out.items()):
        yield f"left out: {times} x {kind} ({why})"
