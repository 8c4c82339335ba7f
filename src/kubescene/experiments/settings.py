"""Settings: fields of scenarios that take several values in turn.

``spec.operations.1.createOperation.count=10,20`` as the command line writes it. Between the commas
stand YAML values, as in a list within brackets. An item of a list is named by its place, or by its
``id`` or ``name``: ``spec.operations.load.createOperation.count``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import orjson

from kubescene.api.text.reading import ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

SEED_PATH = "spec.simulation.seed"


class Setting(NamedTuple):
    """A field and the value that it gets."""

    path: str
    value: Any

    def __str__(self) -> str:
        text = self.value if isinstance(self.value, str) else orjson.dumps(self.value).decode()
        return f"{self.path}={text}"


def parse_settings(texts: Iterable[str]) -> dict[str, list[Any]]:
    """The values by path of ``path=value,value`` texts."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        path, equals, values = text.partition("=")
        if not equals or not path or not values:
            raise ConfigurationError(f"--set {text!r} must be written as path=value,value")
        if path in found:
            raise ConfigurationError(
                f"--set {path} is given twice: name all its values at once, as in {path}=1,2"
            )
        found[path] = _values(text, values)
    return found


def _values(text: str, values: str) -> list[Any]:
    try:
        (document,) = read_yaml(f"[{values}]")
    except (ReadingError, ValueError) as error:
        raise ConfigurationError(f"--set {text!r}: {error}") from error
    listed = document.value
    if not isinstance(listed, list) or not listed:
        raise ConfigurationError(f"--set {text!r} has no values")
    return listed


def combined(settings: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Setting, ...]]:
    """Every choice of one value per path; no path is one choice."""
    for path, values in settings.items():
        _check(path, values)
    for chosen in product(*settings.values()):
        yield tuple(map(Setting, settings, chosen))


def _check(path: str, values: Sequence[Any]) -> None:
    if path == SEED_PATH:
        raise ConfigurationError(f"{path} is not a setting here: use --seed or --seeds")
    if isinstance(values, str | bytes) or not values:
        raise ConfigurationError(f"the setting {path} needs a list of values")
    written = [str(Setting(path, value)) for value in values]
    if twice := [each for each in written if written.count(each) > 1]:
        raise ConfigurationError(f"the setting {twice[0]} is given twice")


def with_settings(scenario: JsonObject, settings: Iterable[Setting]) -> JsonObject:
    """A copy of the scenario with these fields set."""
    changed = deepcopy(scenario)
    for setting in settings:
        *way, last = setting.path.split(".")
        here: Any = changed
        for step in way:
            here = _inner(here, step, setting)
        _assign(here, last, setting)
    return changed


def _inner(here: Any, step: str, setting: Setting) -> Any:
    if isinstance(here, dict):
        return here.setdefault(step, {})
    return _item(here, step, setting)


def _item(here: Any, step: str, setting: Setting) -> Any:
    return here[_place(here, step, setting)]


def _place(here: Any, step: str, setting: Setting) -> int:
    """Where an item of a list is that is named by its place, or by its id or name."""
    if isinstance(here, list):
        if step.isdecimal() and int(step) < len(here):
            return int(step)
        for place, each in enumerate(here):
            if isinstance(each, dict) and step in (each.get("id"), each.get("name")):
                return place
    raise ConfigurationError(f"--set {setting}: {_nothing(here, step)}")


def _assign(here: Any, step: str, setting: Setting) -> None:
    if isinstance(here, dict):
        here[step] = setting.value
        return
    here[_place(here, step, setting)] = setting.value


def _nothing(here: Any, step: str) -> str:
    if isinstance(here, list):
        return (
            f"there are {len(here)} items, counted from 0, and {step!r} is none of them, "
            "nor the id or name of one"
        )
    return f"there is no {step!r} on that way"
