"""A real go-plugin host with our plugin, and our host with real go-plugin plugins."""

import os
import shlex
import subprocess
import sys

import pytest

from kubescene.autoscalers import (
    Autoscaler,
    EventType,
    MetricType,
    Pod,
    ProcessAutoscaler,
    Stat,
)
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.errors import AutoscalerError
from kubescene.traffic import run
from plugin_commands import PROGRAMS, program
from real_programs import require_program

TYPE = "counting.example.com"


@pytest.fixture(scope="module")
def interop() -> str:
    """The Go program; where it is not built these tests are skipped, and say so."""
    return str(require_program("plugin-interop", "scripts/build-plugin-interop"))


def hosted(interop: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [interop, "host", *command], capture_output=True, text=True, check=False, env=os.environ
    )


def test_a_go_host_plays_a_run_with_our_plugin(interop: str) -> None:
    done = hosted(interop, sys.executable, str(PROGRAMS / "counting.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ping SERVING",
        "type counting.example.com",
        "capabilities 4",
        "horizontal 3 2 and one more",
        "vertical cpu 225 450 900",
        "scale 3",
        "afterwards HorizontalRecommendation: rpc error: code = Unknown desc = KeyError: 'go-1'",
        "exited true",
    ]


def test_a_go_host_understands_a_plugin_that_is_not_for_it(interop: str) -> None:
    done = hosted(interop, sys.executable, "-c", "print('hello')")
    assert done.returncode == 1
    assert "Unrecognized remote plugin message" in done.stderr


@pytest.mark.parametrize("kind", ["plugin", "legacy"])
def test_our_host_plays_a_run_with_a_go_plugin(interop: str, kind: str) -> None:
    plugin = ProcessAutoscaler(shlex.join([interop, kind]), types=(TYPE,))
    dispatcher = Dispatcher([plugin])
    with dispatcher.partition([Autoscaler(TYPE, "kind: Any")]) as partition:
        partition.begin(0)
        for name in ("a", "b"):
            partition.pod(1, EventType.CREATE, Pod(name, "active", 1, 500))
        partition.stat(2, (Stat(2, "a", MetricType.CPU_MILLIS, 450),))
        found = partition.horizontal(3)
        assert found is not None
        assert found[1].rec == 3
        sized = partition.vertical(3)
        if kind == "plugin":
            assert sized is not None
            assert [each.target for each in sized[1].rec] == [450]
        else:
            assert sized is None
    child = plugin.connection.child
    dispatcher.close()
    assert child.exit_told() == "exited with code 0"


def test_a_go_plugin_and_a_python_one_give_the_same_bytes(interop: str) -> None:
    asked = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "TrafficRun",
        "metadata": {"name": "small"},
        "spec": {
            "duration": "100s",
            "traffic": {"pattern": "step", "step": {"rps": 2}},
            "horizontalInterval": "15s",
        },
    }
    in_go = run(asked, [ProcessAutoscaler(shlex.join([interop, "plugin"]))])
    in_python = run(asked, [ProcessAutoscaler(program("counting"))])
    assert in_go.ok
    assert in_go.header() == in_python.header()
    assert [each.after for each in in_go.decisions] == [each.after for each in in_python.decisions]


def test_a_go_plugin_that_talks_a_lot_is_listened_to(interop: str) -> None:
    # After the handshake its output comes by GRPCStdio; unread, it stops after 64 KiB.
    plugin = ProcessAutoscaler(shlex.join([interop, "plugin"]), call_s=60)
    partition = Dispatcher([plugin]).partition([Autoscaler(TYPE, "chatter: true")])
    partition.begin(0)
    partition.end(1)
    plugin.close()


def test_a_crash_in_go_is_told_with_its_last_words(interop: str) -> None:
    plugin = ProcessAutoscaler(shlex.join([interop, "plugin"]))
    partition = Dispatcher([plugin]).partition([Autoscaler(TYPE, "crash: true")])
    with pytest.raises(AutoscalerError, match=r"it exited with code 2.*panic: a crash in Go"):
        partition.begin(0)
    plugin.close()


def test_an_error_in_go_is_told_in_its_words(interop: str) -> None:
    plugin = ProcessAutoscaler(shlex.join([interop, "plugin"]))
    partition = Dispatcher([plugin]).partition([Autoscaler(TYPE, "refuse: true")])
    with pytest.raises(AutoscalerError, match="Autoscaler: this object is refused"):
        partition.begin(0)
    plugin.close()
