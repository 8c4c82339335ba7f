"""A process that ends a program when Kubescene is gone, however that came about.

Nobody can act after a ``kill -9``: so somebody else has to be there. The warden reads a pipe whose
other end Kubescene alone holds. First come the process group to end and a directory to remove, at
last a word that it is over; a pipe that ends without that word means that Kubescene is no more.
(The kernel can end a child with its parent, but on Linux only, with the *thread* that started it,
and without those that the child has started.)
"""

import os
import subprocess
import sys
from contextlib import suppress

from kubescene.supervised import warden_script

OVER = b"over"


class Warden:
    """Our end of the pipe. Made before the program, so that none is ever without one."""

    def __init__(self) -> None:
        """Raises ValueError if it cannot be started."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", warden_script.__file__],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Whoever ends us by our process group does not end the warden.
                start_new_session=True,
            )
        except OSError as error:
            raise ValueError(f"nobody can be set to watch it: {error}") from error

    def watch(self, group: int, directory: str = "") -> None:
        """End this process group when we are gone, and remove what is its own."""
        self._send(b"%d %b\0\n" % (group, os.fsencode(directory)))

    def dismiss(self) -> None:
        """There is nothing to end any more."""
        self._send(OVER)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # Somebody has ended it: then nobody watches.
            self._process.stdin.write(data)
