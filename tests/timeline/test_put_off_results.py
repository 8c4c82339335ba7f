"""A result that is cut when somebody reads it tells what one tells that was cut at once."""

import copy
import gc
import pickle
import weakref

import msgspec
import numpy as np
import pytest

from kubescene.actors import Actor
from kubescene.api.scheme import GroupResource
from kubescene.clock import VirtualClock
from kubescene.store import Store
from kubescene.testing import make_pod
from kubescene.timeline import Explanation, SchedulingAttempt, ScoreColumn, TimelineRecorder
from kubescene.timeline.facts import LineWriter
from kubescene.timeline.pod_facts import PodAttempt
from kubescene.timeline.schedule_results import PutOff, ScheduleResult

NODES = [f"n{n}" for n in range(40)]


def attempt(column: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> SchedulingAttempt:
    rows = range(len(NODES))
    explanation = Explanation(
        nodes=NODES,
        examined=rows,
        feasible=rows,
        filters=(),
        filter_plugins=("Fit",),
        scored=rows,
        scores=(ScoreColumn("Fit", 1, column, column),),  # type: ignore[arg-type]
        chosen=39,
    )
    pod = Store().put(GroupResource("", "pods"), make_pod("a").build(), expected=0)
    return SchedulingAttempt(Actor("s"), pod, "s", node="n39", explanation=explanation)


def scores() -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return np.arange(len(NODES), dtype=np.int32)


def recorded(told: SchedulingAttempt, *, puts_off: bool) -> PodAttempt:
    recorder = TimelineRecorder(VirtualClock(), puts_off=puts_off)
    recorder.pod_attempted(told)
    (fact,) = recorder.log
    assert isinstance(fact, PodAttempt)
    return fact


def test_it_tells_the_same() -> None:
    told = attempt(scores())
    at_once, later = recorded(told, puts_off=False), recorded(told, puts_off=True)
    assert isinstance(at_once.explained, msgspec.Raw)
    assert isinstance(later.explained, PutOff)
    assert LineWriter().line(later) == LineWriter().line(at_once)
    assert later.result == at_once.result
    assert repr(later.explained) == repr(at_once.result)


@pytest.mark.parametrize("puts_off", [True, False])
def test_the_whole_is_let_go_once_it_is_cut(*, puts_off: bool) -> None:
    column = scores()
    whole, told = weakref.ref(column), attempt(column)
    fact = recorded(told, puts_off=puts_off)
    del told, column
    gc.collect()
    assert (whole() is not None) is puts_off
    assert fact.result is not None
    gc.collect()
    assert whole() is None


def test_a_fork_shares_it_and_another_process_gets_it_cut() -> None:
    fact = recorded(attempt(scores()), puts_off=True)
    later = fact.explained
    assert copy.deepcopy(later) is later
    there = pickle.loads(pickle.dumps(later))
    assert isinstance(there, ScheduleResult)
    assert there == fact.result
