"""The text that a fact keeps of an attempt is the encoding of its result."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.instruments.attempts import Explanation, FilterGroup
from kubescene.instruments.score_columns import PackedScores, ScoreColumn, SharedScores
from kubescene.instruments.stretches import Stretches
from kubescene.timeline.schedule_results import encoded_result, result_of, schedule_result

NAMES = [f'n{n}-\u00e4"' for n in range(60)]
REASONS = {1: ("no cpu",), 2: ("no cpu", "no memory")}


def stretches(rows: list[int]) -> Stretches:
    bounds: list[int] = []
    for row in rows:
        if bounds and row == bounds[-1] + 1:
            bounds[-1] = row
        else:
            bounds += (row, row)
    return Stretches(bounds)


@st.composite
def explanations(draw: st.DrawFn) -> tuple[Explanation, Explanation, str]:
    """A search in few words and written out, and the node that it found, if the pod got it."""
    total = draw(st.sampled_from([1, 5, 16, 17, 18, 40, len(NAMES)]))
    start, size = draw(st.integers(0, total - 1)), draw(st.sampled_from([total, total // 2 + 1]))
    refused_at = draw(st.dictionaries(st.integers(0, size - 1), st.sampled_from([1, 2])))
    verdicts = [refused_at.get(place, 0) for place in range(size)]
    verdicts[draw(st.integers(0, size - 1))] = 0
    rows = [(start + place) % total for place in range(size)]
    feasible = [row for row, verdict in zip(rows, verdicts, strict=True) if not verdict]
    best = draw(st.sampled_from([0, len(feasible) // 2, len(feasible) - 1]))
    seed = draw(st.integers(0, 100))
    own: Any = np.arange(seed, seed + 2 * len(feasible)) % 101
    own = own.astype(np.int8).reshape(2, -1)
    zeros, full = np.zeros(len(feasible), dtype=np.int64), np.full(len(feasible), 100)
    shared = SharedScores(
        [
            (column("Taints", zeros, full), None),
            (column("Fit", zeros, zeros), 0),
            (column("Images", zeros, zeros), 1),
        ]
    )
    whole = (
        column("Taints", zeros, full),
        column("Fit", own[0], own[0]),
        column("Images", own[1], own[1]),
    )

    def told(sequence: Any, scores: Any, *known: int | None) -> Explanation:
        groups = [
            FilterGroup("Fit", 2, reasons, sequence(sorted(refused)))
            for verdict, reasons in REASONS.items()
            if (refused := [r for r, v in zip(rows, verdicts, strict=True) if v == verdict])
        ]
        passed = sequence(feasible)
        return Explanation(
            NAMES[:total],
            sequence(rows),
            passed,
            tuple(groups),
            ("Fit",),
            passed,
            scores,
            (),
            *known,
        )

    row = draw(st.sampled_from([best, None]))
    node = NAMES[feasible[best]] if draw(st.booleans()) else ""
    few = told(stretches, PackedScores(shared, own), feasible[best], row)
    return few, told(np.array, whole, None, None), node


def column(plugin: str, raw: Any, normalized: Any) -> ScoreColumn:
    return ScoreColumn(plugin, 2, raw, normalized)


@given(explanations())
def test_it_is_the_encoding_of_the_result(made: tuple[Explanation, Explanation, str]) -> None:
    few, written_out, node = made
    result = schedule_result(written_out, node)
    assert schedule_result(few, node) == result
    for explanation in (few, written_out):
        text = encoded_result(explanation, node)
        assert bytes(text) == msgspec.json.encode(result)
        assert result_of(text) == result


def test_other_nodes_have_other_names() -> None:
    for nodes in (["a", "b"], ["b", "a", "c"], ["a", "b"]):
        rows = range(len(nodes))
        told = Explanation(nodes, rows, rows, (), ())
        assert result_of(encoded_result(told, nodes[0])).candidates == tuple(nodes)


@pytest.mark.parametrize("scores", [(), (ScoreColumn("Fit", 1, [4, 5], [4, 5]),)])
def test_what_was_not_scored_is_left_out(scores: tuple[ScoreColumn, ...]) -> None:
    rows = range(2)
    told = Explanation(["a", "b"], rows, rows, (), ("Fit",), rows if scores else (), scores)
    assert bytes(encoded_result(told, "")) == msgspec.json.encode(schedule_result(told, ""))
