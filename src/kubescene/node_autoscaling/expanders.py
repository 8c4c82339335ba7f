"""Expanders: which option is taken. Each keeps its best; the first that is left is chosen."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kubescene.errors import ConfigurationError
from kubescene.node_autoscaling.estimation import Option

Expander: TypeAlias = Callable[[Sequence[Option]], list[Option]]


def _least(options: Sequence[Option], score: Callable[[Option], float]) -> list[Option]:
    """All options that share the least score."""
    best = min((score(each) for each in options), default=0.0)
    return [each for each in options if score(each) == best]


def least_waste(options: Sequence[Option]) -> list[Option]:
    return _least(options, lambda each: sum(each.waste))


def most_pods(options: Sequence[Option]) -> list[Option]:
    return _least(options, lambda each: -len(each.pods))


def least_nodes(options: Sequence[Option]) -> list[Option]:
    return _least(options, lambda each: each.nodes)


EXPANDERS: Mapping[str, Expander] = {
    "least-nodes": least_nodes,
    "least-waste": least_waste,
    "most-pods": most_pods,
    "random": list,
}


def expander_chain(text: str) -> list[Expander]:
    """The expanders of the flag ``expander``, in order."""
    return [_named(name) for name in text.split(",")]


def _named(name: str) -> Expander:
    if name in EXPANDERS:
        return EXPANDERS[name]
    near = difflib.get_close_matches(name, EXPANDERS, 1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(EXPANDERS)}"
    raise ConfigurationError(f"expander: {name!r} is not known here{hint}")


def chosen(options: Sequence[Option], chain: Sequence[Expander]) -> Option | None:
    """What a chain chooses; the first one where upstream would draw lots."""
    left = [*options]
    for expander in chain:
        if len(left) > 1:
            left = expander(left)
    return left[0] if left else None
