"""What a warden does (see `kubescene.supervised.process`): run as a script of its own.

It imports nothing of ours, and little at all: it has to be there at once.
"""

import os
import select
import signal
import sys
from contextlib import suppress

GRACE_S = 2.0
"""What the program has to end by itself once it is asked to."""


def watch(pipe: int) -> None:
    """Wait for the end of the pipe, and end the process group that it named.

    What is left in its directory, such as sockets, goes with it.
    """
    named, _, over = read_all(pipe).partition(b"\0\n")
    if named and not over:
        group, _, directory = named.partition(b" ")
        end(int(group), signal.SIGTERM)
        select.select([], [], [], GRACE_S)
        end(int(group), signal.SIGKILL)
        if directory:
            import shutil  # seldom needed, and then there is time

            shutil.rmtree(directory, ignore_errors=True)


def read_all(pipe: int) -> bytes:
    found = b""
    while data := os.read(pipe, 64):
        found += data
    return found


def end(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    watch(sys.stdin.fileno())
