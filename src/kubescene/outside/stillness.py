"""Whether a program on this machine does anything at all, from the kernel's accounts.

A program whose threads all sleep and have used no processor time for a while has nothing to do
until somebody talks to it. It is exact but for timers, and needs Linux and the program's pid.
"""

from pathlib import Path

from kubescene.clock import MILLISECOND

STILL_FOR = 2 * MILLISECOND
PROC = Path("/proc")
ASLEEP = (b"S", b"I", b"Z", b"X")
"""Waiting for somebody, or ended. Who waits for a disk is at work."""


class Stillness:
    """Looks at one process and its children."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._used = -1
        self._since = 0

    def begin(self, now: int) -> None:
        """From now on, whatever was seen before."""
        self._used, self._since = -1, now

    def is_still(self, now: int) -> bool:
        """Whether nothing has run for `STILL_FOR` up to ``now``, in real time."""
        used, runs = usage_of(self._pid)
        if runs or used != self._used:
            self._used, self._since = used, now
            return False
        return now - self._since >= STILL_FOR


def can_be_watched(pid: int) -> bool:
    """Whether the kernel tells about the threads of this process."""
    return (PROC / str(pid) / "task" / str(pid) / "schedstat").exists()


def usage_of(pid: int) -> tuple[int, bool]:
    """Processor time of all threads in nanoseconds, and whether one runs or could."""
    used, runs = 0, False
    for process in (pid, *descendants(pid)):
        for task in _tasks(process):
            try:
                used += int((task / "schedstat").read_bytes().split(maxsplit=1)[0])
                runs = runs or _state(task) not in ASLEEP
            except (OSError, IndexError, ValueError):
                # The thread has ended between two looks: something was running.
                runs = True
    return used, runs


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    found = []
    for task in _tasks(pid):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            found += [child, *descendants(child)]
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return sorted((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def _state(task: Path) -> bytes:
    return (task / "stat").read_bytes().rpartition(b") ")[2][:1]
