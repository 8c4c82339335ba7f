"""Reading a TrafficRun: strict, with every fault naming its field.

A file holds one object ``kind: TrafficRun``. Single fields can be set from outside
(``--set spec.replicas.initial=3``) before it is checked: values are read as YAML, items of lists
are counted from 0 (``autoscalers.0`` or ``autoscalers[0]``), and a path that leads nowhere is a
fault like any other.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kubescene.api.text.positions import Places
from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.errors import TrafficError
from kubescene.traffic.spec.checks import check
from kubescene.traffic.spec.fields import API_VERSION, KIND, TrafficRun, TrafficSpec
from kubescene.traffic.spec.hints import field_hint, word_hint
from kubescene.traffic.spec.units import decode, decode_lenient, encode, plain
from kubescene.types import JsonObject

MAX_FILE_BYTES = 16 * 1024 * 1024
T = TypeVar("T")
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_NO_WORD = re.compile(r"Invalid enum value '(?P<word>.*)'")
_NO_TYPE = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")
_KINDS = {
    "int": "a whole number",
    "float": "a finite number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}
_ITEM = re.compile(r"\[(\d+)\]")
"""An item of a list as messages write it; ``.0`` is the same."""


def load_run(path: str | Path, settings: Iterable[str] = ()) -> TrafficRun:
    """The TrafficRun of a file, with ``path=value`` settings; raises `TrafficError`."""
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise TrafficError(f"it has {size} bytes, more than {MAX_FILE_BYTES}", source=str(file))
        text = file.read_bytes()
    except FileNotFoundError:
        raise TrafficError("there is no such file", source=str(file)) from None
    except OSError as error:
        raise TrafficError(f"cannot be read: {error.strerror}", source=str(file)) from error
    return parse_run(text, str(file), settings)


def parse_run(text: str | bytes, source: str, settings: Iterable[str] = ()) -> TrafficRun:
    """The TrafficRun of a text."""
    document, settings = _document(text, source), list(settings)
    for setting in settings:
        _set(document, setting)
    try:
        return run_of(document)
    except TrafficError as error:
        raise error.of(place_of(error.path, text, source, settings)) from error


def place_of(path: str, text: str | bytes, source: str, settings: Iterable[str] = ()) -> str:
    """``FILE:LINE:COLUMN`` of a field, or of the deepest part on the way to it that is there.

    A field that was set from outside, or has parts that were, stands in no file.
    """
    steps = _steps(path)
    for setting in settings:
        outside = _steps(setting.partition("=")[0])
        common = min(len(steps), len(outside))
        if steps[:common] == outside[:common]:
            return source
    data = text.encode() if isinstance(text, str) else text
    return Places(data).name(source, tuple(steps))


def _steps(path: str) -> list[str | int]:
    parts = (each for each in _ITEM.sub(r".\1", path).split(".") if each)
    return [int(each) if each.isdecimal() else each for each in parts]


def run_of(document: Mapping[str, Any]) -> TrafficRun:
    """A TrafficRun of a decoded object, checked in every field."""
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (API_VERSION, KIND):
        raise TrafficError(
            f"expected apiVersion {API_VERSION} and kind {KIND}, "
            f"found {found[0]!r} and {found[1]!r}"
            + ("; to play it: kubescene run" if found[1] == "Scenario" else "")
        )
    run = _converted(document, TrafficRun, "")
    if not run.metadata.name:
        raise TrafficError("must not be empty", path="metadata.name")
    check(run.spec)
    return run


def spec_of(document: Mapping[str, Any]) -> TrafficSpec:
    """A spec of a decoded object, checked in every field."""
    spec = _converted(document, TrafficSpec, "spec")
    check(spec)
    return spec


def checked(run: TrafficRun) -> TrafficRun:
    """A run that was made in Python: plain integers and words become what they stand for."""
    try:
        written = msgspec.to_builtins(run, enc_hook=plain)
        sound = msgspec.convert(written, TrafficRun, dec_hook=decode_lenient)
    except msgspec.ValidationError as error:
        raise _fault(error, TrafficRun, "") from error
    check(sound.spec)
    return sound


def to_object(value: TrafficRun | TrafficSpec) -> JsonObject:
    """A run or spec as it stands in a file, every field written out; absent ones are left out."""
    written: JsonObject = msgspec.to_builtins(value, enc_hook=encode)
    pruned: JsonObject = _without_nulls(written)
    return pruned


def _document(text: str | bytes, source: str) -> JsonObject:
    try:
        documents = [each for each in read_yaml(text, Bounds()) if each.value is not None]
    except ReadingError as error:
        place = f"{source}:{error.line}:{error.column}" if error.line else source
        raise TrafficError(f"not valid YAML: {error.problem}", source=place) from error
    if len(documents) != 1:
        raise TrafficError(
            f"one TrafficRun is expected, found {len(documents)} documents", source=source
        )
    for twice in documents[0].duplicates:
        place = f"{source}:{twice.line}:{twice.column}"
        raise TrafficError(f"the key {twice.key!r} is given twice", source=place)
    value = documents[0].value
    if not isinstance(value, dict):
        raise TrafficError("a TrafficRun must be an object", source=source)
    return value


def _converted(document: Mapping[str, Any], kind: type[T], prefix: str) -> T:
    try:
        return msgspec.convert(document, kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise _fault(error, kind, prefix) from error


def _set(document: JsonObject, setting: str) -> None:
    path, equals, text = setting.partition("=")
    steps = [step for step in _ITEM.sub(r".\1", path).split(".") if step]
    if not equals or not steps:
        raise TrafficError(f"{setting!r} must be written as path=value", source="--set")
    try:
        values = read_yaml(text, Bounds())
    except ReadingError as error:
        raise TrafficError(f"{setting!r}: {error.problem}", source="--set") from error
    here: Any = document
    for step in steps[:-1]:
        here = _member(here, step, setting)
    _assign(here, steps[-1], values[0].value if values else "", setting)


def _member(here: Any, step: str, setting: str) -> Any:
    if isinstance(here, dict):
        return here.setdefault(step, {})
    if isinstance(here, list) and step.isdecimal() and int(step) < len(here):
        return here[int(step)]
    raise TrafficError(f"{setting!r}: there is no {step!r} on that way", source="--set")


def _assign(here: Any, step: str, value: Any, setting: str) -> None:
    if isinstance(here, dict):
        here[step] = value
    elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
        here[int(step)] = value
    else:
        raise TrafficError(f"{setting!r}: there is no {step!r} on that way", source="--set")


def _fault(error: msgspec.ValidationError, kind: type, prefix: str) -> TrafficError:
    """What msgspec says, in our words and with the way to the field."""
    found = _PLACE.match(str(error))
    assert found is not None
    what, path = found["what"], (found["path"] or "").replace("[...]", "[]")
    if unknown := _UNKNOWN.match(what):
        name = unknown["name"]
        what = _hinted("there is no such field", field_hint(kind, path, name))
        path = ".".join(filter(None, (path, name)))
    elif wrong := _NO_TYPE.match(what):
        what = f"must be {_wanted(wrong['wanted'])}, not {_got(wrong['got'])}"
    elif word := _NO_WORD.match(what):
        what = _hinted(what, word_hint(kind, path, word["word"]))
    return TrafficError(what, path=".".join(filter(None, (prefix, path))))


def _wanted(kinds: str) -> str:
    return " or ".join(_KINDS.get(each, each) for each in kinds.split(" | ") if each != "null")


def _got(kind: str) -> str:
    return "a fraction" if kind == "float" else _KINDS.get(kind, kind)


def _hinted(what: str, hint: str) -> str:
    return f"{what}: {hint}" if hint else what


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
