"""Controllers that park themselves, against a real HTTP server."""

import ast
import asyncio
import json
import logging
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import kubescene_scenario as parking
import pytest
from kubescene_scenario import (
    ParkingError,
    Server,
    Turn,
    check_scenario_step_phase,
    gate_next_pod,
    in_steps,
)

NONE = (200, {"go": True, "scenario": "", "phase": "", "step": {"major": 0, "minor": 0}})
NOT_YET = (
    200,
    {"go": False, "scenario": "s", "phase": "ControllerPaused", "step": {"major": 1, "minor": 2}},
)
YOURS = (
    200,
    {"go": True, "scenario": "s", "phase": "ControllerRunning", "step": {"major": 1, "minor": 3}},
)
STARTING = (503, "starting")


class Told(NamedTuple):
    path: str
    content_type: str
    body: Any


class Desk:
    """An API server that gives its answers in order, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = [YOURS]
        self.told: list[Told] = []
        self.asked = threading.Event()
        self.release = threading.Event()
        self.release.set()
        self._lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, told: Told) -> tuple[int, Any]:
        with self._lock:
            self.told.append(told)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.set()
        self.release.wait()
        return answer


def _handler(desk: Desk) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            code, answer = desk.answer(Told(self.path, self.headers["Content-Type"], body))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(answer.encode() if isinstance(answer, str) else _encoded(answer))

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _encoded(answer: Any) -> bytes:
    return json.dumps(answer).encode()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    thread = threading.Thread(target=made.http.serve_forever)
    thread.start()
    yield made
    made.release.set()
    made.http.shutdown()
    made.http.server_close()
    thread.join()


def test_a_loop_ends_when_the_server_says_go(desk: Desk) -> None:
    desk.answers = [NOT_YET, NOT_YET, YOURS]
    turn = check_scenario_step_phase("my-operator", desk.url)
    assert turn == Turn("s", "ControllerRunning", 1, 3)
    asked = Told(
        "/simulator/v1/park?timeoutSeconds=50", "application/json", {"name": "my-operator"}
    )
    assert desk.told == [asked] * 3


@pytest.mark.parametrize("none", [NONE, (200, {"go": True, "scenario": "", "message": ""})])
def test_without_a_scenario_nobody_waits(desk: Desk, none: tuple[int, Any]) -> None:
    desk.answers = [none]
    assert check_scenario_step_phase("my-operator", desk.url) == Turn()


def test_without_a_simulator_nothing_happens() -> None:
    def reconcile() -> None: ...

    assert check_scenario_step_phase("my-operator", None) == Turn()
    assert gate_next_pod("my-scheduler", "default/web-1", None) == Turn()
    assert in_steps("my-operator", None)(reconcile) is reconcile


def test_a_scheduler_names_its_pod(desk: Desk) -> None:
    gate_next_pod("my-scheduler", "default/web-1", desk.url)
    assert desk.told[0].body == {"name": "my-scheduler", "pod": "default/web-1"}


@pytest.mark.parametrize("prefix", ["/as/my-operator", "/as/my-operator/"])
def test_the_path_of_the_host_is_kept(desk: Desk, prefix: str) -> None:
    check_scenario_step_phase("my-operator", Server(desk.url + prefix))
    assert desk.told[0].path.startswith("/as/my-operator/simulator/v1/park?")


def test_a_refusal_is_raised_at_once(desk: Desk) -> None:
    message = "no outside controller is called x"
    desk.answers = [(404, {"kind": "Status", "reason": "NotFound", "message": message})]
    with pytest.raises(ParkingError, match=f"x cannot park at .*: 404 NotFound: {message}$") as why:
        check_scenario_step_phase("x", desk.url)
    assert why.value.code == 404
    assert len(desk.told) == 1


def test_a_refusal_that_is_no_status_is_quoted(desk: Desk) -> None:
    desk.answers = [(403, "forbidden by a proxy\n")]
    with pytest.raises(ParkingError, match=r"403 Forbidden: forbidden by a proxy$"):
        check_scenario_step_phase("x", desk.url)


def test_a_server_that_fails_is_asked_again(desk: Desk) -> None:
    desk.answers = [STARTING, (500, "starting"), YOURS]
    assert check_scenario_step_phase("my-operator", desk.url).scenario == "s"
    assert len(desk.told) == 3


class Unhurried:
    """A clock that only pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pauses: list[float] = []
        monkeypatch.setattr(parking, "_now", lambda: sum(self.pauses))
        monkeypatch.setattr(
            parking._Report, "_rest", lambda _, pause_s: self.pauses.append(pause_s)
        )


