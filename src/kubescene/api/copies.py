"""Values of one's own.

What the world holds is read-only and shared by identity: decoded objects, encoded parts. Whoever
hands something over from outside may go on changing it, so it is copied at the door, unless the
writer has promised not to (`Blueprint`).
"""

from typing import Any, NamedTuple

import orjson

from kubescene.api.text.reading import MAX_DEPTH
from kubescene.errors import BadRequestError

_COPIED = (dict, list)
_MOST_LEVELS = 254
"""How deep orjson goes: whoever has fewer to spare is put into as many lists."""
_AROUND = _MOST_LEVELS - MAX_DEPTH


class JsonCopy(NamedTuple):
    """A copy that shares nothing with the original, and its text."""

    value: Any
    text: bytes


def json_copy(original: Any, *, values: int) -> JsonCopy | None:
    """What a value is after it was written down and read again, if that is the same.

    Else it is None: then it is not JSON (a tuple, a NaN, a date), deeper than `MAX_DEPTH`, or might
    have more than so many ``values``. Whoever walks through it will see.
    """
    wrapped = original
    for _ in range(_AROUND):
        wrapped = [wrapped]
    try:
        text = orjson.dumps(wrapped)[_AROUND:-_AROUND]
    except orjson.JSONEncodeError:
        return None
    # No value takes less than a character.
    if len(text) > values:
        return None
    copy = orjson.loads(text)
    return JsonCopy(copy, text) if copy == original else None


def own_copy(value: Any) -> Any:
    """A copy that shares no dict or list with ``value``."""
    try:
        return _copied(value)
    except RecursionError:
        raise BadRequestError("the object is nested too deeply") from None


def _copied(value: Any) -> Any:
    # Loops rather than comprehensions: half the depth of the stack, and no slower. Most parts are
    # neither dict nor list, and need no call of their own.
    if isinstance(value, dict):
        members = {}
        for name, part in value.items():
            members[name] = _copied(part) if isinstance(part, _COPIED) else part
        return members
    if isinstance(value, list):
        items = []
        for part in value:
            items.append(_copied(part) if isinstance(part, _COPIED) else part)  # noqa: PERF401
        return items
    return value
