"""YAML that says no more than JSON could, built while its events go by.

Nearly all manifests are of that kind, and a dump of a cluster has millions of events. Whatever is
unusual (anchors, tags, keys that are not text or are given twice, values that are refused, faults
of the text) is left to `yaml_text`, which reads the text again and knows what to say.
"""

from collections.abc import Callable
from typing import Any

import yaml

from kubescene.api.text.reading import scalar_problem

UNUSUAL = object()
"""What a reader of scalars answers where a closer look is needed."""


def read_plain(text: str | bytes, loader: Any, *, depth: int, scalar: Callable[[str], Any]) -> Any:
    """The documents of a text, or `UNUSUAL`. ``scalar`` says what an unquoted word stands for."""
    builder = _Builder(depth, scalar)
    try:
        for event in yaml.parse(text, Loader=loader):
            if not builder.take(event):
                return UNUSUAL
    except (yaml.YAMLError, UnicodeError):
        return UNUSUAL
    return builder.documents


class _Builder:
    """Puts values together; ``take`` is false as soon as something is unusual."""

    def __init__(self, depth: int, scalar: Callable[[str], Any]) -> None:
        self.documents: list[Any] = []
        self._depth = depth
        self._scalar = scalar
        self._open: list[Any] = [self.documents]
        self._key: str | None = None
        """The key whose value comes next, if the innermost value is an object."""
        self._known: dict[str, str] = {}

    def take(self, event: Any) -> bool:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            return self._pass_scalar(event)
        if kind is yaml.MappingStartEvent:
            return self._enter(event, {})
        if kind is yaml.SequenceStartEvent:
            return self._enter(event, [])
        if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._open.pop()
            return True
        return kind is not yaml.AliasEvent

    def _pass_scalar(self, event: Any) -> bool:
        value = event.value
        if event.tag is not None or event.anchor is not None or scalar_problem(value):
            return False
        if event.implicit[0]:
            value = self._scalar(value)
        return value is not UNUSUAL and self._add(value)

    def _enter(self, event: Any, value: Any) -> bool:
        if event.tag is not None or event.anchor is not None or len(self._open) > self._depth:
            return False
        if type(self._open[-1]) is dict and self._key is None:
            return False
        self._add(value)
        self._open.append(value)
        return True

    def _add(self, value: Any) -> bool:
        """Put a value where it belongs; in an object, every other one is a key."""
        around = self._open[-1]
        if type(around) is list:
            around.append(value)
        elif self._key is None:
            if type(value) is not str or value in around:
                return False
            self._key = self._known.setdefault(value, value)
        else:
            around[self._key] = value
            self._key = None
        return True
