"""Measures of the user's own, named on the command line."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubescene.results.measures.own import OwnFunction


def measures_named(references: Sequence[str]) -> "list[OwnFunction]":
    """Functions by ``module:function``, also such that lie in the current directory."""
    if not references:
        return []
    # Nobody loads tables and measures who names none.
    from kubescene.results.measures.own import load_measure

    if "" not in sys.path:
        sys.path.insert(0, "")  # as with python -m
    return [load_measure(each) for each in references]
