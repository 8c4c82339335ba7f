"""Reading a TrafficRun: strict, with every fault naming its field.

A file holds one object ``kind: TrafficRun``. Single fields can be set from outside
(``--set spec.replicas.initial=3``) before it is checked: values are read as YAML, items of lists
are counted from 0 (``autoscalers.0`` or ``autoscalers[0]``), and a path that leads nowhere is a
fault like any other.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubescene.api.text.positions import Places
from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.errors import TrafficError
from kubescene.flows.reading import converted, fault_of
from kubescene.flows.units import decode_lenient, encode, plain
from kubescene.traffic.spec.checks import check
from kubescene.traffic.spec.fields import API_VERSION, KIND, TrafficRun, TrafficSpec
from kubescene.types import JsonObject

MAX_FILE_BYTES = 16 * 1024 * 1024
STDIN = "<stdin>"
"""What a file is called that is read from the standard input."""
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
        return run_of(document, source)
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


def run_of(document: Mapping[str, Any], source: str = "FILE") -> TrafficRun:
    """A TrafficRun of a decoded object, checked in every field; ``source`` is where it stands."""
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (API_VERSION, KIND):
        raise TrafficError(
            f"expected apiVersion {API_VERSION} and kind {KIND}, "
            f"found {found[0]!r} and {found[1]!r}"
            + (f"; to play it: kubescene run {named(source)}" if found[1] == "Scenario" else "")
        )
    run = converted(document, TrafficRun, "")
    if not run.metadata.name:
        raise TrafficError("must not be empty", path="metadata.name")
    check(run.spec)
    return run


def named(source: str) -> str:
    """A file as a command is given it."""
    return "-" if source == STDIN else shlex.quote(source)


def spec_of(document: Mapping[str, Any]) -> TrafficSpec:
    """A spec of a decoded object, checked in every field."""
    spec = converted(document, TrafficSpec, "spec")
    check(spec)
    return spec


def checked(run: TrafficRun) -> TrafficRun:
    """A run that was made in Python: plain integers and words become what they stand for."""
    try:
        written = msgspec.to_builtins(run, enc_hook=plain)
        sound = msgspec.convert(written, TrafficRun, dec_hook=decode_lenient)
    except msgspec.ValidationError as error:
        raise fault_of(error, TrafficRun, "") from error
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


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
