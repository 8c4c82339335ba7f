"""Programs that Kubescene has started do not outlive it, not even a ``kill -9``."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread

import pytest

from kubescene.supervised import is_alive
from kubescene.supervised.process import Process, Warden

STARTS = """
import sys
from kubescene.supervised.process import Process
from threading import Event
process = Process(sys.argv[1:], {})
print(process.pid, flush=True)
Event().wait()
"""
CHILD = "import subprocess; subprocess.run(['sleep', '600'])"
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"


def exists(group: int) -> bool:
    """Whether anybody of a process group lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def comes(true: Callable[[], bool]) -> bool:
    """Whether something comes true before anybody would call it never."""
    return any(true() or Event().wait(0.02) for _ in range(6000))


def started_by(words: Sequence[str], script: str = STARTS) -> "tuple[subprocess.Popen[str], int]":
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["sleep", "600"], id="one that sleeps"),
        pytest.param([sys.executable, "-c", CHILD], id="one that has started another"),
        pytest.param([sys.executable, "-c", STUBBORN], id="one that does not go when asked"),
    ],
)
def test_a_program_goes_when_who_started_it_is_killed(words: Sequence[str]) -> None:
    parent, group = started_by(words)
    assert exists(group)
    with parent:
        parent.kill()
    assert comes(lambda: not exists(group))


def test_what_a_program_has_of_its_own_goes_with_it(tmp_path: Path) -> None:
    own = tmp_path / "its \n own"
    own.mkdir()
    (own / "socket").touch()
    script = STARTS.replace("{})", f"{{}}, directory={str(own)!r})")
    parent, group = started_by(["sleep", "600"], script)
    with parent:
        parent.kill()
    assert comes(lambda: not own.exists())
    assert not exists(group)
    assert tmp_path.exists()


def test_a_program_outlives_the_thread_that_started_it() -> None:
    """The kernel's own means would end it here."""
    found: list[Process] = []
    thread = Thread(target=lambda: found.append(Process(["sleep", "600"], {})))
    thread.start()
    thread.join()
    assert not found[0].has_exited(0.5)
    found[0].end(0)
    assert found[0].has_exited()


def test_a_warden_that_is_dismissed_ends_nothing() -> None:
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    warden = Warden()
    warden.watch(other.pid)
    warden.dismiss()
    assert warden._process.returncode == 0
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_process_leaves_no_warden_behind() -> None:
    process = Process(["true"], {})
    process.wait()
    assert process._warden._process.returncode == 0


def test_a_process_whose_warden_was_killed_ends_as_usual() -> None:
    process = Process(["sleep", "600"], {})
    process._warden._process.kill()
    process._warden._process.wait()
    process.end(0)
    assert process.exit_told() == "was ended by SIGTERM"


def kubescene(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "kubescene", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


SLEEPS = """
import os, pathlib, sys, threading
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
threading.Event().wait()
"""


def group_in(file: Path) -> int:
    assert comes(lambda: file.exists() and file.read_text().isdigit())
    return int(file.read_text())


@pytest.mark.parametrize("command", ["run --outside", "traffic run --autoscaler-process"])
def test_a_killed_command_leaves_no_program_behind(command: str, tmp_path: Path) -> None:
    program, pid = tmp_path / "program.py", tmp_path / "pid"
    program.write_text(SLEEPS)
    starts = f"{sys.executable} {program} {pid}"
    if command == "run --outside":
        scenario = tmp_path / "scenario.yaml"
        scenario.write_text(OUTSIDE)
        parent = kubescene("run", str(scenario), "--outside", f"sleeper={starts}")
    else:
        step = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"
        parent = kubescene("traffic", "run", str(step), "--autoscaler-process", starts)
    with parent:
        try:
            group = group_in(pid)
        finally:
            parent.kill()
    assert comes(lambda: not exists(group))


OUTSIDE = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: orphans}
spec:
  controllers:
    simulationControllers: {enabled: [{name: kube-scheduler}, {name: sleeper}]}
    outside:
    - {name: sleeper, kind: operator, waiter: {name: quiet}}
  operations:
  - step: 1
    createOperation:
      count: 20000
      object:
        apiVersion: v1
        kind: Pod
        metadata: {name: waiting-$(INDEX), namespace: default}
        spec: {containers: [{name: main, image: none}]}
  - {step: 2, doneOperation: {}}
"""
"""Lasts long enough for the program to say who it is."""


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: int, number: int) -> None:
        raise PermissionError

    assert is_alive(os.getpid())
    monkeypatch.setattr(os, "kill", refuse)
    assert is_alive(os.getpid())
