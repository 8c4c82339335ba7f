"""A plugin as a process: how it is started, what it leaves, and how it is ended.

It is a `kubescene.supervised` program that says where it listens, with a directory of its own for
its socket, which goes when it goes.
"""

import os
import shutil
import socket
import stat
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
from kubescene.errors import AutoscalerError
from kubescene.supervised.last_words import LastWords
from kubescene.supervised.process import MOMENT_S, Process, words_of

START = "start"
"""What an error calls the time before the first call."""

_READING_S = 0.2
"""What it wrote before it answered may not have been read yet: so long we wait for that."""


class Child:
    """A plugin that runs and has said where it listens; raises `AutoscalerError` if it does not."""

    def __init__(self, command: str, *, start_s: float) -> None:
        self.name = command
        self._directory = tempfile.mkdtemp(prefix="kubescene-")
        self._first: SimpleQueue[bytes] = SimpleQueue()
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
    def words(self) -> LastWords:
        return self._process.words

    @property
    def pid(self) -> int:
        return self._process.pid

    def failed(self, told: str, call: str = START) -> AutoscalerError:
        """An error about it, with what it said last."""
        if self.has_exited(MOMENT_S if call == START else 0):
            self._process.join()
        else:
            Event().wait(_READING_S)
        return AutoscalerError(f"{told}{self.words.told()}", autoscaler=self.name, call=call)

    def has_exited(self, wait_s: float = 0) -> bool:
        """Whether it is no more, or will not be within this time."""
        return self._process.has_exited(wait_s)

    def exit_told(self) -> str:
        """How it ended: ``exited with code 3``, ``was ended by SIGKILL``."""
        return self._process.exit_told()

    def end(self, grace_s: float) -> None:
        """End it, whatever it does, and take away what it leaves behind."""
        self._process.end(grace_s)
        if self.address is not None:
            remove_left(self.address)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _started(self) -> Process:
        surroundings = environment(self._directory)
        try:
            words = words_of(self.name)
            return Process(
                words,
                surroundings,
                first_line=self._first,
                longest=LONGEST_LINE,
                directory=self._directory,
            )
        except ValueError as error:
            raise AutoscalerError(
                f"the command cannot be started: {error}", autoscaler=self.name, call=START
            ) from error

    def _read_handshake(self, start_s: float) -> None:
        try:
            line = self._first.get(timeout=start_s).decode(errors="replace")
        except Empty:
            raise self.failed(f"it printed no handshake within {start_s:g} s") from None
        try:
            self.address = parse(line)
        except HandshakeError as error:
            if self.has_exited(MOMENT_S) and not line.strip():
                raise self.failed(f"it {self.exit_told()} before the handshake") from None
            raise self.failed(str(error)) from None


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
