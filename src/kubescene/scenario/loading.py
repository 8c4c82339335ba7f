"""Reading a scenario file: safe YAML, bounded, and errors that name the line."""

from pathlib import Path
from typing import Any

import yaml

from kubescene.api.kinds import SCENARIO
from kubescene.errors import ScenarioError
from kubescene.types import JsonObject

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 200

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeyLoader(_Loader):  # type: ignore[misc]  # chosen at run time
    """Refuses duplicate keys, which YAML would let win silently, and aliases that multiply."""

    MAX_ALIASES = 1000

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > self.MAX_ALIASES:
                raise yaml.MarkedYAMLError(
                    problem=f"more than {self.MAX_ALIASES} aliases",
                    problem_mark=self.peek_event().start_mark,
                )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


# Times stay text: Kubernetes reads them itself, and YAML's dates are not JSON.
_UniqueKeyLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def load_yaml(text: str | bytes, source: str) -> list[Any]:
    """All documents of a YAML (or JSON) text; empty ones are dropped."""
    try:
        documents = list(yaml.load_all(text, Loader=_UniqueKeyLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise ScenarioError(f"not valid YAML: {error.problem}", where=place) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ScenarioError(f"not valid YAML: {error}", where=source) from error
    return [document for document in documents if document is not None]


def load_scenario(path: str | Path) -> JsonObject:
    """The one Scenario that a file holds, checked for its identity only."""
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ScenarioError(
                f"the file has {size} bytes, more than the {MAX_FILE_BYTES} that are read",
                where=str(file),
            )
        documents = load_yaml(file.read_bytes(), str(file))
    except FileNotFoundError:
        raise ScenarioError("there is no such file", where=str(file)) from None
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror}", where=str(file)) from error
    if len(documents) != 1:
        raise ScenarioError(
            f"one Scenario is expected, found {len(documents)} documents", where=str(file)
        )
    return check_identity(documents[0], str(file))


def check_identity(document: Any, source: str) -> JsonObject:
    """A Scenario by apiVersion, kind and name, with JSON-compatible content."""
    if not isinstance(document, dict):
        raise ScenarioError("a Scenario must be an object", where=source)
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (SCENARIO.api_version, SCENARIO.kind):
        raise ScenarioError(
            f"expected apiVersion {SCENARIO.api_version} and kind {SCENARIO.kind}, "
            f"found {found[0]!r} and {found[1]!r}",
            where=source,
        )
    _check_json(document, source, "", 0)
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ScenarioError("metadata.name is missing", where=source)
    return document


def _check_json(value: Any, source: str, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ScenarioError(f"nested deeper than {MAX_DEPTH} levels at {path}", where=source)
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                raise ScenarioError(
                    f"the key {key!r} under {path or 'the top'} is not text: put it in quotes",
                    where=source,
                )
            _check_json(member, source, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _check_json(member, source, f"{path}[{index}]", depth + 1)
    elif not isinstance(value, str | int | float | bool | None):
        raise ScenarioError(
            f"{path} is a {type(value).__name__}, which JSON cannot hold", where=source
        )
