"""A scenario that a program hands over: copied, since it may go on changing what it gave.

Of operations that are alike one is copied and looked at; the copies of the others share all but
names with it. Types and the order of members count, so whatever is wrong with one of them,
and not with the others, makes it unlike them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kubescene.api.copies import json_copy, own_copy
from kubescene.api.text.reading import is_unicode
from kubescene.api.text.whole_numbers import with_whole_numbers
from kubescene.scenario.reading.alike import SharedBody
from kubescene.scenario.reading.files import MAX_VALUES, check_identity, identified
from kubescene.scenario.reading.operation_list import OperationList, name_in
from kubescene.types import JsonObject


def taken_over(
    document: Any, source: str, *, alike: bool = True
) -> tuple[JsonObject, OperationList | None]:
    """A Scenario of our own, as `check_identity` wants it, and its operations if they are known.

    Those that are ``alike`` are copied once, unless that is not wanted.
    """
    taken = _taken(document) if alike and isinstance(document, dict) else None
    if taken is None:
        return check_identity(own_copy(document), source), None
    scenario, listed = taken
    return identified(scenario, source), listed


def _taken(document: JsonObject) -> tuple[JsonObject, OperationList] | None:
    """None if something is not plainly JSON, and has to be looked at more closely."""
    given = OperationList.of(document)
    sample = given.sampled(document)
    copy = json_copy(sample, values=MAX_VALUES - given.size)
    if copy is None or not is_unicode("".join(_texts(given))):
        return None
    scenario = with_whole_numbers(copy.value, copy.text)
    if not given.items:
        return scenario, OperationList.of(scenario)
    items = scenario["spec"][given.field] = [*_shared(given, iter(scenario["spec"][given.field]))]
    return scenario, replace(given, items=items, is_shared=True)


def _texts(given: OperationList) -> Iterator[str]:
    """What alike operations have of their own."""
    for item, shared in zip(given.items, given.shared_bodies, strict=True):
        if shared is not None:
            yield name_in(item)
            yield item.get("id", "")


def _shared(given: OperationList, copied: Iterator[Any]) -> Iterator[Any]:
    """All operations, from the copies of those that stand for others."""
    seen: set[SharedBody] = set()
    for item, shared in zip(given.items, given.shared_bodies, strict=True):
        if shared is None:
            yield next(copied)
        elif shared in seen:
            yield {**item, "createOperation": {"object": shared.named(name_in(item))}}
        else:
            seen.add(shared)
            first = next(copied)
            shared.body = first["createOperation"]["object"]
            yield first
