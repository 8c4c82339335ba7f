"""A program as a process: how it is started, what it says, and how it is ended.

No shell runs it. It gets a session of its own, so that Ctrl-C in a terminal does not reach it and
all that it starts can be ended with it; a `Warden` ends them when nobody is left to do that.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock

from kubescene.supervised import warden_script
from kubescene.supervised.last_words import LastWords, OutputReader

MOMENT_S = 1.0
"""How long we wait for what is about to happen anyway: an exit, the end of an output."""

OVER = b"over"


class Process:
    """A program that runs. The constructor raises ValueError if it cannot be started."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        first_line: "SimpleQueue[bytes] | None" = None,
        longest: int = 4096,
        directory: str = "",
    ) -> None:
        """``first_line`` gets the first line that it prints, at most ``longest`` bytes.

        ``directory`` is removed if nobody of us is left to do it.
        """
        self.words = LastWords()
        self._unswept = Lock()
        self._warden = Warden()
        try:
            self._process = started(words, environment)
        except BaseException:
            self._warden.dismiss()
            raise
        self._warden.watch(self._process.pid, directory)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.drains = [
            OutputReader(self._process.stdout, "stdout", self.words, first_line, longest=longest),
            OutputReader(self._process.stderr, "stderr", self.words),
        ]
        for each in self.drains:
            each.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_exited(self, wait_s: float = 0) -> bool:
        """Whether it is no more, or will not be within this time."""
        if not wait_s:
            self._process.poll()
        else:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
        if self._process.returncode is None:
            return False
        self._sweep()
        return True

    def wait(self) -> None:
        """Return when it is no more and all that it said was read."""
        self._process.wait()
        self._sweep()
        self.join()

    def join(self) -> None:
        for each in self.drains:
            each.join(MOMENT_S)

    def exit_told(self) -> str:
        """How it ended: ``exited with code 3``, ``was ended by SIGKILL``."""
        code = self._process.returncode
        if code is None:
            return "still runs"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"exited with code {code}"

    def end(self, grace_s: float) -> None:
        """End it, whatever it does: leave it some time to go by itself, ask, then force it."""
        if not self.has_exited(grace_s):
            self._signal(signal.SIGTERM)
        if not self.has_exited(2 * MOMENT_S):
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._sweep()
        self.join()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _sweep(self) -> None:
        """It is gone: so go those that it started."""
        if self._unswept.acquire(blocking=False):
            self._signal(signal.SIGKILL)
            self._warden.dismiss()


def words_of(command: str) -> list[str]:
    """A command as a shell would split it; raises ValueError."""
    words = shlex.split(command)
    if not words:
        raise ValueError("the command is empty")
    return words


def started(words: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            words,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | dict(environment),
        )
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error


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
