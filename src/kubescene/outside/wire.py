"""Whether anything is on its way between a program of this machine and whoever it talks to.

Bytes that were sent and not yet read stand in the queues of two sockets. On a busy machine they can
stand there while both ends look idle. The kernel's tables say so.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kubescene.outside.stillness import PROC, descendants

TABLES = ("tcp", "tcp6")
CONNECTING = ("02", "03")
EMPTY = "00000000:00000000"
SOCKET = "socket:["


class Connection(NamedTuple):
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


def others(table: Iterable[Connection], ends: Collection[str]) -> Iterator[Connection]:
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


def connections(proc: Path) -> Iterator[Connection]:
    """All TCP connections of this machine; ends are their ports, in hexadecimal."""
    for name in TABLES:
        try:
            lines = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            ends = (fields[1].rpartition(":")[2], fields[2].rpartition(":")[2])
            yield Connection(*ends, fields[3], fields[4], fields[9])
