"""HTML out of Python values: what is text stays text, whatever it contains.

Names and messages come from users. `h` escapes every child that is not `Markup` itself, so an
element can only come from here::

    h("p", "bound to ", h("b", node), class_="fine")

Characters that turn or hide text (direction marks, controls) are shown by their number.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TypeAlias

VOID = frozenset({"br", "col", "hr", "link", "meta"})
ROWS_SHOWN = 20
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


class Markup(str):
    """HTML that is finished."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
Attribute: TypeAlias = "str | int | bool | None"


def visible(text: str) -> str:
    """The same text; what would turn or hide its letters is named instead."""
    return _DECEIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def text_of(child: Child) -> Markup:
    """A child of an element as HTML; None and nothing are the same."""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return Markup(escape(visible(child)))
    if child is None:
        return Markup()
    if isinstance(child, int):
        return Markup(f"{child:,}")
    return Markup("".join(map(text_of, child)))


def h(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element. ``class_`` is ``class``, other underscores are hyphens; None and False are left
    out, True is an attribute without a value.
    """
    told = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{told}>")
    return Markup(f"<{tag}{told}>{text_of(children)}</{tag}>")


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(visible(str(value)))}"'


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    numbers: Iterable[str] = (),
    **attributes: Attribute,
) -> Markup:
    """A table; the columns named in ``numbers`` are set to the right."""
    right = frozenset(numbers)
    classes = ["n" if column in right else None for column in columns]
    head = h(
        "tr",
        (h("th", name, scope="col", class_=c) for name, c in zip(columns, classes, strict=True)),
    )
    body = (
        h("tr", (h("td", cell, class_=c) for cell, c in zip(row, classes, strict=True)))
        for row in rows
    )
    return h("table", h("thead", head), h("tbody", body), **attributes)


def excerpt(
    columns: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    title: str = "",
    rest: str = "and more",
    numbers: Iterable[str] = (),
) -> Markup:
    """The first rows of a table for a notebook; ``rest`` says that there are more.

    Not more rows are read than needed to know that. Notebooks have style sheets of their own, so
    cells say themselves to which side they are set.
    """
    right = frozenset(numbers)
    sides = [f"text-align: {'right' if each in right else 'left'}" for each in columns]
    shown = list(islice(rows, ROWS_SHOWN + 1))
    head = h("tr", (h("th", each, style=side) for each, side in zip(columns, sides, strict=True)))
    body = (
        h("tr", (h("td", each, style=side) for each, side in zip(row, sides, strict=True)))
        for row in shown[:ROWS_SHOWN]
    )
    return h(
        "div",
        h("p", h("b", title)) if title else None,
        h("table", h("thead", head), h("tbody", body)),
        h("p", h("i", rest)) if len(shown) > ROWS_SHOWN else None,
        style="overflow-x: auto",
    )
