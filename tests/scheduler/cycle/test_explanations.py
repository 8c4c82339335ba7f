"""A choice is explained in few words, which say what the whole diagnosis says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.instruments.attempts import Explanation
from kubescene.instruments.stretches import Stretches
from kubescene.scheduler.cycle import explanations
from kubescene.scheduler.cycle.explanations import Diagnosis, explain_attempt, explain_choice
from kubescene.scheduler.cycle.search import Found
from kubescene.scheduler.framework.status import Code, Status
from kubescene.timeline.compacting import compacted


class Verdicts:
    """What `Filtering` is asked for here."""

    plugins = ("Fit",)

    def describe(self, verdict: int) -> Status:
        return Status(Code.UNSCHEDULABLE, (f"reason {verdict}",)).by("Fit")


FILTERING: Any = Verdicts()


def found(start: int, verdicts: Sequence[int], total: int) -> Found:
    rows = np.array([(start + place) % total for place in range(len(verdicts))])
    codes = np.array(verdicts)
    passing = (codes == 0).nonzero()[0]
    return Found(rows, codes, rows if passing.size == rows.size else rows[passing])


@st.composite
def searches(draw: st.DrawFn) -> tuple[Found, int, int]:
    total = draw(st.integers(1, 40))
    start, size = draw(st.integers(0, total - 1)), draw(st.integers(1, total))
    verdicts = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=size, max_size=size))
    verdicts[draw(st.integers(0, size - 1))] = 0
    search = found(start, verdicts, total)
    return search, total, draw(st.integers(0, search.feasible.size - 1))


def told(explanation: Explanation) -> tuple[Any, ...]:
    return (
        [*map(int, explanation.examined)],
        explanation.chosen,
        compacted(explanation),
    )


def diagnosed(nodes: list[str], search: Found, best: int) -> Explanation:
    diagnosis = Diagnosis(nodes)
    diagnosis.examine(search, FILTERING)
    return explain_attempt(nodes, diagnosis, search, None, search.feasible.item(best))


@given(searches())
def test_it_says_what_the_diagnosis_says(made: tuple[Found, int, int]) -> None:
    search, total, best = made
    nodes = [f"n{n}" for n in range(total)]
    choice = explain_choice(nodes, search, FILTERING, None, best)
    assert isinstance(choice.feasible, Stretches)
    assert told(choice) == told(diagnosed(nodes, search, best))


@pytest.mark.parametrize("most", [3, 4])
def test_many_stretches_are_told_node_by_node(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "_MOST_STRETCHES", most)
    search, nodes = found(3, [0, 1, 0, 3], 5), [f"n{n}" for n in range(5)]
    choice = explain_choice(nodes, search, FILTERING, None, 1)
    assert isinstance(choice.feasible, Stretches) is (most > 3)
    assert told(choice) == told(diagnosed(nodes, search, 1))


@pytest.mark.parametrize(("nominated", "recorded"), [(1, 2), (3, 3)])
def test_a_refused_nominated_node_is_counted_once(nominated: int, recorded: int) -> None:
    """Whether the search comes to it again, or has found enough before."""
    diagnosis = Diagnosis(["a", "b", "c", "d"])
    diagnosis.record(nominated, Status(Code.UNSCHEDULABLE, ("taken",)).by("Fit"))
    assert diagnosis.recorded == 1
    diagnosis.examine(found(0, [1, 1, 0], 4), FILTERING)
    assert diagnosis.recorded == recorded
