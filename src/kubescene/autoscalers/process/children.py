"""A plugin as a process: how it is started, what it leaves, and how it is ended.

The command is split as a shell would do it, but no shell runs it. It gets a session of its own, so
that Ctrl-C in a terminal does not reach it and all that it starts can be ended with it, and a
directory of its own for its socket, which goes when it goes.
"""

import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event

from kubescene.autoscalers.process.handshake import (
    LONGEST_LINE,
    Address,
    HandshakeError,
    environment,
    parse,
)
from kubescene.autoscalers.process.last_words import Drain, LastWords
from kubescene.errors import AutoscalerError

START = "start"
"""What an error calls the time before the first call."""

_MOMENT_S = 1.0
"""How long we wait for what is about to happen anyway: an exit, the end of an output."""

_READING_S = 0.2
"""What it wrote before it answered may not have been read yet: so long we wait for that."""


class Child:
    """A plugin that runs and has said where it listens; raises `AutoscalerError` if it does not."""

    def __init__(self, command: str, *, start_s: float) -> None:
        self.name = command
        self.words = LastWords()
        self._directory = tempfile.mkdtemp(prefix="kubescene-")
        self._swept = False
        self.address: Address | None = None
        try:
            self._process = self._started()
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        try:
            self._read_handshake(start_s)
        except BaseException:
            self.end(grace_s=0)
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def failed(self, told: str, call: str = START) -> AutoscalerError:
        """An error about it, with what it said last."""
        if self.has_exited(_MOMENT_S if call == START else 0):
            for each in self._drains:
                each.join(_MOMENT_S)
        else:
            Event().wait(_READING_S)
        return AutoscalerError(f"{told}{self.words.told()}", autoscaler=self.name, call=call)

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
        if not self.has_exited(2 * _MOMENT_S):
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._sweep()
        for each in self._drains:
            each.join(_MOMENT_S)
        if self.address is not None:
            remove_left(self.address)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _started(self) -> "subprocess.Popen[bytes]":
        try:
            words = shlex.split(self.name)
            if not words:
                raise ValueError("the command is empty")
            process = subprocess.Popen(
                words,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=os.environ | environment(self._directory),
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise AutoscalerError(
                f"the command cannot be started: {why}", autoscaler=self.name, call=START
            ) from error
        assert process.stdout is not None
        assert process.stderr is not None
        self._first: SimpleQueue[bytes] = SimpleQueue()
        self._drains = [
            Drain(process.stdout, "stdout", self.words, self._first, longest=LONGEST_LINE),
            Drain(process.stderr, "stderr", self.words),
        ]
        for each in self._drains:
            each.start()
        return process

    def _read_handshake(self, start_s: float) -> None:
        try:
            line = self._first.get(timeout=start_s).decode(errors="replace")
        except Empty:
            raise self.failed(f"it printed no handshake within {start_s:g} s") from None
        try:
            self.address = parse(line)
        except HandshakeError as error:
            if self.has_exited(_MOMENT_S) and not line.strip():
                raise self.failed(f"it {self.exit_told()} before the handshake") from None
            raise self.failed(str(error)) from None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _sweep(self) -> None:
        """It is gone: so go those that it started."""
        if not self._swept:
            self._swept = True
            self._signal(signal.SIGKILL)


def remove_left(address: Address) -> None:
    """Remove the socket that a plugin left behind, if it is one and nobody listens any more."""
    if address.network != "unix":
        return
    with suppress(OSError):
        if not stat.S_ISSOCK(os.stat(address.address).st_mode):
            return
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(address.address)
            except ConnectionRefusedError:
                os.unlink(address.address)
