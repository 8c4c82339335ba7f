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
from kubescene.api.scheme import GroupResource
from kubescene.apiserver.engine_thread import EngineStoppedError, EngineThread
from kubescene.clock import WallClock
from kubescene.cluster import Cluster
from kubescene.control.loops import IDLE, Progress
from kubescene.errors import ReentrantWriteError

PODS = GroupResource("", "pods")
USER = Actor("user")


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    running = EngineThread(Cluster(clock=WallClock()))
    running.start()
    yield running
    running.stop()


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

    engine.call(lambda: engine.cluster.controllers.append(Busy()))
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

    engine.call(lambda: engine.cluster.controllers.extend([Broken(), Witness()]))
    assert Witness.called.wait(5)
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
    engine.call(lambda: engine.cluster.controllers.append(Restless()))
    assert "did not come to rest" in listener.messages.get(timeout=10)
    log.removeHandler(listener)


def test_what_is_due_later_happens_then(engine: EngineThread) -> None:
    happened = Event()
    engine.call(lambda: engine.cluster.event_queue.after(20_000_000, happened.set))
    assert happened.wait(5)


def test_long_command_can_let_others_in(engine: EngineThread) -> None:
    began = Event()
    order: list[str] = []

    def long() -> None:
        began.set()
        while not order:
            engine.serve_pending()
        order.append("long")

    def short() -> None:
        began.wait()
        engine.call(lambda: order.append("short"))

    other = Thread(target=short)
    other.start()
    engine.call(long)
    other.join()
    assert order == ["short", "long"]


def test_stopping_engine_finishes_what_was_submitted() -> None:
    engine = EngineThread(Cluster(clock=WallClock()), controllers=False)
    done: list[int] = []
    for number in range(10):
        engine.post(partial(done.append, number))
    engine.start()
    engine.stop()
    assert done == list(range(10))


def test_stopped_engine_takes_nothing_more() -> None:
    engine = EngineThread(Cluster(clock=WallClock()), controllers=False)
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
                revision = store.create(maps, {**config_map(name), "metadata": metadata}).revision
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
