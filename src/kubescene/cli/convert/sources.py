"""``kubescene convert``: scenarios from drafts, manifests and cluster dumps."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kubescene.api import quantity
from kubescene.api.kinds import SCENARIO
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.cli.files import STDIN, complain
from kubescene.clock import SECOND
from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.durations import go_duration
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.histories.survey import survey
from kubescene.histories.table import reader_of as reader_of_history
from kubescene.runs.examination import remarks
from kubescene.scenario.conversion import (
    PODS_OF_A_NODE,
    Conversion,
    creation_of_nodes,
    merged_form,
    scenario_from,
)
from kubescene.scenario.reading.files import MAX_FILE_BYTES, check_identity, check_text, load_yaml
from kubescene.scenario.reading.object_files import ScenarioFolder, flattened, read_manifests
from kubescene.scenario.spec import normalised
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.snapshots.redaction import redacted
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces import conversion as traces
from kubescene.traces.trace import CPU, TracedNodes, offered_load
from kubescene.types import JsonObject
from kubescene.usage.courses import parse_amount

LEAST_MEMORY = quantity.parse("1Mi")
SIZES = "such as 3x8cpu,32Gi or 2x16cpu,64Gi,nvidia.com/gpu=4"
MOST_NODES = 100_000


def convert_files(
    sources: Sequence[Path],
    *,
    name: str,
    out: Path | None,
    placed: bool,
    nodes: list[str],
    known_only: bool,
    keep_values: bool = False,
) -> int:
    """Write a scenario to standard output, or to a file that is not there yet."""
    if out is not None and out.exists():
        raise ScenarioError("it exists: choose another --out, or remove it", where=str(out))
    trace = reader_for_trace(sources)
    if history := history_among(sources):
        if placed or nodes:
            raise ConfigurationError(
                "--placed and --nodes are for dumps and traces: a recording has its own nodes"
            )
        scenario = from_history(history, out, name)
    elif trace is not None:
        if placed:
            raise ConfigurationError("--placed is for dumps: the pods of a trace find their places")
        scenario = from_trace(trace, sources[0], nodes, name)
    else:
        scenario = converted(
            sources,
            name=name,
            placed=placed,
            nodes=[
                creation_of_nodes(name, offers, number)
                for name, number, offers in nodes_by_name(nodes)
            ],
            known_only=known_only,
            keep_values=keep_values,
        )
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
    keep_values: bool = False,
) -> JsonObject:
    objects = [obj for source in sources for obj in objects_of(source)]
    if any(is_traffic_run(obj) for obj in objects):
        return from_traffic_run(sources, objects, nodes)
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
    if not keep_values:
        objects = [redacted(obj) if isinstance(obj, dict) else obj for obj in objects]
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


def from_traffic_run(
    sources: Sequence[Path], objects: Sequence[Any], nodes: Sequence[JsonObject]
) -> JsonObject:
    """The same requests to real Pods."""
    if len(objects) > 1 or str(sources[0]) == STDIN:
        raise ScenarioError("a TrafficRun is converted alone: name its file", where=str(sources[0]))
    # Most conversions are of manifests.
    from kubescene.traffic.as_scenario import left_out, scenario_of
    from kubescene.traffic.spec.loading import load_run

    scenario = scenario_of(load_run(sources[0]), objects[0])
    complain(left_out(objects[0]), "kubescene: warning: ")
    if nodes:
        scenario["spec"]["operations"][:1] = nodes
    return scenario


def reader_for_trace(sources: Sequence[Path]) -> traces.TraceReader | None:
    """The reader that knows one of the files as a trace."""
    for source in sources:
        if str(source) != STDIN and source.is_file():
            found = traces.reader_of(SnapshotSource(source))
            if found is not None and len(sources) > 1:
                raise ScenarioError(
                    f"a trace ({found.name}) is converted alone; its nodes are given by --nodes",
                    where=str(source),
                )
            if found is not None:
                return found
    return None


def history_among(sources: Sequence[Path]) -> Path | None:
    """The one source, if it is a recording of a cluster."""
    found = [each for each in sources if str(each) != STDIN and each.is_file()]
    histories = [each for each in found if is_history(each)]
    if histories and len(sources) > 1:
        raise ScenarioError("a recording is converted alone", where=str(histories[0]))
    return histories[0] if histories else None


def is_history(source: Path) -> bool:
    """An export of KWOK may be a snapshot alone: manifests, which say what is to be created."""
    reader = reader_of_history(source)
    return reader is not None and (reader.name != "kwok" or survey(source).changes > 0)


def from_history(source: Path, out: Path | None, name: str) -> JsonObject:
    """A scenario that begins as the recording did, and replays it; the recording stays a file."""
    folder = Path() if out is None else out.parent
    try:
        file = source.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        raise ConfigurationError(
            f"the scenario reads {source} from its own folder: write it beside it by --out"
        ) from None
    found = survey(source)
    complain(
        [
            f"{found.objects:,} objects, then {found.changes:,} changes in "
            f"{go_duration(found.length)}",
            *found.remarks,
            *(f"left out: {times} x {why}" for why, times in sorted(found.left_out.items())),
        ],
        "kubescene: ",
    )
    length = max(-(-found.length // SECOND), 1)
    simulation = {"simulation": {"snapshot": file}} if found.objects else {}
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": name},
        "spec": {
            **simulation,
            "operations": [
                {"id": "recorded", "step": 1, "replayOperation": {"file": file}},
                {"step": 1, "advanceOperation": {"duration": f"{length}s"}},
                {"step": 2, "doneOperation": {}},
            ],
        },
    }


def from_trace(
    reader: traces.TraceReader, source: Path, nodes: Sequence[str], name: str
) -> JsonObject:
    """Pods that arrive; ``nodes`` are sizes as in `nodes_by_name`, or one file of the trace."""
    files = [each for each in nodes if Path(each).is_file()]
    needed = f"a trace ({reader.name}) needs nodes: --nodes with its file of them, or {SIZES}"
    if files and len(nodes) > 1:
        raise ConfigurationError(needed)
    listed = SnapshotSource(Path(files[0])) if files else None
    trace = reader.read(SnapshotSource(source), listed)
    if not nodes and not trace.nodes:
        raise ConfigurationError(needed)
    if nodes and listed is None:
        trace.nodes = [
            TracedNodes(kind, number, amounts_of(offers))
            for kind, number, offers in nodes_by_name(nodes)
        ]
    number = sum(each.number for each in trace.nodes)
    complain([f"{len(trace.pods)} pods arrive at {number} nodes"], "kubescene: ")
    left = sorted(trace.left_out.items())
    complain([f"left out: {times} pods ({why})" for why, times in left], "kubescene: ")
    complain([*offered_load(trace), *trace.remarks], "kubescene: ")
    return traces.scenario_of(trace, name)


def amounts_of(offers: Mapping[str, str]) -> dict[str, int]:
    """As `TracedNodes` have them."""
    return {
        resource: parse_amount(amount) // (1 if resource == CPU else 1000)
        for resource, amount in offers.items()
        if resource != "pods"
    }


def is_traffic_run(obj: Any) -> bool:
    return isinstance(obj, dict) and obj.get("kind") == "TrafficRun"


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
    for kind, times in sorted(conversion.orphans.items()):
        pods = "1 x Pod of a" if times == 1 else f"{times} x Pod of"
        yield f"{pods} {kind} that is not in it: nobody makes it again"
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


def nodes_by_name(asked: Sequence[str]) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Of each kind of nodes a name of its own, how many there are, and what they offer."""
    names = ["node"] if len(asked) == 1 else [f"node-{letter}" for letter in "abcdefghijklmnop"]
    if len(asked) > len(names):
        raise ConfigurationError(f"--nodes is given more than {len(names)} times")
    for text, name in zip(asked, names, strict=False):
        number, offers = size_of_nodes(text)
        yield name, number, offers