def test_patience_ends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.answers = [STARTING]
    clock = Unhurried(monkeypatch)
    with pytest.raises(ParkingError, match="503 Service Unavailable: starting") as why:
        check_scenario_step_phase("my-operator", Server(desk.url, patience_s=5))
    assert why.value.code == 503
    assert clock.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]  # the next, of 2 s, would be too long


def test_each_answer_renews_the_patience(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.answers = [STARTING, NOT_YET, STARTING, NOT_YET, STARTING, YOURS]
    clock = Unhurried(monkeypatch)
    assert check_scenario_step_phase("my-operator", Server(desk.url, patience_s=0.07)).minor == 3
    assert clock.pauses == [0.05, 0.05, 0.05]


def test_a_server_that_is_gone_is_an_error_in_the_end() -> None:
    with pytest.raises(ParkingError, match=r"my-operator cannot park at .*ConnectionRefused"):
        check_scenario_step_phase("my-operator", Server("http://127.0.0.1:9", patience_s=0))


@pytest.mark.parametrize("answer", ["<html>", {"kind": "Status"}, [], {**YOURS[1], "step": None}])
def test_an_answer_of_something_else_is_an_error(desk: Desk, answer: Any) -> None:
    desk.answers = [(200, answer)]
    with pytest.raises(ParkingError, match="no turn: is this the API server of Kubescene"):
        check_scenario_step_phase("my-operator", desk.url)
    assert len(desk.told) == 1


def test_a_bad_call_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="without a name"):
        check_scenario_step_phase("", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"'127.0.0.1:9' is no address with a scheme"):
        check_scenario_step_phase("x", "127.0.0.1:9")


def test_a_decorated_function_works_then_parks(desk: Desk) -> None:
    @in_steps("my-operator", desk.url)
    def reconcile(key: str, *, times: int) -> str:
        """Repeat."""
        assert not desk.told
        return key * times

    assert reconcile("ab", times=2) == "abab"
    assert len(desk.told) == 1
    assert reconcile.__doc__ == "Repeat."


def test_a_decorated_function_parks_also_after_an_error(desk: Desk) -> None:
    @in_steps("my-operator", desk.url)
    def reconcile() -> None:
        raise LookupError("no such key")

    @in_steps("my-operator", desk.url)
    async def reconcile_async() -> None:
        raise LookupError("no such key")

    with pytest.raises(LookupError):
        reconcile()
    with pytest.raises(LookupError):
        asyncio.run(reconcile_async())
    assert len(desk.told) == 2


def test_an_async_function_parks_without_blocking_the_others(desk: Desk) -> None:
    desk.release.clear()

    @in_steps("my-operator", desk.url)
    async def reconcile() -> int:
        return 7

    async def play() -> int:
        task = asyncio.create_task(reconcile())
        await asyncio.to_thread(desk.asked.wait)
        assert not task.done()
        desk.release.set()
        return await task

    assert asyncio.run(play()) == 7


