"""Plugins that fail in every way they can: the error names them and has their last words."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubescene.autoscalers import Autoscaler, EventRequest, EventType, ProcessAutoscaler
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.autoscalers.process import connections
from kubescene.autoscalers.process.conformance import check
from kubescene.autoscalers.process.handshake import Address
from kubescene.autoscalers.references import started
from kubescene.errors import AutoscalerError, ConfigurationError, TrafficError
from kubescene.traffic import Phase, TrafficResult, run
from plugin_commands import program

RUN = {
    "apiVersion": "kubescene.dev/v1alpha1",
    "kind": "TrafficRun",
    "metadata": {"name": "small"},
    "spec": {"duration": "60s", "traffic": {"pattern": "step", "step": {"rps": 2}}},
}


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither socket nor directory nor zombie, whatever the plugin did."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = children()
    yield
    assert [each.name for each in tmp_path.glob("kubescene-*")] == []
    assert children() <= before


def children() -> set[str]:
    """The processes that this one has started; some are there for other tests of a worker."""
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {child for each in found for child in each.read_text().split()}


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("exits", r"it exited with code 1 before the handshake \(its last words: I cannot go on\)"),
        (
            "garbage",
            r"its first line is no handshake .* but 'Hello, world!' \(its last words:",
        ),
        ("floods", r"its first line is no handshake .* but 'xxxxx"),
        ("silent", r"it printed no handshake within 2 s \(its last words: waiting for better days"),
        ("old", "it speaks version 2 of go-plugin, not 1"),
        ("other", "it speaks version 7 of the protocol, not 1"),
        ("netrpc", "it speaks netrpc, not grpc"),
        ("tls", "it wants TLS, which is not supported"),
        ("nowhere", r"nobody listens at unix:/tmp/kubescene-nowhere-to-be-found \(No such file"),
    ],
)
def test_who_does_not_become_a_plugin_is_told_of(how: str, told: str) -> None:
    command = program("not_a_plugin", how)
    with pytest.raises(AutoscalerError, match=told) as caught:
        ProcessAutoscaler(command, start_s=2 if how == "silent" else 120)
    assert (caught.value.autoscaler, caught.value.call) == (command, "start")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/nowhere/at-all", "the command cannot be started: No such file or directory"),
        ("", "the command cannot be started: the command is empty"),
        ("python 'a", "the command cannot be started: No closing quotation"),
        ("/etc/passwd", "the command cannot be started: Permission denied"),
    ],
)
def test_a_command_that_is_none_is_told_of(command: str, told: str) -> None:
    with pytest.raises(AutoscalerError, match=told):
        ProcessAutoscaler(command)


def test_no_shell_sees_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(AutoscalerError):
        ProcessAutoscaler(f"echo $(touch {mark}); touch {mark}")
    assert not mark.exists()


def test_what_a_stubborn_plugin_started_goes_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(AutoscalerError, match=r"its first line is no handshake .* but 'Try me!'"):
        ProcessAutoscaler(program("not_a_plugin", "stubborn", str(pids)))
    for pid in pids.read_text().split():
        assert not is_running(int(pid))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"  # of an orphan, init has not looked yet


def played(how: str, *, call_s: float = 30.0) -> TrafficResult:
    plugin = ProcessAutoscaler(program("behaving", how), call_s=call_s)
    return run(RUN, [plugin])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("dies", "it exited with code 3 (its last words: asked for a number)"),
        ("raises", "RuntimeError: no idea (its last words:"),
        ("negative", "-1 is no number of pods (its last words: asked for a number)"),
        ("nan", "ValueError: rec is nan, not a whole number (its last words:"),
        ("bare", "TypeError: the answer is no HorizontalRecommendationResponse but 1 (its last"),
        ("wire-nan", "field rec of HorizontalRecommendationResponse is of another type"),
        ("dies-at-create", "at Event CREATE Autoscaler: it exited with code 4 (it said nothing)"),
    ],
)
def test_a_run_whose_plugin_fails_fails_and_says_why(how: str, told: str) -> None:
    result = played(how)
    assert result.phase is Phase.FAILED
    assert result.message.startswith(f"autoscaler {program('behaving', how)!r} at ")
    assert told in result.message


def test_a_plugin_that_hangs_is_not_waited_for() -> None:
    result = played("hangs", call_s=1.0)
    assert result.phase is Phase.FAILED
    assert "HorizontalRecommendation: it did not answer within 1 s" in result.message
    assert "(its last words: asked for a number)" in result.message


def test_a_plugin_that_floods_its_output_goes_on() -> None:
    assert played("floods").ok


def test_what_a_plugin_refuses_is_bad_input() -> None:
    with pytest.raises(TrafficError, match=r"spec\.autoscalers: spec\.any: not this one"):
        played("refuses")


def test_after_a_death_the_next_run_has_a_new_process() -> None:
    plugin = ProcessAutoscaler(program("behaving", "dies"))
    dispatcher = Dispatcher([plugin])
    partition, other = dispatcher.partition([OBJECT]), dispatcher.partition([OBJECT])
    partition.begin(0)
    other.begin(0)
    first = plugin.connection.child.pid
    with pytest.raises(AutoscalerError, match="it exited with code 3"):
        partition.horizontal(1)
    # The other run was with it: it must not get a process that knows nothing of it.
    with pytest.raises(AutoscalerError, match="it exited with code 3"):
        other.horizontal(1)
    with dispatcher.partition([OBJECT]) as third:
        third.begin(0)
        assert plugin.connection.child.pid != first
        with pytest.raises(AutoscalerError, match="it exited with code 3"):
            other.horizontal(2)
    dispatcher.close()


def test_who_hung_once_gets_no_new_run() -> None:
    plugin = ProcessAutoscaler(program("behaving", "hangs"), call_s=1.0)
    dispatcher = Dispatcher([plugin])
    partition = dispatcher.partition([OBJECT])
    partition.begin(0)
    first = plugin.connection.child.pid
    with pytest.raises(AutoscalerError, match="within 1 s"):
        partition.horizontal(1)
    with dispatcher.partition([OBJECT]) as second:
        second.begin(0)
        assert plugin.connection.child.pid != first
    assert is_running(first)
    with pytest.raises(AutoscalerError):
        partition.end(2)
    assert not is_running(first)
    dispatcher.close()


def test_an_abandoned_socket_is_removed_and_one_in_use_is_not(tmp_path: Path) -> None:
    import socket

    address = Address("unix", str(tmp_path / "s"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address.address)
        listening.listen()
        connections.remove_left(address)
        assert Path(address.address).exists()
    connections.remove_left(address)
    assert not Path(address.address).exists()
    Path(address.address).write_text("a file")
    connections.remove_left(address)
    assert Path(address.address).exists()


OBJECT = Autoscaler("behaving.example.com", "")


def test_threads_that_read_are_gone_with_their_plugin() -> None:
    before = threading.active_count()
    plugin = ProcessAutoscaler(program("behaving", "well"))
    plugin.event(EventRequest("1", 0, EventType.CREATE, OBJECT))
    plugin.close()
    assert threading.active_count() <= before + 1  # what gRPC keeps for itself


def test_a_refused_connection_is_told_at_once() -> None:
    """With an hour to start: waiting does not help where nobody listens."""
    with pytest.raises(
        AutoscalerError, match=r"nobody listens at 127.0.0.1:1 \(Connection refused"
    ):
        ProcessAutoscaler(program("not_a_plugin", "refused"), start_s=3600)


def test_two_processes_of_one_type_are_refused() -> None:
    pair = [program("behaving", "well"), program("behaving", "tcp")]
    with pytest.raises(
        ConfigurationError, match=r"both take objects of type 'behaving.example.com'"
    ):
        started(pair)


def test_who_has_no_controller_may_end_at_sigterm() -> None:
    checks = check(program("behaving", "no-controller"))
    [ended] = [each for each in checks if each.name == "it ends when it is told to"]
    assert (ended.passed, ended.told) == (True, "was ended by SIGTERM")
