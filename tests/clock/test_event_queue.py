"""What happens later, in one order: instant, then priority, then who came first."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.clock import Clock, EventQueue, Scheduled, Streams, VirtualClock, WallClock


class Diary:
    """A queue from instant 0, and notes of what ran and when."""

    def __init__(self, start: int = 0) -> None:
        self.clock = VirtualClock(start)
        self.queue = EventQueue(self.clock)
        self.notes: list[tuple[str, int]] = []

    def plan(self, name: str, instant: int, priority: int = 0) -> Scheduled:
        return self.queue.at(instant, self.note, name, name=name, priority=priority)

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


def test_step_runs_exactly_one_entry(diary: Diary) -> None:
    diary.plan("a", 1)
    diary.plan("b", 1)
    assert diary.queue.step() == 1
    assert diary.names == ["a"]


def test_step_on_an_empty_queue_says_so(diary: Diary) -> None:
    assert diary.queue.step() == 0
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
    entry = diary.plan("a", 1)
    attached(diary, "ticks", 2)
    diary.queue.clear()
    assert (len(diary.queue), entry.pending) == (0, False)
    assert diary.queue.step() == 0


# -- one batch of what is due ----------------------------------------------------------------------


class Recurring:
    """Adds itself again at an instant that has passed, for ever."""

    def __init__(self, queue: EventQueue, *, priority: int = 0) -> None:
        self.queue = queue
        self.priority = priority
        self.runs = 0

    def run(self) -> None:
        self.runs += 1
        if self.runs > 1000:
            raise RuntimeError("the caller never got control back")
        self.queue.at(0, self.run, priority=self.priority)


@pytest.mark.parametrize("clock", [VirtualClock(), WallClock()], ids=["virtual", "wall"])
def test_run_due_ends_though_an_action_adds_itself_again(clock: Clock) -> None:
    queue = EventQueue(clock)
    recurring = Recurring(queue)
    queue.at(0, recurring.run)
    assert queue.run_due() == 1
    assert (recurring.runs, len(queue)) == (1, 1)


def test_run_due_runs_all_that_was_due_and_leaves_what_it_adds(diary: Diary) -> None:
    diary.queue.at(0, diary.plan, "made", 0)
    diary.plan("second", 0)
    diary.plan("later", 1)
    assert diary.queue.run_due() == 2
    assert diary.names == ["second"]
    assert diary.queue.run_due() == 1
    assert diary.notes == [("second", 0), ("made", 0)]
    assert diary.queue.run_due() == 0


def test_what_comes_first_by_priority_is_not_overtaken_by_the_rest_of_a_batch(diary: Diary) -> None:
    diary.queue.at(0, diary.plan, "urgent", 0, -1)
    diary.plan("patient", 0)
    while diary.queue.run_due():
        pass
    assert diary.names == ["urgent", "patient"]


def test_run_due_runs_late_entries_in_order(diary: Diary) -> None:
    for name, instant in (("b", 5), ("c", 7), ("a", 2)):
        diary.plan(name, instant)
    diary.clock.wait_until(6)
    assert diary.queue.run_due() == 2
    assert diary.notes == [("a", 6), ("b", 6)]


# -- sources beside the queue ----------------------------------------------------------------------


class Ticks:
    """A source that notes a tick every so often; its kernel is a list of instants."""

    def __init__(self, diary: Diary, name: str, *instants: int) -> None:
        self.diary = diary
        self.name = name
        self.instants = list(instants)
        self.asked: list[int] = []

    def peek(self) -> int | None:
        return min(self.instants, default=None)

    def run_until(self, instant: int) -> int:
        self.asked.append(instant)
        due = sorted(each for each in self.instants if each <= instant)
        self.instants = [each for each in self.instants if each > instant]
        for _ in due:
            self.diary.note(self.name)
        return len(due)


def attached(diary: Diary, name: str, *instants: int) -> Ticks:
    ticks = Ticks(diary, name, *instants)
    diary.queue.attach(ticks)
    return ticks


def test_sources_and_entries_take_turns_by_instant(diary: Diary) -> None:
    attached(diary, "ticks", 2, 6, 11)
    diary.plan("a", 1)
    diary.plan("b", 4)
    diary.queue.run(until=10)
    assert diary.notes == [("a", 1), ("ticks", 2), ("b", 4), ("ticks", 6)]
    assert (diary.clock.now(), diary.queue.peek()) == (10, 11)


def test_at_one_instant_entries_come_first_then_sources_as_attached(diary: Diary) -> None:
    attached(diary, "first", 5)
    attached(diary, "second", 5)
    diary.plan("entry", 5, 9)
    assert diary.queue.run_until(5) == 3
    assert diary.names == ["entry", "first", "second"]


def test_peek_is_the_earliest_of_all(diary: Diary) -> None:
    ticks = attached(diary, "ticks", 7)
    assert diary.queue.peek() == 7
    diary.plan("entry", 9)
    assert diary.queue.peek() == 7
    diary.plan("earlier", 3)
    assert diary.queue.peek() == 3
    ticks.instants = [1]
    assert diary.queue.peek() == 1


def test_a_source_is_called_only_when_it_is_due(diary: Diary) -> None:
    ticks = attached(diary, "ticks", 50)
    idle = attached(diary, "idle")
    for instant in range(1, 50):
        diary.plan("entry", instant)
    diary.queue.run(until=60)
    assert (ticks.asked, idle.asked) == ([50], [])


def test_an_entry_may_give_a_source_something_to_do_at_once(diary: Diary) -> None:
    ticks = attached(diary, "ticks", 9)
    diary.queue.at(3, ticks.instants.append, 3)
    diary.plan("entry", 4)
    diary.queue.run(until=10)
    assert diary.notes == [("ticks", 3), ("entry", 4), ("ticks", 9)]


def test_step_gives_one_source_one_turn(diary: Diary) -> None:
    attached(diary, "ticks", 2, 2, 5)
    assert diary.queue.step() == 2
    assert (diary.notes, diary.clock.now()) == ([("ticks", 2)] * 2, 2)


def test_run_due_runs_sources_that_are_due(diary: Diary) -> None:
    attached(diary, "ticks", 0, 3)
    diary.plan("entry", 0)
    assert diary.queue.run_due() == 2
    assert diary.notes == [("entry", 0), ("ticks", 0)]
    assert diary.queue.run_due() == 0


class Volley(Ticks):
    """Hands an obligation of this very instant to the other side, for ever."""

    other: "Volley"

    def run_until(self, instant: int) -> int:
        happened = super().run_until(instant)
        self.other.instants.append(instant)
        return happened


def test_run_due_ends_though_two_sources_keep_each_other_busy(diary: Diary) -> None:
    one, two = Volley(diary, "one", 0), Volley(diary, "two")
    one.other, two.other = two, one
    diary.queue.attach(one)
    diary.queue.attach(two)
    assert diary.queue.run_due() == 2
    assert diary.queue.run_due() == 2
    assert diary.names == ["one", "two"] * 2


class Quiet(Ticks):
    """Only takes note of the instant; the work is done when somebody asks."""

    def run_until(self, instant: int) -> int:
        super().run_until(instant)
        return 0


def test_a_turn_counts_though_nothing_happened(diary: Diary) -> None:
    diary.queue.attach(Quiet(diary, "quiet", 0))
    assert diary.queue.run_due() == 1
    assert diary.queue.run_due() == 0


class Stuck(Ticks):
    def run_until(self, instant: int) -> int:
        return 0


def test_a_source_that_leaves_work_behind_is_named(diary: Diary) -> None:
    diary.queue.attach(Stuck(diary, "stuck", 4))
    with pytest.raises(RuntimeError, match=r"Stuck.* was run until 4 and is due at 4 again"):
        diary.queue.run(until=9)


def test_a_queue_is_a_source(diary: Diary) -> None:
    inner = EventQueue(diary.clock)
    diary.queue.attach(inner)
    inner.at(3, diary.note, "inner")
    diary.plan("outer", 3)
    diary.plan("later", 4)
    diary.queue.run(until=5)
    assert diary.notes == [("outer", 3), ("inner", 3), ("later", 4)]


def test_a_source_that_was_detached_gets_no_turn(diary: Diary) -> None:
    ticks = attached(diary, "ticks", 1)
    diary.queue.detach(ticks)
    assert diary.queue.peek() is None
    diary.queue.run(until=5)
    assert diary.notes == []


def test_a_source_may_come_and_go_while_the_queue_runs(diary: Diary) -> None:
    ticks = Ticks(diary, "ticks", 4, 8)
    diary.queue.at(2, diary.queue.attach, ticks)
    diary.queue.at(6, diary.queue.detach, ticks)
    diary.plan("entry", 7)
    diary.queue.run(until=10)
    assert diary.notes == [("ticks", 4), ("entry", 7)]


def test_a_source_is_attached_once(diary: Diary) -> None:
    ticks = attached(diary, "ticks")
    for source in (ticks, diary.queue):
        with pytest.raises(ValueError, match="attached already"):
            diary.queue.attach(source)
    diary.queue.detach(ticks)
    with pytest.raises(ValueError, match="not attached"):
        diary.queue.detach(ticks)


# -- size and copies -------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", [-(2**15) - 1, 2**15])
def test_a_priority_out_of_range_is_refused(diary: Diary, priority: int) -> None:
    with pytest.raises(ValueError, match=f"not {priority}"):
        diary.plan("x", 1, priority)
    assert (len(diary.queue), diary.queue.peek()) == (0, None)


def test_the_extreme_priorities_stay_within_their_instant(diary: Diary) -> None:
    diary.plan("next", 6, -(2**15))
    diary.plan("last", 5, 2**15 - 1)
    diary.queue.run(until=5)
    assert diary.names == ["last"]
    diary.queue.run(until=6)
    assert diary.names == ["last", "next"]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-3, 3), st.booleans()), max_size=30))
def test_any_entries_run_in_the_order_of_the_triple(
    plans: list[tuple[int, int, bool]],
) -> None:
    diary = Diary(-10)
    handles = [diary.plan(str(i), t, p) for i, (t, p, _) in enumerate(plans)]
    for handle, (_, _, cancelled) in zip(handles, plans, strict=True):
        if cancelled:
            handle.cancel()
    kept = [(t, p, i) for i, (t, p, cancelled) in enumerate(plans) if not cancelled]
    assert len(diary.queue) == len(kept)
    diary.queue.run(until=5)
    assert diary.names == [str(i) for _, _, i in sorted(kept)]


def test_cancelled_timers_do_not_pile_up(diary: Diary) -> None:
    diary.plan("kept", 10**9)
    for instant in range(20_000):
        diary.queue.at(10**6 + instant, diary.note, "never").cancel()
    assert len(diary.queue) == 1
    assert len(diary.queue._heap) < 5_000
    diary.queue.run(until=10**9)
    assert diary.names == ["kept"]


class Grower:
    """A world in one object: draws, keeps the handle of its next event, and may have a source."""

    def __init__(self) -> None:
        self.clock = VirtualClock(0)
        self.queue = EventQueue(self.clock)
        self.streams = Streams(3)
        self.notes: list[tuple[int, int]] = []
        self.next: Scheduled = self.queue.at(1, self.grow, [0])
        self.queue.attach(Sprouts(self))

    def grow(self, size: list[int]) -> None:
        size[0] += 1
        self.notes.append((self.clock.now(), size[0]))
        self.next = self.queue.after(self.streams.stream("gap").exponential(1000), self.grow, size)


class Sprouts:
    def __init__(self, grower: Grower) -> None:
        self.grower = grower
        self.due = 500

    def peek(self) -> int | None:
        return self.due

    def run_until(self, instant: int) -> int:
        self.grower.notes.append((self.due, -1))
        self.due += 500
        return 1


def test_a_copied_world_goes_on_alike_and_leaves_the_original_untouched() -> None:
    world = Grower()
    world.queue.run(until=5_000)
    fork = deepcopy(world)
    before = list(world.notes)
    fork.queue.run(until=50_000)
    assert (world.notes, world.clock.now(), len(world.queue)) == (before, 5_000, 1)
    world.queue.run(until=50_000)
    assert world.notes == fork.notes
    assert len(world.notes) > 100


def copied_by_its_queue(world: Grower) -> Grower:
    (source,) = deepcopy(world.queue)._sources
    assert isinstance(source, Sprouts)
    return source.grower


@pytest.mark.parametrize("first", ["world", "queue"])
def test_handles_of_a_copied_world_cancel_the_copied_entries(first: str) -> None:
    world = Grower()
    fork = deepcopy(world) if first == "world" else copied_by_its_queue(world)
    assert fork.next is not world.next
    assert fork.next is fork.queue._first_entry()
    fork.next.cancel()
    assert (len(fork.queue), len(world.queue)) == (0, 1)
    assert world.next.pending
