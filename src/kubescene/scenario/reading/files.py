"""Reading a scenario file: bounded, and with errors that name the line."""

from pathlib import Path
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.api.text.reading import Bounds, JsonCheck, ReadingError, read_json
from kubescene.api.text.whole_numbers import with_whole_numbers
from kubescene.errors import ScenarioError
from kubescene.scenario.fields.table import SCENARIO_FIELDS
from kubescene.scenario.validation.faults import misfits
from kubescene.types import JsonObject

MAX_FILE_BYTES = 256 * 1024 * 1024
BOUNDS = Bounds(aliased=10_000_000)
BLANKS_LOOKED_AT = 1024
MAX_VALUES = 50_000_000
"""How many values an object may hold, counting those that it shares every time."""


def load_yaml(text: str | bytes, source: str) -> list[Any]:
    """All documents of a YAML (or JSON) text; empty ones are dropped."""
    if (known := _as_json(text)) is not None:
        return known
    # Python's own objects need no YAML.
    from kubescene.api.text.yaml_text import read_yaml

    try:
        documents = read_yaml(text, BOUNDS)
    except ReadingError as error:
        raise _invalid(error.problem, source, error.line, error.column) from error
    for document in documents:
        for twice in document.duplicates:
            raise _invalid(
                f"the key {twice.key!r} is given twice", source, twice.line, twice.column
            )
    return [document.value for document in documents if document.value is not None]


def _as_json(text: str | bytes) -> list[Any] | None:
    """The one document of a text in JSON, which is read far sooner; None for all else.

    What is wrong with a text is YAML's to say: it knows the line.
    """
    brackets = (b"{", b"[") if isinstance(text, bytes) else ("{", "[")
    if not text[:BLANKS_LOOKED_AT].lstrip().startswith(brackets):  # type: ignore[arg-type]
        return None
    try:
        document = read_json(text, BOUNDS)
    except ReadingError:
        return None
    return None if document.duplicates else [document.value]


def _invalid(problem: str, source: str, line: int, column: int) -> ScenarioError:
    place = f"{source}:{line}:{column}" if line else source
    return ScenarioError(f"not valid YAML: {problem}", where=place)


def load_scenario(path: str | Path) -> JsonObject:
    """The one Scenario that a file holds, checked for its identity only."""
    return parse_scenario(read_file(path), str(path))


def read_file(path: str | Path) -> bytes:
    """The bytes of a file of bearable size; raises `ScenarioError`."""
    file = Path(path)
    try:
        size = file.stat().st_size
        if size <= MAX_FILE_BYTES:
            with file.open("rb") as opened:
                # Pipes and devices have no size, and perhaps no end.
                text = opened.read(MAX_FILE_BYTES + 1)
            if (size := len(text)) <= MAX_FILE_BYTES:
                return text
        raise ScenarioError(
            f"the file has {size} bytes or more, more than the {MAX_FILE_BYTES} that are read",
            where=str(file),
        )
    except FileNotFoundError:
        raise ScenarioError("there is no such file", where=str(file)) from None
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror}", where=str(file)) from error


def parse_scenario(text: bytes, source: str) -> JsonObject:
    """The one Scenario that a text holds, checked for its identity only."""
    check_text(text, source)
    documents = load_yaml(text, source)
    if not documents:
        raise ScenarioError("there is nothing in it: one Scenario is expected", where=source)
    if len(documents) != 1:
        raise ScenarioError(
            f"one Scenario is expected, found {len(documents)} documents", where=source
        )
    return identified(documents[0], source)


def check_text(text: bytes, source: str) -> None:
    """Refuse what is no text at all in one plain line; UTF-16 is text with its mark."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    try:
        if "\0" not in text.decode():
            return
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise ScenarioError("this is not text in UTF-8", where=f"{source}:{line}") from None
    raise ScenarioError("this is not a text file", where=source)


def check_identity(document: Any, source: str) -> JsonObject:
    """A Scenario by apiVersion, kind and name, with JSON-compatible content.

    Numbers without a fraction are whole, as they are in files and in a server.
    """
    scenario = identified(document, source)
    try:
        JsonCheck(BOUNDS, values=MAX_VALUES).check(document)
    except ReadingError as error:
        raise ScenarioError(error.problem, where=source) from error
    found: JsonObject = with_whole_numbers(scenario)
    return found


def identified(document: Any, source: str) -> JsonObject:
    """The document, if it says that it is a Scenario and which; raises `ScenarioError`."""
    if not isinstance(document, dict):
        raise ScenarioError("a Scenario must be an object", where=source)
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (SCENARIO.api_version, SCENARIO.kind):
        raise ScenarioError(
            f"expected apiVersion {SCENARIO.api_version} and kind {SCENARIO.kind}, "
            f"found {found[0]!r} and {found[1]!r}",
            where=source,
        )
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ScenarioError("metadata.name is missing", where=source)
    if not isinstance(document.get("spec") or {}, dict):
        raise ScenarioError("spec must be an object", where=source)
    for fault in misfits({**document, "spec": {}, "status": {}}, SCENARIO_FIELDS):
        raise ScenarioError(str(fault.error), where=source, path=fault.path)
    return document