def test_loops_of_one_controller_run_one_at_a_time_in_order(desk: Desk) -> None:
    log: list[str] = []

    @in_steps("my-operator", desk.url)
    async def reconcile(key: str) -> None:
        log.append(f"{key} begins")
        await asyncio.sleep(0)
        log.append(f"{key} ends with {len(desk.told)} parked")

    @in_steps("my-operator", desk.url)
    def resume(key: str) -> None:
        log.append(f"{key} in a thread with {len(desk.told)} parked")

    async def play() -> None:
        tasks = [asyncio.create_task(reconcile(key)) for key in "ab"]
        await asyncio.sleep(0)  # both have asked to begin, before the thread does
        await asyncio.gather(*tasks, asyncio.to_thread(resume, "c"))

    asyncio.run(play())
    assert log == [
        "a begins",
        "a ends with 0 parked",
        "b begins",
        "b ends with 1 parked",
        "c in a thread with 2 parked",
    ]


def test_controllers_of_different_names_do_not_wait_for_each_other(desk: Desk) -> None:
    @in_steps("first", desk.url)
    def first() -> str:
        return second()

    @in_steps("second", desk.url)
    def second() -> str:
        return "both"

    assert first() == "both"


def test_a_loop_inside_a_loop_is_an_error_not_a_deadlock(desk: Desk) -> None:
    @in_steps("my-operator", desk.url)
    def inner() -> None: ...

    @in_steps("my-operator", desk.url)
    def outer() -> None:
        inner()

    with pytest.raises(RuntimeError, match="a loop of my-operator was called inside another"):
        outer()
    inner()


def test_an_error_in_parking_is_logged_and_the_work_stands(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.answers = [(404, {"kind": "Status", "reason": "NotFound", "message": "who?"})]

    @in_steps("x", desk.url)
    def reconcile() -> int:
        return 7

    @in_steps("x", desk.url)
    async def reconcile_async() -> int:
        return 8

    with caplog.at_level(logging.ERROR):
        assert reconcile() == 7
        assert asyncio.run(reconcile_async()) == 8
    assert [record.message.split(": ")[-1] for record in caplog.records] == ["who?"] * 2


def test_a_cancelled_loop_stops_waiting_and_lets_the_next_one_in(desk: Desk) -> None:
    desk.release.clear()
    log: list[str] = []

    @in_steps("my-operator", desk.url)
    async def reconcile(key: str) -> None:
        log.append(key)

    async def play() -> None:
        parked, waiting, last = (asyncio.create_task(reconcile(key)) for key in "abc")
        await asyncio.to_thread(desk.asked.wait)
        for task in (waiting, parked):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        desk.release.set()
        await last

    asyncio.run(play())
    assert log == ["a", "c"]


def test_a_cancelled_loop_leaves_nothing_behind(desk: Desk) -> None:
    desk.release.clear()

    @in_steps("my-operator", desk.url)
    async def reconcile() -> None: ...

    async def play() -> list[threading.Thread]:
        task = asyncio.create_task(reconcile())
        await asyncio.to_thread(desk.asked.wait)
        waiting = [each for each in threading.enumerate() if each.name == "parked my-operator"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return waiting

    (thread,) = asyncio.run(play())
    assert thread.daemon, "it would keep the program from ending"
    thread.join(timeout=120)
    assert not thread.is_alive(), "it still waits for the server"


def test_a_ticket_that_was_granted_and_given_back_goes_to_the_next() -> None:
    gate = parking._Gate()
    first, second, third = gate.ask(), gate.ask(), gate.ask()
    gate.withdraw(first)
    assert second.done()
    gate.withdraw(third)
    gate.leave()
    assert gate.ask().done()


def test_a_loop_that_is_cancelled_in_its_work_does_not_park(desk: Desk) -> None:
    @in_steps("my-operator", desk.url)
    async def reconcile() -> None:
        await asyncio.Event().wait()

    async def play() -> None:
        task = asyncio.create_task(reconcile())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert desk.told == []


def test_a_generator_is_no_loop() -> None:
    def stream() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="stream is a generator"):
        in_steps("my-operator", "http://127.0.0.1:9")(stream)


def test_an_operator_may_carry_a_copy_of_the_module() -> None:
    tree = ast.parse(Path(parking.__file__).read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    for node in ast.walk(tree):
        imported |= {name.name for name in node.names} if isinstance(node, ast.Import) else set()
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
