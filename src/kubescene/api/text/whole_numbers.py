"""Numbers without a fraction are whole numbers, however they are written.

kube-apiserver takes ``1.0`` for an integer of a custom resource and stores ``1``: that is how Go's
JSON shows the number that it has read. kubectl does the same to what stands in a YAML file. A
built-in kind whose JSON says ``1.0`` is refused, by Go's types.
"""

import re
from typing import Any

import orjson

WHOLE = re.compile(rb"\.0(?![0-9a-zA-Z])")
"""A float without a fraction, as orjson writes it; perhaps one inside a text."""
LARGEST = 10**16
"""From here on a float is written with an exponent, and need not be exact."""


def whole(value: float) -> float:
    """The same number, as an int if it is one."""
    return int(value) if value.is_integer() and abs(value) < LARGEST else value


def with_whole_numbers(value: Any, text: bytes = b"") -> Any:
    """A JSON value in which they are; the same value if nothing is to be changed.

    ``text`` is its encoding, if somebody has it.
    """
    # Hardly any object has a float: one look at its encoding saves a walk through it.
    if text:
        return _walked(value) if b".0" in text else value
    own = orjson.dumps(value)
    # A hundred thousand times such as 36.04s are no floats either.
    return _walked(value) if b".0" in own and WHOLE.search(own) else value


def _walked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _walked(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_walked(part) for part in value]
    return whole(value) if isinstance(value, float) else value
