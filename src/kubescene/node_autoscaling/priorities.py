"""The configuration of the expander ``priority``: numbers, and patterns for the ids of groups.

What is wrong with it is told in the words of the real autoscaler, which reads YAML as JSON.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from kubescene.api.schemas.patterns import matches, problem
from kubescene.types import JsonObject

CONFIG_MAP = "cluster-autoscaler-priority-expander"
KEY = "priorities"
_UNREADABLE = "Can't parse YAML with priorities in the configmap: "
_DECODING = "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "


class Priorities(NamedTuple):
    """What the ids of groups have to look like for each priority."""

    patterns: Mapping[int, Sequence[str]]

    def of(self, group: str) -> list[int]:
        """The priorities that a group has, from the least."""
        return sorted(
            number
            for number, patterns in self.patterns.items()
            if any(matches(each, group) for each in patterns)
        )


def priorities_of(config_map: JsonObject) -> Priorities:
    """What a ConfigMap says; `ValueError` with a message if it says nothing usable."""
    text = (config_map.get("data") or {}).get(KEY)
    if text is None:
        wrong = f"Wrong configmap for priority expander, doesn't contain {KEY} key."
        raise ValueError(f"{wrong} Ignoring update.")
    try:
        return _parsed(text)
    except ValueError as error:
        wrong = f"Wrong configuration for priority expander: {error}."
        raise ValueError(f"{wrong} Ignoring update.") from None


def _parsed(text: str) -> Priorities:
    if not text:
        raise ValueError(
            f"priority configuration in {CONFIG_MAP} configmap is empty; "
            "please provide valid configuration"
        )
    try:
        config = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{_UNREADABLE}error converting YAML to JSON: yaml: {said}") from None
    if config is not None and not isinstance(config, dict):
        raise ValueError(f"{_UNREADABLE}{_mismatch(config, 'map[int][]string')}")
    patterns = _patterns(config or {})
    for number, texts in patterns.items():
        for each in texts:
            if why := problem(each):
                rule = f"priority {number} and rule {each}"
                raise ValueError(f"Can't compile regexp rule for {rule}: {why}")
    return Priorities(patterns)


def _patterns(config: Mapping[object, object]) -> dict[int, Sequence[str]]:
    """As Go reads JSON: keys in order, values before their keys; the first mistake is told."""
    patterns: dict[int, Sequence[str]] = {}
    for key, value in sorted(config.items(), key=lambda item: str(item[0])):
        if value is not None and not isinstance(value, list):
            raise ValueError(f"{_UNREADABLE}{_mismatch(value, '[]string')}")
        texts = [] if value is None else [_text(each) for each in value]
        if isinstance(key, bool) or not isinstance(key, int):
            shown = str(key).lower() if isinstance(key, bool) else key
            raise ValueError(f"{_UNREADABLE}{_DECODING}number {shown} into Go value of type int")
        patterns[key] = texts
    return patterns


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{_UNREADABLE}{_mismatch(value, 'string')}")
    return value


def _mismatch(value: object, wanted: str) -> str:
    kind = "number"
    if isinstance(value, bool):
        kind = "bool"
    elif isinstance(value, str):
        kind = "string"
    elif isinstance(value, list):
        kind = "array"
    elif isinstance(value, dict):
        kind = "object"
    return f"{_DECODING}{kind} into Go value of type {wanted}"


class _Loader(yaml.SafeLoader):
    """Reads `y` and `n` as truth values, as the YAML reader of Go does."""


def _truth(loader: Any, node: Any) -> bool:
    word = str(node.value).lower()
    return word in ("y", "yes", "true", "on")


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))
_Loader.add_constructor("tag:yaml.org,2002:bool", _truth)
