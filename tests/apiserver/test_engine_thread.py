"""The thread that owns every write."""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from apiserver.http import config_map, pod
from kubescene.actors import Actor
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.apiserver import engine_thread
from kubescene.apiserver.engine_thread import EngineStoppedError, EngineThread, Nobody
from kubescene.client import Reader
from kubescene.clock import MINUTE, SECOND, ScaledClock, VirtualClock, WallClock
from kubescene.clock.clocks import PacedClock
from kubescene.cluster import ClusterWorld
from kubescene.control import IDLE, Controller, ControllerContext, Progress, Slot
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, ConflictError, InternalError, ReentrantWriteError
from kubescene.testing import make_pod, make_priority_class, make_replica_set

PODS = GroupResource("", "pods")
USER = Actor("user")


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    running = EngineThread(ClusterWorld(clock=WallClock()))
    running.start()
    yield running
    running.stop()


def cluster_of(engine: EngineThread) -> ClusterWorld:
    assert isinstance(engine.cluster, ClusterWorld)
    return engine.cluster


def join(engine: EngineThread, *controllers: Controller) -> None:
    """Let more controllers take part."""

    def add() -> None:
        for controller in controllers:
            slot = Slot(controller.name)
            slot.controller = controller
            cluster_of(engine).slots.append(slot)

    engine.call(add)


def settled(engine: EngineThread, condition: Any) -> bool:
    """Whether ``condition`` holds before the controllers have had a hundred turns."""
    return any(engine.call(condition) for _ in range(100))


def test_commands_run_in_order_on_one_thread(engine: EngineThread) -> None:
    names: list[str] = []
    for number in range(5):
        engine.call(lambda number=number: names.append(f"{number} {current_thread().name}"))  # type: ignore[misc]  # a default argument of a lambda
    assert names == [f"{number} kubescene-engine" for number in range(5)]


def test_nobody_else_may_write(engine: EngineThread) -> None:
    engine.call(lambda: None)
    client = engine.cluster.client(USER)
    with pytest.raises(ReentrantWriteError):
        client.create(config_map("a"))
    engine.call(lambda: client.create(config_map("a")))


def test_failure_goes_to_the_one_who_asked(engine: EngineThread) -> None:
    with pytest.raises(ZeroDivisionError):
        engine.call(lambda: 1 / 0)
    assert engine.call(lambda: "alive") == "alive"


def test_coroutines_get_results_and_failures(engine: EngineThread) -> None:
    async def ask() -> tuple[int, str]:
        number = await engine.submit(lambda: 42)
        try:
            await engine.submit(lambda: 1 / 0)
        except ZeroDivisionError as error:
            return number, str(error)
        return number, ""

    assert asyncio.run(ask()) == (42, "division by zero")


def test_controllers_act_on_what_was_written(engine: EngineThread) -> None:
    client = engine.cluster.client(USER)
    status = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "5"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}
    engine.call(lambda: client.create(node))
    engine.call(lambda: client.create(pod("a")))
    assert settled(engine, lambda: engine.cluster.store.list(PODS)[0].phase == "Running")


def test_commands_come_between_rounds_of_busy_controllers(engine: EngineThread) -> None:
    rounds = 0

    class Busy:
        name = "busy"

        def run_once(self) -> Progress:
            nonlocal rounds
            rounds += 1
            return Progress(wrote=False, more=rounds < 100_000)

    join(engine, Busy())
    assert engine.call(lambda: rounds) < 100_000


