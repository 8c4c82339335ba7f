"""No module imports itself by way of others, those imports counted that only types need or that
happen in a function."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import kubescene

SOURCE = Path(kubescene.__file__).parent

IMPORT = re.compile(r"^ *from (kubescene[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
NAME = re.compile(r"(?<!as )\b(?!as\b)\w+")

DOORS = {
    # What people look for on a value is made above it (design note 0001).
    ("results.comparison.values", "results.notebooks"),
    ("results.explaining", "results.notebooks"),
    ("results.summary", "results.notebooks"),
    ("results.tables", "results.notebooks"),
    ("snapshots.snapshot", "what_if.asking"),
    ("traffic.results", "reports.html.traffic"),
    ("traffic.results", "results.notebooks"),
    ("traffic.results", "results.traffic_tables"),
    ("experiments.results", "experiments.display"),
    ("results.sources", "results.measures"),
    ("results.sources", "results.measures.own"),
    ("results.sources", "results.tables"),
    # Which kind it is depends on what is opened or asked for.
    ("timeline.log", "timeline.files"),
}
"""Imports that lead back, and may."""


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph() -> dict[str, list[str]]:
    texts = {name_of(path): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    return {name: list(targets(name, texts)) for name in texts}


def targets(name: str, texts: Mapping[str, str]) -> dict[str, None]:
    """The modules that one imports, wherever in its text."""
    found: dict[str, None] = {}
    for module, taken in IMPORT.findall(texts[name]):
        package = module.removeprefix("kubescene").removeprefix(".")
        for word in NAME.findall(taken):
            inner = f"{package}.{word}".removeprefix(".")
            found[inner if inner in texts else package] = None
    found.pop(name, None)
    return found


def cycle_in(graph: Mapping[str, list[str]]) -> list[str]:
    """The modules of one cycle in their order; none if there is none."""
    done: set[str] = set()
    for start in graph:
        way: dict[str, Iterator[str]] = {}
        if start not in done:
            way[start] = iter(graph[start])
        while way:
            here = next(reversed(way))
            following = next(way[here], None)
            if following is None:
                done.add(here)
                del way[here]
            elif following in way:
                passed = list(way)
                return [*passed[passed.index(following) :], following]
            elif following not in done:
                way[following] = iter(graph[following])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = import_graph()
    for source, target in DOORS:
        graph[source].remove(target)
    assert cycle_in(graph) == []


def test_each_door_leads_back() -> None:
    """One that does not is no exception any more."""
    graph = import_graph()
    for source, target in DOORS:
        graph[source].remove(target)
    for source, target in sorted(DOORS):
        graph[source].append(target)
        assert cycle_in(graph), f"{source} may import {target} as everybody may"
        graph[source].remove(target)
