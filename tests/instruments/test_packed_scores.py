"""Scores that are kept in few bytes tell what whole columns tell."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from kubescene.instruments.score_columns import (
    PackedScores,
    ScoreColumn,
    SharedScores,
    columns_encoded,
)

COUNT = 20
OWN: Any = np.array([range(COUNT), [7] * COUNT], dtype=np.int8)
ZEROS: Any = np.zeros(COUNT, dtype=np.int64)
HUNDREDS: Any = np.full(COUNT, 100)
UNEVEN: Any = np.arange(COUNT) * 3


def column(plugin: str, weight: int, raw: Any, normalized: Any = None) -> ScoreColumn:
    return ScoreColumn(plugin, weight, raw, raw if normalized is None else normalized)


def packed(shared: Any) -> tuple[PackedScores, tuple[ScoreColumn, ...]]:
    """Packed columns, and the same as they are."""
    taints = column("Taints", 3, ZEROS, shared)
    fit, images = column("Fit", 1, ZEROS), column("Images", 2, ZEROS)
    whole = (
        taints,
        column("Fit", 1, OWN[0].astype(np.int32)),
        column("Images", 2, OWN[1].astype(np.int32)),
    )
    return PackedScores(SharedScores([(taints, None), (fit, 0), (images, 1)]), OWN), whole


def told(columns: Sequence[ScoreColumn]) -> bytes:
    """As a line of the side file has them, by plugin."""
    return columns_encoded({each.plugin: each.told() for each in columns})


@pytest.mark.parametrize("shared", [HUNDREDS, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("others", [[], [17], [15, 19]], ids=str)
@pytest.mark.parametrize("begin", [0, 1, 15])
def test_what_is_listed_is_that_of_the_columns(begin: int, others: list[int], shared: Any) -> None:
    scores, whole = packed(shared)
    listed = tuple(each.listed(begin, others) for each in whole)
    assert scores.listed(begin, others) == listed
    assert scores.listed(begin, others) == listed


def test_attempts_that_share_columns_have_scores_of_their_own() -> None:
    scores, _ = packed(HUNDREDS)
    shared, other = scores.shared, OWN[::-1].copy()
    first = told(scores), scores.listed(2, [17])
    again = PackedScores(shared, other)
    assert b'"Fit":{"weight":1,"raw":7}' in told(again)
    assert again.listed(2, [17])[2].raw == (0, 1, 17)
    assert (told(scores), scores.listed(2, [17])) == first


@pytest.mark.parametrize("shared", [HUNDREDS, UNEVEN], ids=["even", "uneven"])
def test_what_is_told_is_that_of_the_columns(shared: Any) -> None:
    scores, whole = packed(shared)
    assert told(scores) == told(whole)


def test_a_line_whose_ends_agree_need_not_be_of_one_value() -> None:
    scores, _ = packed(HUNDREDS)
    own: Any = np.array([[5, 6, 5], [6, 6, 6]], dtype=np.int8)
    line = orjson.loads(told(PackedScores(scores.shared, own)))
    assert (line["Fit"]["raw"], line["Images"]["raw"]) == ([5, 6, 5], 6)


def test_columns_are_made_for_those_who_read_them() -> None:
    scores, whole = packed(HUNDREDS)
    assert [(each.plugin, each.weight, list(each.raw)) for each in scores] == [
        (each.plugin, each.weight, list(each.raw)) for each in whole
    ]
    assert scores[1].raw[3] * 100 == 300
    assert [each.plugin for each in scores[1:]] == ["Fit", "Images"]
