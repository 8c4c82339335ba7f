"""When notices of the core group become Events, are counted, are combined, are left out."""

import msgspec
import pytest

from kubescene.clock import MINUTE, SECOND
from kubescene.recording import NORMAL, WARNING, Notice
from kubescene.recording.correlation import CorrelatedEvent, Correlator, Recents

POD = {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u", "apiVersion": "v1"}
BASE = Notice(POD, NORMAL, "Started", "Container started", "kubelet", host="n1")


class Said:
    """A correlator, and what it made of notices."""

    def __init__(self) -> None:
        self._correlator = Correlator()
        self._names = 0

    def say(self, notice: Notice = BASE, now: int = 0) -> CorrelatedEvent | None:
        self._names += 1
        return self._correlator.observe(notice, f"web.{self._names}", now)

    def counts(self, *notices: Notice, now: int = 0) -> list[int]:
        return [seen.count if (seen := self.say(it, now)) else 0 for it in notices]


def other(**changes: object) -> Notice:
    return msgspec.structs.replace(BASE, **changes)


def messages(count: int) -> list[Notice]:
    return [other(message=f"Created pod: {number}") for number in range(count)]


def test_the_same_is_counted_in_one_event() -> None:
    said = Said()
    first, second = said.say(now=5), said.say(now=9 * MINUTE)
    assert first is not None
    assert second is not None
    assert (first.name, first.count, first.first) == ("web.1", 1, 5)
    assert (second.name, second.count, second.first) == ("web.1", 2, 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"message": "other"},
        {"reason": "Killing"},
        {"type": WARNING},
        {"host": "n2"},
        {"reporter": "me"},
        {"about": {**POD, "fieldPath": "spec.containers{b}"}},
        {"about": {**POD, "uid": "v"}},
    ],
    ids=str,
)
def test_what_differs_is_another_event(changes: dict[str, object]) -> None:
    assert Said().counts(BASE, other(**changes)) == [1, 1]


def test_the_revision_of_the_object_makes_no_difference() -> None:
    assert Said().counts(BASE, other(about={**POD, "resourceVersion": "7"})) == [1, 2]


def test_the_tenth_similar_one_begins_to_combine() -> None:
    said = Said()
    seen = [said.say(notice) for notice in messages(12)]
    assert [it.combined for it in seen if it] == [False] * 9 + [True] * 3
    combined = [it for it in seen if it and it.combined]
    assert [it.count for it in combined] == [1, 2, 3]
    assert {it.name for it in combined} == {"web.10"}
    assert combined[-1].notice.message == "(combined from similar events): Created pod: 11"


def test_a_message_that_is_remembered_is_counted_on_its_own() -> None:
    said = Said()
    said.counts(*messages(12))
    again = said.say(messages(12)[5])
    assert again is not None
    assert (again.name, again.count, again.combined) == ("web.6", 2, False)


def test_similar_ones_far_apart_are_not_combined() -> None:
    said = Said()
    said.counts(*messages(9))
    late = said.say(other(message="late"), now=600 * SECOND + 1)
    assert late is not None
    assert not late.combined


def test_similar_ones_within_ten_minutes_of_the_last_are_combined() -> None:
    said = Said()
    said.counts(*messages(9))
    in_time = said.say(other(message="in time"), now=600 * SECOND)
    assert in_time is not None
    assert in_time.combined


def test_after_25_there_is_one_every_five_minutes() -> None:
    said = Said()
    assert said.counts(*[BASE] * 27) == [*range(1, 26), 0, 0]
    assert said.counts(BASE, now=300 * SECOND - 1) == [0]
    # What was left out has been counted.
    assert said.counts(BASE, BASE, now=300 * SECOND) == [29, 0]


def test_the_allowance_fills_up_to_25_again() -> None:
    said = Said()
    said.counts(*[BASE] * 30)
    later = said.counts(*[BASE] * 30, now=100 * 300 * SECOND)
    assert sum(count > 0 for count in later) == 25


def test_allowances_are_of_one_object_and_type() -> None:
    said = Said()
    said.counts(*[BASE] * 30)
    assert said.counts(other(reason="Killing")) == [0]
    assert said.counts(other(type=WARNING)) == [1]
    assert said.counts(other(about={**POD, "name": "b"})) == [1]


def test_what_was_used_last_is_remembered() -> None:
    recents: Recents[str, int] = Recents(2)
    recents.put("a", 1)
    recents.put("b", 2)
    recents.get("a")
    recents.put("c", 3)
    assert (recents.get("a"), recents.get("b"), recents.get("c")) == (1, None, 3)
