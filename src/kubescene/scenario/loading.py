"""Reading a scenario file: bounded, and with errors that name the line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubescene.api.kinds import SCENARIO
from kubescene.api.yaml_text import MAX_DEPTH, parse_documents
from kubescene.errors import ScenarioError
from kubescene.types import JsonObject

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_VALUES = 50_000_000
"""How many values a document may hold, counting what an alias repeats every time."""


def load_yaml(text: str | bytes, source: str) -> list[Any]:
    """All documents of a YAML (or JSON) text; empty ones are dropped."""
    try:
        documents = parse_documents(text)
    except yaml.MarkedYAMLError as error:
        raise _invalid(f"{error.problem}", error.problem_mark, source) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ScenarioError(f"not valid YAML: {error}", where=source) from error
    for document in documents:
        for duplicate in document.duplicates:
            raise _invalid(f"the key {duplicate.key!r} is given twice", duplicate.mark, source)
    return [document.value for document in documents if document.value is not None]


def _invalid(problem: str, mark: Any, source: str) -> ScenarioError:
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    return ScenarioError(f"not valid YAML: {problem}", where=place)


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
