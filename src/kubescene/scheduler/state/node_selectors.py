"""Node selectors over many nodes at once: each requirement is one operation on a label column."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubescene.api.selectors import NodeSelector, NodeSelectorTerm, Operator, Requirement
from kubescene.scheduler.state.node_columns import ABSENT
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_types import Rows

Mask: TypeAlias = NDArray[np.bool_]

_NAME_FIELD = "metadata.name"


def select(selector: NodeSelector, nodes: NodeTable, rows: Rows) -> Mask:
    """Which rows match at least one term."""
    mask = np.zeros(rows.size, dtype=np.bool_)
    for term in selector.terms:
        mask |= select_term(term, nodes, rows)
    return mask


def select_term(term: NodeSelectorTerm, nodes: NodeTable, rows: Rows) -> Mask:
    """Which rows match all requirements of the term."""
    if term.never_matches:
        return np.zeros(rows.size, dtype=np.bool_)
    mask = np.ones(rows.size, dtype=np.bool_)
    for requirement in term.expressions:
        mask &= select_label(requirement, nodes, rows)
    for requirement in term.fields:
        mask &= select_field(requirement, nodes, rows)
    return mask


def select_label(requirement: Requirement, nodes: NodeTable, rows: Rows) -> Mask:
    column = nodes.label(requirement.key)
    ids = column.ids.take(rows)
    absent: Mask = ids == ABSENT
    if requirement.operator is Operator.EXISTS:
        return ~absent
    if requirement.operator is Operator.DOES_NOT_EXIST:
        return absent
    if requirement.operator in (Operator.IN, Operator.NOT_IN):
        numbers = [column.numbers[text] for text in requirement.values if text in column.numbers]
        found = _any_of(ids, numbers)
        return found if requirement.operator is Operator.IN else ~found
    # Numbers are compared value by value; the last entry answers for nodes without the label.
    key = requirement.key
    answers = [requirement.matches({key: text}) for text in column.values] + [False]
    return np.array(answers, dtype=np.bool_).take(ids, mode="wrap")


def select_field(requirement: Requirement, nodes: NodeTable, rows: Rows) -> Mask:
    """Nodes have one field to select by, their name; any other one is empty."""
    wanted = requirement.operator is Operator.IN
    if requirement.key != _NAME_FIELD:
        return np.full(rows.size, ("" in requirement.values) == wanted, dtype=np.bool_)
    named = [row for name in requirement.values if (row := nodes.row_of(name)) is not None]
    found = _any_of(rows, named)
    return found if wanted else ~found


def _any_of(ids: NDArray[np.intp], numbers: list[int]) -> Mask:
    if not numbers:
        return np.zeros(ids.size, dtype=np.bool_)
    mask: Mask = ids == numbers[0]
    for number in numbers[1:]:
        mask |= ids == number
    return mask
