"""When a program outside has nothing left to do, as far as one can tell from outside.

Nothing is on its way to it or from it; and then either the kernel says that it stands still, or
nothing has been heard of it for a while. The first is exact but for timers of its own, the second
a guess that is long enough for most; the Scenario's status says which it was.

*On its way*: bytes that were sent and not yet read stand in the queues of two sockets. On a busy
machine they can stand there while both ends look idle; the kernel's tables say so. *Still*: all
threads sleep and have used no processor time for a while. Both need Linux and the program's pid.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kubescene.clock import MILLISECOND, Clock
from kubescene.outside.programs import OutsideProgram
from kubescene.outside.round_trips import RoundTrip

ONE_WORKER = 150 * MILLISECOND
MANY_WORKERS = 500 * MILLISECOND
"""Between two requests of one reaction, if its program is not to be watched."""
STILL_FOR = 2 * MILLISECOND
PROC = Path("/proc")
ASLEEP = (b"S", b"I", b"Z", b"X")
"""Waiting for somebody, or ended. Who waits for a disk is at work."""
TABLES = ("tcp", "tcp6")
CONNECTING = ("02", "03")
EMPTY = "00000000:00000000"
SOCKET = "socket:["


class Idleness:
    """Judges one program. ``linger`` is for what it does later by a timer of its own."""

    def __init__(self, program: OutsideProgram, clock: Clock, quiet: int, linger: int = 0) -> None:
        self._program = program
        self._clock = clock
        self._quiet = quiet
        self.linger = linger
        self._since = 0
        self._sign = RoundTrip()
        pid = program.pid
        self._pid = pid if pid is not None and can_be_watched(pid) else None
        self._stillness = None if self._pid is None else Stillness(self._pid)

    @property
    def judged_by(self) -> str:
        return "quiet" if self._stillness is None else "still"

    def begin(self) -> None:
        """From now on, whatever was before."""
        self._restart(self._clock.now())

    def is_reached(self) -> bool:
        now, program = self._clock.now(), self._program
        if program.is_served or not program.has_seen:
            self._restart(now)
            return False
        if program.last_heard > self._since:
            self._restart(program.last_heard)
        if now - self._since < self.linger:
            return False
        if not self._sign.is_asked and self._is_still(now):
            # All it had to say is on its way, if it had anything to say: see whether that comes.
            self._sign.ask(program.errand)
        return self._sign.is_back

    def _is_still(self, now: int) -> bool:
        if self._stillness is None or self._pid is None:
            return now - self._since >= self._quiet
        if not self._stillness.is_still(now):
            return False
        # Who waits for us with one hand may read nothing with the other.
        return self._program.is_waiting or is_quiet(self._pid)

    def _restart(self, now: int) -> None:
        self._since = now
        self._sign.forget()
        if self._stillness is not None:
            self._stillness.begin(now)


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


class TcpConnection(NamedTuple):
    """One end, as a line of the table tells it."""

    local: str
    remote: str
    state: str
    queues: str
    inode: str

    @property
    def is_busy(self) -> bool:
        return self.state in CONNECTING or self.queues != EMPTY


def is_quiet(pid: int) -> bool:
    """Whether all is read on the connections of a process and its children, at both ends."""
    inodes = {inode for each in (pid, *descendants(pid)) for inode in sockets_of(each)}
    table = list(connections(PROC))
    own = [each for each in table if each.inode in inodes]
    return not any(each.is_busy for each in (*own, *others(table, {each.local for each in own})))


def others(table: Iterable[TcpConnection], ends: Collection[str]) -> Iterator[TcpConnection]:
    """The other ends of connections whose own ends are at these ports."""
    return (each for each in table if each.remote in ends)


def sockets_of(pid: int) -> Iterator[str]:
    """The inodes of a process's sockets."""
    folder = PROC / str(pid) / "fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            link = os.readlink(folder / name)
        except OSError:
            continue
        if link.startswith(SOCKET):
            yield link[len(SOCKET) : -1]


def connections(proc: Path) -> Iterator[TcpConnection]:
    """All TCP connections of this machine; ends are their ports, in hexadecimal."""
    for name in TABLES:
        try:
            lines = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            ends = (fields[1].rpartition(":")[2], fields[2].rpartition(":")[2])
            yield TcpConnection(*ends, fields[3], fields[4], fields[9])