def test_failing_controller_does_not_end_the_world(
    engine: EngineThread, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        name = "broken"

        def run_once(self) -> Progress:
            raise RuntimeError("out of order")

    class Witness:
        name = "witness"
        called = Event()

        def run_once(self) -> Progress:
            self.called.set()
            return IDLE

    join(engine, Broken(), Witness())
    assert Witness.called.wait(120)
    assert "controller broken failed" in caplog.text
    assert engine.call(lambda: "alive") == "alive"


def test_livelocked_controllers_are_stopped_until_something_happens(
    engine: EngineThread,
) -> None:
    class Restless:
        name = "restless"

        def run_once(self) -> Progress:
            return Progress(wrote=True, more=True)

    class Listener(logging.Handler):
        messages: SimpleQueue[str] = SimpleQueue()

        def emit(self, record: logging.LogRecord) -> None:
            self.messages.put(record.getMessage())

    log, listener = logging.getLogger("kubescene.apiserver.engine_thread"), Listener()
    log.addHandler(listener)
    join(engine, Restless())
    assert "did not come to rest" in listener.messages.get(timeout=120)
    log.removeHandler(listener)


def test_what_is_due_later_happens_then(engine: EngineThread) -> None:
    happened = Event()
    engine.call(lambda: engine.cluster.event_queue.after(20_000_000, happened.set))
    assert happened.wait(120)


class Flaky:
    """Fails three times, then works."""

    name = "flaky"

    def __init__(self) -> None:
        self.turns = 0
        self.done = Event()

    def run_once(self) -> Progress:
        self.turns += 1
        if self.turns <= 3:
            raise RuntimeError(f"failure {self.turns}")
        self.done.set()
        return IDLE


@pytest.mark.parametrize("clock", [WallClock(), VirtualClock()], ids=["wall", "virtual"])
def test_a_controller_that_fails_tries_again_later_each_time(
    clock: PacedClock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = EngineThread(ClusterWorld(clock=clock), controllers=False)
    engine.start()
    flaky = Flaky()
    join(engine, flaky)
    assert flaky.done.wait(120)
    engine.stop()
    waits = [record.getMessage().rpartition("again in ")[2] for record in caplog.records]
    assert waits == ["0.005 s", "0.01 s", "0.02 s"]


def test_a_key_whose_reconciliation_fails_is_not_lost(engine: EngineThread) -> None:
    looked: SimpleQueue[ObjectKey] = SimpleQueue()

    class Unlucky:
        name = "unlucky"
        kinds = (GroupVersionKind("", "v1", "ConfigMap"),)
        failures = 2

        def observe(self, change: Change) -> list[ObjectKey]:
            record = change.record
            return [ObjectKey("", record.name)] if record.name == "a" else []

        def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("not today")
            looked.put(key)
            return NOTHING

        def refused(
            self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
        ) -> Plan:
            del now
            raise error

    cluster = cluster_of(engine)
    cluster.registrations.register(
        "unlucky", lambda context: ReconcilerController(Unlucky(), context)
    )
    engine.call(lambda: cluster.start(["unlucky"]))
    engine.call(lambda: cluster.create(config_map("a")))
    assert looked.get(timeout=120) == ObjectKey("", "a")


def test_something_that_is_due_again_and_again_does_not_hold_the_server(
    engine: EngineThread,
) -> None:
    queue = engine.cluster.event_queue

    def again() -> None:
        queue.at(0, again)

    engine.call(again)
    assert engine.call(lambda: "alive") == "alive"


def test_scaled_time_passes_at_its_own_pace() -> None:
    """Ten minutes of a world that runs 10,000 times as fast are a moment."""
    clock = ScaledClock(10_000)
    engine = EngineThread(ClusterWorld(clock=clock))
    engine.start()
    happened = Event()
    engine.call(lambda: engine.cluster.event_queue.after(10 * MINUTE, happened.set))
    assert happened.wait(120)
    assert clock.now() - clock.start >= 10 * MINUTE
    engine.stop()


def test_virtual_time_stands_still_until_it_is_told_to_move() -> None:
    clock = VirtualClock()
    engine = EngineThread(ClusterWorld(clock=clock))
    engine.start()
    happened = Event()
    engine.call(lambda: engine.cluster.event_queue.after(MINUTE, happened.set))
    assert engine.call(clock.now) == clock.start
    assert not happened.is_set()
    engine.call(lambda: engine.play(engine.cluster.advancing("5m", engine.crank)))
    assert happened.wait(120)
    assert settled(engine, lambda: clock.now() - clock.start == 5 * MINUTE)
    engine.stop()


class Ticker:
    """Acts every second, and stumbles once."""

    name = "ticker"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._due = self.stumbled = False
        self.acted: list[int] = []
        context.timers.after(SECOND, self._tick)

    def _tick(self) -> None:
        self._due = True
        self._context.timers.after(SECOND, self._tick)

    def run_once(self) -> Progress:
        if self._due and not self.stumbled:
            self.stumbled = True
            raise RuntimeError("once")
        if self._due:
            self._due = False
            self.acted.append(self._context.clock.now())
        return IDLE


def test_a_controller_that_fails_once_misses_no_virtual_time() -> None:
    clock = VirtualClock()
    cluster = ClusterWorld(clock=clock)
    cluster.registrations.register("ticker", Ticker)
    engine = EngineThread(cluster)
    engine.start()
    asyncio.run(engine.submit_moments(lambda: cluster.advancing("10s", engine.crank)))
    [ticker] = [s.controller for s in cluster.slots if isinstance(s.controller, Ticker)]
    assert ticker.stumbled
    assert [(at - clock.start) // SECOND for at in ticker.acted] == list(range(1, 11))
    engine.stop()


class Broken:
    """Acts at one instant, and never manages to."""

    name = "broken"

    def __init__(self, context: ControllerContext) -> None:
        self._due = False
        context.timers.after(5 * SECOND, self._fall_due)

    def _fall_due(self) -> None:
        self._due = True

    def run_once(self) -> Progress:
        if self._due:
            raise RuntimeError("never")
        return IDLE


def test_time_does_not_leave_a_controller_behind_that_never_works() -> None:
    clock = VirtualClock()
    cluster = ClusterWorld(clock=clock)
    cluster.registrations.register("broken", Broken)
    engine = EngineThread(cluster)
    engine.start()
    with pytest.raises(InternalError, match="broken failed 3 times at 2026-01-01T00:00:05"):
        asyncio.run(engine.submit_moments(lambda: cluster.advancing("10s", engine.crank)))
    assert clock.now() == clock.start + 5 * SECOND
    assert engine.call(lambda: 1) == 1
    engine.stop()


def test_commands_come_between_the_moments_of_what_is_played(engine: EngineThread) -> None:
    moments = iter(range(10**9))
    engine.call(lambda: engine.play(moments))
    assert engine.call(lambda: engine.is_playing)
    first, second = engine.call(lambda: next(moments)), engine.call(lambda: next(moments))
    assert second > first


def test_the_end_of_what_is_played_reaches_who_asked_for_it(engine: EngineThread) -> None:
    seen: list[int] = []

    def counting() -> Iterator[int]:
        for number in range(3):
            seen.append(number)
            yield number

    def failing() -> Iterator[int]:
        yield 0
        raise ZeroDivisionError("half-way")

    asyncio.run(engine.submit_moments(counting))
    assert seen == [0, 1, 2]
    with pytest.raises(ZeroDivisionError, match="half-way"):
        asyncio.run(engine.submit_moments(failing))
    assert not engine.call(lambda: engine.is_playing)


def test_only_one_thing_is_played_at_a_time(engine: EngineThread) -> None:
    engine.call(lambda: engine.play(iter(range(10**9))))
    with pytest.raises(ConflictError, match="being played already"):
        engine.call(lambda: engine.play(iter(())))
    with pytest.raises(ConflictError, match="wait for its end"):
        asyncio.run(engine.submit_moments(engine.resetting))


def test_a_world_without_controllers_stays_without(caplog: pytest.LogCaptureFixture) -> None:
    engine = EngineThread(ClusterWorld(clock=WallClock()), controllers=False)
    engine.start()
    engine.call(lambda: engine.cluster.event_queue.at(0, lambda: 1 / 0))
    assert settled(engine, lambda: "something that was due failed" in caplog.text)
    assert engine.call(lambda: engine.cluster.slots) == []
    engine.stop()


def test_who_waits_for_what_is_played_hears_of_the_end(engine: EngineThread) -> None:
    async def wait() -> str:
        waiting = asyncio.ensure_future(engine.submit_moments(endless))
        while not await engine.submit(lambda: engine.is_playing):
            pass
        await asyncio.to_thread(engine.stop)
        try:
            await waiting
        except EngineStoppedError as error:
            return str(error)
        return ""

    def endless() -> Iterator[int]:
        yield from range(10**9)

    assert asyncio.run(wait()) == "the server is shutting down"


def test_who_waits_for_what_was_never_begun_hears_of_the_end(engine: EngineThread) -> None:
    gate = Event()

    async def wait() -> str:
        engine.post(partial(gate_opens, gate))
        waiting = asyncio.ensure_future(engine.submit_moments(lambda: iter(range(10**9))))
        await asyncio.sleep(0)
        engine.stop(0)  # Between the command to play and the first moment.
        gate.set()
        try:
            await waiting
        except EngineStoppedError as error:
            return str(error)
        return ""

    assert asyncio.run(wait()) == "the server is shutting down"


@pytest.mark.parametrize(
    ("error", "lines"), [(EngineStoppedError("the end"), 0), (ValueError("a defect"), 1)]
)
def test_that_the_server_stops_is_no_news_for_those_who_have_left(
    error: Exception, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody asked a future for is told to the log when the future is collected."""

    async def leave() -> None:
        engine_thread._fail(asyncio.get_running_loop().create_future(), error)

    asyncio.run(leave())
    assert len(caplog.records) == lines


def gate_opens(gate: Event) -> None:
    gate.wait()


def test_who_asks_for_what_ends_the_thread_hears_of_it() -> None:
    def end() -> None:
        raise SystemExit(1)

    async def ask(engine: EngineThread) -> None:
        await engine.submit(end)

    for wait in (lambda engine: engine.call(end), lambda engine: asyncio.run(ask(engine))):
        engine = EngineThread(ClusterWorld(clock=WallClock()))
        engine.start()
        with pytest.raises(RuntimeError, match="a command ended the engine with SystemExit"):
            wait(engine)
        engine.stop()


def test_a_scheduler_configuration_ends_what_a_scenario_plays_and_nothing_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The moments of a director are dropped in silence: it has failed its scenario itself."""
    engine = EngineThread(ClusterWorld(clock=WallClock()), director=Holding())
    engine.start()
    options = engine.cluster.own_options.scheduler
    engine.call(lambda: engine.configure_scheduler(options))
    assert caplog.text == ""
    engine.stop()


class Holding(Nobody):
    """Plays something endless that holds the world until it is failed."""

    holds_world = True

    def moments(self) -> Iterator[object] | None:
        return (each for each in range(10**9)) if self.holds_world else None

    def fail_current(self) -> None:
        self.holds_world = False


def test_a_world_whose_controllers_cannot_be_made_refuses_commands() -> None:
    cluster = ClusterWorld(clock=WallClock())

    def broken(context: Any) -> Controller:
        raise RuntimeError("no such thing")

    cluster.registrations.register("broken", broken)
    engine = EngineThread(cluster)
    answers: list[str] = []

    def ask() -> None:
        try:
            engine.call(lambda: None)
        except EngineStoppedError as error:
            answers.append(str(error))

    asking = Thread(target=ask)
    asking.start()
    engine.start()
    asking.join(120)
    ask()
    assert answers == ["the server is shutting down"] * 2


def test_what_was_refused_is_tried_again(
    engine: EngineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubescene.apiserver.engine_thread.RETRY_EVERY", 10_000_000)
    cluster = cluster_of(engine)
    pods = make_replica_set("web").template(make_pod("web").priority_class("later"))
    engine.call(lambda: cluster.create(pods))
    assert settled(engine, lambda: "conditions" in cluster.get("rs", "web").get("status", {}))
    engine.call(lambda: cluster.create(make_priority_class("later", 7)))
    while not engine.call(lambda: cluster.list("pods")):
        pass


def test_a_wake_from_another_thread_is_heard() -> None:
    engine = EngineThread(ClusterWorld(clock=VirtualClock()), controllers=False)
    engine.start()

    class Sleeper:
        name = "sleeper"
        turns: SimpleQueue[int] = SimpleQueue()

        def run_once(self) -> Progress:
            self.turns.put(1)
            return IDLE

    slot = Slot("sleeper", engine.cluster.alarm)
    slot.controller = Sleeper()
    engine.call(lambda: cluster_of(engine).slots.append(slot))
    Sleeper.turns.get(timeout=120)
    slot.wake()
    assert Sleeper.turns.get(timeout=120)
    engine.stop()


def test_a_controller_that_never_ends_does_not_stop_the_clock(engine: EngineThread) -> None:
    class Endless:
        name = "endless"

        def run_once(self) -> Progress:
            return Progress(wrote=False, more=True)

    join(engine, Endless())
    happened = Event()
    engine.call(lambda: engine.cluster.event_queue.after(20_000_000, happened.set))
    assert happened.wait(120)


def test_after_a_play_the_world_is_left_as_it_is() -> None:
    engine = EngineThread(ClusterWorld(clock=VirtualClock()))
    engine.start()
    client = engine.cluster.client(USER)

    def last() -> Iterator[int]:
        client.create(pod("a"))
        yield 0

    engine.call(lambda: client.create(NODE))
    asyncio.run(engine.submit_moments(last))
    store = engine.cluster.store
    revision = store.revision
    assert not Event().wait(0.2)
    assert store.revision == revision
    assert settled(engine, lambda: store.list(PODS)[0].phase == "Running")
    engine.stop()


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "5"}},
}


def test_stopping_engine_finishes_what_was_submitted() -> None:
    engine = EngineThread(ClusterWorld(clock=WallClock()), controllers=False)
    done: list[int] = []
    for number in range(10):
        engine.post(partial(done.append, number))
    engine.start()
    engine.stop()
    assert done == list(range(10))


def test_stopped_engine_takes_nothing_more() -> None:
    engine = EngineThread(ClusterWorld(clock=WallClock()), controllers=False)
    engine.start()
    engine.stop()
    with pytest.raises(EngineStoppedError):
        engine.call(lambda: None)
    engine.stop()


def test_snapshots_are_states_that_existed(engine: EngineThread) -> None:
    """A reader on another thread sees, at every revision, exactly what history says was there."""
    maps = GroupResource("", "configmaps")
    store = engine.cluster.store
    expected: dict[int, frozenset[str]] = {}
    done = Event()

    def churn() -> None:
        present: set[str] = set()
        for number in range(2000):
            name = f"m{number % 7}"
            if name in present:
                present.discard(name)
                revision = store.remove(maps, "default", name).revision
            else:
                present.add(name)
                metadata = {"name": name, "namespace": "default"}
                revision = store.put(
                    maps, {**config_map(name), "metadata": metadata}, expected=0
                ).revision
            expected[revision] = frozenset(present)
        done.set()

    seen: dict[int, frozenset[str]] = {}
    engine.call(
        lambda: [store.remove(maps, r.namespace, r.name) for r in store.list(maps)],
    )
    engine.post(churn)
    while not done.is_set():
        found = store.consistent_list(maps)
        if found is None:
            continue
        records, revision = found
        seen[revision] = frozenset(record.name for record in records)
    engine.call(lambda: None)
    shared = seen.keys() & expected.keys()
    assert shared
    assert {r: seen[r] for r in shared} == {r: expected[r] for r in shared}
