"""Events of one form: what a component says again and again about one object after the other.

Such Events differ in their name, in what they are about, in their message and in the instant. The
registry checks the first of a form and makes the others like it; see `api.records.templates`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kubescene.api.records.templates import Blueprint
from kubescene.bounded import BoundedDict
from kubescene.types import JsonObject, ReadOnlyObject

FORMS_KEPT = 256
_LONGEST_MESSAGE = 250
"""In characters, of which none takes more than four bytes; 1,024 bytes are allowed."""
_LONGEST_HOST = 120

_STORED_AS = {
    "eventTime": "eventTime",
    "firstTimestamp": "firstTimestamp",
    "involvedObject": "involvedObject",
    "lastTimestamp": "lastTimestamp",
    "message": "message",
    "note": "message",
    "regarding": "involvedObject",
    "reportingInstance": "reportingInstance",
    "source": "source",
}
"""What is each Event's own, and what it is called in the form that is stored."""


class EventForm(Blueprint):
    """An Event that others are like. They have a short message and are the first of their kind."""

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        body = self.body
        if obj.keys() != body.keys():
            return False
        for name, value in obj.items():
            if name in _FREE:
                continue
            rule, known = _RULES.get(name), body[name]
            if not (value == known if rule is None else rule(value, known)):
                return False
        return True

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        own = {_STORED_AS[name]: value for name, value in obj.items() if name in _STORED_AS}
        return {**stored, **own}


class EventForms:
    """The forms of one recorder, by what Events of one form have in common."""

    __slots__ = ("_forms",)

    def __init__(self) -> None:
        self._forms: BoundedDict[tuple[object, ...], EventForm] = BoundedDict(FORMS_KEPT)

    def of(self, event: JsonObject) -> EventForm | None:
        """The form that an Event has, or is the first to have; None if it is like no other."""
        if event.get("count", 1) > 1 or "series" in event or "related" in event:
            return None
        about = event.get("involvedObject") or event["regarding"]
        namespace = event["metadata"]["namespace"]
        key = (event["apiVersion"], namespace, event["reason"], event["type"], *about)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = EventForm(event)
        return form


def _is_short(one: Any, other: Any) -> bool:
    return len(str(one)) <= _LONGEST_MESSAGE


def _is_host(one: Any, other: Any) -> bool:
    return len(str(one)) <= _LONGEST_HOST and bool(one) is bool(other)


def _is_there(one: Any, other: Any) -> bool:
    """Whether two objects have the same members, and are in the same namespace."""
    return bool(one.keys() == other.keys() and one.get("namespace") == other.get("namespace"))


def _is_of(one: Any, other: Any) -> bool:
    """The same of the component that speaks."""
    return bool(one.keys() == other.keys() and one.get("component") == other.get("component"))


_RULES: Mapping[str, Callable[[Any, Any], bool]] = {
    "message": _is_short,
    "note": _is_short,
    "reportingInstance": _is_host,
    "metadata": _is_there,
    "involvedObject": _is_there,
    "regarding": _is_there,
    "source": _is_of,
}
"""When two Events are alike in what may differ; in all else they have to be the same."""
_FREE = frozenset(_STORED_AS.keys() - _RULES.keys())