def size_of_nodes(text: str) -> tuple[int, dict[str, str]]:
    """How many nodes ``3x8cpu,32Gi`` are, and what each of them offers."""
    found = re.fullmatch(r"(\d{1,6})x(.+)", text)
    if found is None or not 0 < int(found[1]) <= MOST_NODES:
        raise ConfigurationError(f"--nodes {text!r} is no number of nodes and their size, {SIZES}")
    sizes = [offered(part, text) for part in found[2].split(",")]
    if len(dict(sizes)) < len(sizes):
        raise ConfigurationError(f"--nodes {text!r} has a resource twice, not sizes {SIZES}")
    return int(found[1]), {"pods": PODS_OF_A_NODE, **dict(sizes)}


def offered(part: str, text: str, *, option: str = "--nodes") -> tuple[str, str]:
    """``8cpu``, ``32Gi`` (memory), or any other resource as ``NAME=AMOUNT``."""
    name, equals, amount = part.partition("=")
    if not equals:
        name, amount = ("cpu", part[:-3]) if part.endswith("cpu") else ("memory", part)
    try:
        amounts = quantity.parse(amount)
    except ValueError as error:
        raise ConfigurationError(f"{option} {text!r}: {part!r} is no size, {SIZES}") from error
    if amount == part and amounts < LEAST_MEMORY:
        # Nobody means a memory of 8 bytes.
        raise ConfigurationError(f"{option} {text!r}: {part!r} of what? Say it {SIZES}")
    return name, amount
