"""Facts from lines, one after the other: only what may be referred to is remembered."""

import msgspec
import pytest

import kubescene
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import (
    Fact,
    ObjectPatched,
    PodScheduled,
    PodUnscheduled,
    TimelineLog,
)
from kubescene.timeline.facts import LineWriter
from kubescene.timeline.files import StreamReader


def lines_of(*facts: Fact) -> list[bytes]:
    writer = LineWriter()
    return [writer.line(fact) for fact in facts]


def played() -> TimelineLog:
    """A run in which a pod is placed and another waits."""
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_pod("a").cpu("1"))
    return kubescene.run(scenario.create(make_pod("b").cpu("2")).done()).log


def test_an_object_may_be_referred_to_again_and_again() -> None:
    log = played()
    (bind,) = (fact for fact in log if isinstance(fact, ObjectPatched))
    (placed,) = (fact for fact in log if isinstance(fact, PodScheduled))
    assert placed.record is bind.record
    reader = StreamReader()
    read = [reader.read(line) for line in lines_of(bind, placed, placed)]
    assert [type(fact) for fact in read] == [ObjectPatched, PodScheduled, PodScheduled]


def test_what_was_forgotten_is_not_found() -> None:
    (attempt,) = (fact for fact in played() if isinstance(fact, PodUnscheduled))
    (line,) = lines_of(attempt)
    with pytest.raises(msgspec.ValidationError, match="refers to fact 7"):
        StreamReader().read(line[:-1] + b',"previous":7}')
