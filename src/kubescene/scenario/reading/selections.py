"""How operations say which objects they mean, where it is not by name."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from kubescene.api.selectors import LabelSelector, from_label_selector


def selector_of(given: Mapping[str, Any]) -> LabelSelector:
    """The labels that are meant; an empty ``matchLabels`` is everything."""
    return from_label_selector({name: part for name, part in given.items() if part is not None})


def read_share(text: str) -> Fraction:
    """``25%`` as a fraction; raises ValueError in words."""
    number = text.removesuffix("%")
    try:
        share = Fraction(number) / 100 if text.endswith("%") and number.isascii() else None
    except (ValueError, ZeroDivisionError):
        share = None
    if share is None or not 0 < share <= 1:
        raise ValueError(f"must be a percentage above 0% and up to 100%, such as 25%, not {text!r}")
    return share
