"""Reading a scenario file: safe YAML, bounded, and errors that name the line; and writing one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubescene.api.kinds import SCENARIO
from kubescene.errors import ScenarioError
from kubescene.types import JsonObject

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 200
MAX_VALUES = 50_000_000
"""How many values a document may hold, counting what an alias repeats every time."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeyLoader(_Loader):  # type: ignore[misc]  # chosen at run time
    """Refuses duplicate keys, which YAML would let win silently."""

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


# Times stay text: Kubernetes reads them itself, and YAML's dates are not JSON. Numbers are those of
# kubectl's reader: 1e-7 is one, and 12:30 is text rather than minutes in base sixty.
_INT, _FLOAT, _TIMESTAMP = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))
_UniqueKeyLoader.yaml_implicit_resolvers = {
    first: [pair for pair in resolvers if pair[0] not in (_INT, _FLOAT, _TIMESTAMP)]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_BREAKS = re.compile("[\\r\\x85\\u2028\\u2029]")
"""Line breaks to YAML, letters to JSON."""

_NUMBERS = (
    (
        _INT,
        re.compile(
            r"[-+]?(?:0b[01][01_]*|0x[\da-fA-F][\da-fA-F_]*|0(?:o?[0-7][0-7_]*)?|[1-9][\d_]*)$",
            re.ASCII,
        ),
        list("-+0123456789"),
    ),
    (
        _FLOAT,
        re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$", re.ASCII),
        list("-+.0123456789"),
    ),
)


class _QuotingDumper(yaml.SafeDumper):
    """Puts in quotes what some reader of YAML would not take for text."""

    def ignore_aliases(self, data: Any) -> bool:
        """Shared parts are written out: anchors make a file hard to read and to compare."""
        del data
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = '"' if _BREAKS.search(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _QuotingDumper.represent_text)

for _tag, _pattern, _first in _NUMBERS:
    _UniqueKeyLoader.add_implicit_resolver(_tag, _pattern, _first)
    _QuotingDumper.add_implicit_resolver(_tag, _pattern, _first)
_QuotingDumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))


def dump_yaml(value: Any) -> str:
    """Block-style YAML that every reader takes for the same JSON."""
    text = yaml.dump(value, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=100)
    assert isinstance(text, str)
    return text


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
    _JsonCheck(source).check(document)
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ScenarioError("metadata.name is missing", where=source)
    if not isinstance(document.get("spec") or {}, dict):
        raise ScenarioError("spec must be an object", where=source)
    return document


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Extent(NamedTuple):
    """How many values a value holds, itself included, and how deep they go."""

    values: int
    depth: int


_SCALAR = _Extent(1, 0)


class _JsonCheck:
    """Walks a document once, however often aliases repeat its parts."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known: dict[int, _Extent] = {}

    def check(self, document: Any) -> None:
        if (found := self._extent(document, "", 0).values) > MAX_VALUES:
            raise ScenarioError(
                f"aliases make {found} values of it, more than {MAX_VALUES}", where=self._source
            )

    def _extent(self, value: Any, path: str, depth: int) -> _Extent:
        if isinstance(value, dict | list):
            return self._container(value, path, depth)
        if not isinstance(value, str | int | float | bool | None):
            raise ScenarioError(
                f"{path} is a {type(value).__name__}, which JSON cannot hold", where=self._source
            )
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            raise ScenarioError(f"{path} is too large a number", where=self._source)
        if isinstance(value, str) and not value.isascii() and not is_unicode(value):
            raise ScenarioError(f"{path} is not valid Unicode", where=self._source)
        return _SCALAR

    def _container(self, value: Any, path: str, depth: int) -> _Extent:
        extent = self._known.get(id(value))
        if depth + (extent.depth if extent else 0) > MAX_DEPTH:
            raise ScenarioError(
                f"nested deeper than {MAX_DEPTH} levels at {path}", where=self._source
            )
        if extent is None:
            parts = [self._extent(*member, depth + 1) for member in self._members(value, path)]
            deepest = max((part.depth for part in parts), default=-1) + 1
            extent = _Extent(1 + sum(part.values for part in parts), deepest)
            self._known[id(value)] = extent
        return extent

    def _members(self, value: Any, path: str) -> Iterator[tuple[Any, str]]:
        if isinstance(value, list):
            yield from ((member, f"{path}[{index}]") for index, member in enumerate(value))
            return
        for key, member in value.items():
            if not isinstance(key, str):
                raise ScenarioError(
                    f"the key {key!r} under {path or 'the top'} is not text: put it in quotes",
                    where=self._source,
                )
            yield member, f"{path}.{key}" if path else key
