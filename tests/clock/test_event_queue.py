"""What happens later, in one order: instant, then priority, then who came first."""

import pytest

from kubescene.clock import EventQueue, VirtualClock


class Diary:
    """A queue from instant 0, and notes of what ran and when."""

    def __init__(self) -> None:
        self.clock = VirtualClock(0)
        self.queue = EventQueue(self.clock)
        self.notes: list[tuple[str, int]] = []

    def plan(self, name: str, instant: int, priority: int = 0) -> None:
        self.queue.at(instant, lambda: self.note(name), name=name, priority=priority)

    def note(self, name: str) -> None:
        self.notes.append((name, self.clock.now()))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.notes]


@pytest.fixture
def diary() -> Diary:
    return Diary()


def test_entries_run_by_instant_then_priority_then_arrival(diary: Diary) -> None:
    for name, instant, priority in (
        ("third", 5, 0),
        ("fourth", 5, 0),
        ("second", 5, -1),
        ("last", 9, -9),
        ("fifth", 5, 1),
        ("first", 1, 7),
    ):
        diary.plan(name, instant, priority)
    diary.queue.run(until=10)
    assert diary.names == ["first", "second", "third", "fourth", "fifth", "last"]


def test_the_clock_stands_at_each_entry_while_it_runs(diary: Diary) -> None:
    diary.plan("a", 3)
    diary.plan("b", 8)
    diary.queue.run(until=20)
    assert diary.notes == [("a", 3), ("b", 8)]
    assert diary.clock.now() == 20


def test_run_includes_its_end_and_leaves_what_is_later(diary: Diary) -> None:
    diary.plan("at the end", 5)
    diary.plan("later", 6)
    diary.queue.run(until=5)
    assert diary.names == ["at the end"]
    assert diary.queue.peek() == 6


def test_an_instant_that_has_passed_means_now(diary: Diary) -> None:
    diary.clock.wait_until(10)
    diary.plan("late", 3)
    assert diary.queue.peek() == 10
    assert diary.queue.run_due() == 1
    assert diary.notes == [("late", 10)]


def test_after_counts_from_now(diary: Diary) -> None:
    diary.clock.wait_until(10)
    assert diary.queue.after(5, lambda: None).instant == 15


def test_run_due_runs_what_it_makes_due_and_does_not_move_time(diary: Diary) -> None:
    diary.queue.at(0, lambda: diary.plan("made", 0))
    diary.plan("later", 1)
    assert diary.queue.run_due() == 2
    assert diary.notes == [("made", 0)]


def test_step_runs_exactly_one_entry(diary: Diary) -> None:
    diary.plan("a", 1)
    diary.plan("b", 1)
    entry = diary.queue.step()
    assert entry is not None
    assert entry.name == "a"
    assert diary.names == ["a"]


def test_step_on_an_empty_queue_says_so(diary: Diary) -> None:
    assert diary.queue.step() is None
    assert diary.queue.peek() is None


def test_a_cancelled_entry_does_not_run_and_is_not_waited_for(diary: Diary) -> None:
    entry = diary.queue.at(1, lambda: diary.note("never"))
    diary.plan("b", 4)
    entry.cancel()
    entry.cancel()
    assert diary.queue.peek() == 4
    assert len(diary.queue) == 1
    diary.queue.run(until=9)
    assert diary.names == ["b"]


def test_an_entry_that_ran_is_no_longer_pending(diary: Diary) -> None:
    entry = diary.queue.at(1, lambda: None)
    assert entry.pending
    diary.queue.step()
    assert not entry.pending


def test_an_error_stops_the_run_and_keeps_the_rest(diary: Diary) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    diary.queue.at(1, fail)
    diary.plan("after", 2)
    with pytest.raises(RuntimeError, match="broken"):
        diary.queue.run(until=9)
    assert diary.notes == []
    assert diary.queue.peek() == 2
    assert diary.clock.now() == 1


def test_clear_forgets_everything(diary: Diary) -> None:
    diary.plan("a", 1)
    diary.queue.clear()
    assert len(diary.queue) == 0
    assert diary.queue.step() is None
