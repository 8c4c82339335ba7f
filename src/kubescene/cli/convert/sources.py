"""``kubescene convert``: scenarios from drafts, manifests and cluster dumps."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kubescene.api import quantity
from kubescene.api.kinds import SCENARIO
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.cli.files import STDIN, complain
from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.runs.examination import remarks
from kubescene.scenario.conversion import Conversion, merged_form, scenario_from
from kubescene.scenario.reading.files import MAX_FILE_BYTES, check_identity, check_text, load_yaml
from kubescene.scenario.reading.object_files import ScenarioFolder, flattened, read_manifests
from kubescene.scenario.spec import normalised
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.types import JsonObject

LEAST_MEMORY = quantity.parse("1Mi")
SIZES = "such as 3x8cpu,32Gi or 2x16cpu,64Gi,nvidia.com/gpu=4"
PODS_OF_A_NODE = "110"
MOST_NODES = 100_000


def convert_files(
    sources: Sequence[Path],
    *,
    name: str,
    out: Path | None,
    placed: bool,
    nodes: list[str],
    known_only: bool,
) -> int:
    """Write a scenario to standard output, or to a file that is not there yet."""
    if out is not None and out.exists():
        raise ScenarioError("it exists: choose another --out, or remove it", where=str(out))
    more = node_operations(nodes)
    scenario = converted(sources, name=name, placed=placed, nodes=more, known_only=known_only)
    text = dump_yaml(scenario)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        complain([f"the scenario is in {out}"], "kubescene: ")
    return 0


def converted(
    sources: Sequence[Path],
    *,
    name: str,
    placed: bool,
    nodes: Sequence[JsonObject] = (),
    known_only: bool = False,
) -> JsonObject:
    objects = [obj for source in sources for obj in objects_of(source)]
    scenarios = [obj for obj in objects if is_scenario(obj)]
    if len(scenarios) == 1 == len(objects):
        if nodes:
            raise ScenarioError(
                "--nodes goes with manifests: a Scenario says itself which nodes there are",
                where=str(sources[0]),
            )
        return merged_form(without_faults(scenarios[0], sources[0]))
    if scenarios:
        raise ScenarioError("a Scenario is converted alone: name one file", where=str(sources[0]))
    if not objects:
        raise ScenarioError("there is no object to make a scenario of", where=str(sources[0]))
    try:
        conversion = scenario_from(objects, name, placed=placed, known_only=known_only)
    except ScenarioError as error:
        raise ScenarioError(str(error), where=", ".join(map(str, sources))) from error
    operations = conversion.scenario["spec"]["operations"]
    operations[:0] = nodes
    complain(told(conversion), "kubescene: ")
    complain(in_vain(conversion), "kubescene: warning: ")
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
    operations = conversion.scenario["spec"]["operations"][:-1]
    number = sum(each["createOperation"].get("count", 1) for each in operations)
    created = "1 object is created" if number == 1 else f"{number} objects are created"
    yield f"{created}; statuses and what servers fill in are left out"
    for (kind, why), times in sorted(conversion.left_out.items()):
        yield f"left out: {times} x {kind} ({why})"


def in_vain(conversion: Conversion) -> Iterator[str]:
    """What will not run as it does in a cluster, by name."""
    for kind, times in sorted(conversion.unknown.items()):
        yield (
            f"{times} x {kind}: nobody here knows the kind, and the run would stop there; give its "
            "CustomResourceDefinition as well, or leave such objects out by --skip-unknown"
        )
    if not conversion.kinds() & {"Node", "NodeSet"}:
        yield "there is no Node: no pod will find a place; add some, such as --nodes 3x8cpu,32Gi"
    options = ClusterOptions()
    spec = normalised(conversion.scenario, None)
    yield from remarks(
        conversion.scenario,
        spec,
        controllers=builtin_controllers(options),
        scheduler=options.scheduler,
    )


def node_operations(asked: list[str]) -> list[JsonObject]:
    """Operations that create these nodes; each kind of them has a name of its own."""
    names = ["node"] if len(asked) == 1 else [f"node-{letter}" for letter in "abcdefghijklmnop"]
    if len(asked) > len(names):
        raise ConfigurationError(f"--nodes is given more than {len(names)} times")
    return [creation_of_nodes(text, name) for text, name in zip(asked, names, strict=False)]


def creation_of_nodes(text: str, name: str) -> JsonObject:
    found = re.fullmatch(r"(\d{1,6})x(.+)", text)
    if found is None or not 0 < int(found[1]) <= MOST_NODES:
        raise ConfigurationError(f"--nodes {text!r} is no number of nodes and their size, {SIZES}")
    sizes = [offered(part, text) for part in found[2].split(",")]
    if len(dict(sizes)) < len(sizes):
        raise ConfigurationError(f"--nodes {text!r} has a resource twice, not sizes {SIZES}")
    offers = {"pods": PODS_OF_A_NODE, **dict(sizes)}
    named = f"{name}-$(INDEX)"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": named, "labels": {"kubernetes.io/hostname": named}},
        "status": {"capacity": offers, "allocatable": dict(offers)},
    }
    return {"step": 1, "createOperation": {"object": node, "count": int(found[1])}}


def offered(part: str, text: str) -> tuple[str, str]:
    """``8cpu``, ``32Gi`` (memory), or any other resource as ``NAME=AMOUNT``."""
    name, equals, amount = part.partition("=")
    if not equals:
        name, amount = ("cpu", part[:-3]) if part.endswith("cpu") else ("memory", part)
    try:
        amounts = quantity.parse(amount)
    except ValueError as error:
        raise ConfigurationError(f"--nodes {text!r}: {part!r} is no size, {SIZES}") from error
    if amount == part and amounts < LEAST_MEMORY:
        # Nobody means a memory of 8 bytes.
        raise ConfigurationError(f"--nodes {text!r}: {part!r} of what? Say it {SIZES}")
    return name, amount
