"""What a plugin said last: its output is read all the time, and the end of it is kept."""

from collections import deque
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO

MOST_LINES = 20
LONGEST = 500
_CHUNK = 1 << 16
_NOISE = ('{"@level":"debug"', '{"@level":"trace"')
"""How lines begin that go-plugin writes about itself: nobody's words."""
_CRASH = ("panic: ", "fatal error: ", "Exception in thread ")
"""How crashes of Go and Java begin: they say what it was first, and then only where."""
_TOLD = 5
_OF_A_CRASH = 4


class LastWords:
    """The last lines of all that a plugin printed, whichever way they came."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._crash: list[str] = []
        self._parts: dict[str, bytes] = {}
        self._lock = Lock()

    def add(self, origin: str, data: bytes) -> None:
        """What came from one of its outputs; lines may come in parts."""
        with self._lock:
            *lines, part = (self._parts.get(origin, b"") + data).split(b"\n")
            for each in lines:
                self._keep(each)
            # A line that never ends is kept by its beginning.
            self._parts[origin] = part[:LONGEST]

    def _keep(self, line: bytes) -> None:
        text = line[:LONGEST].decode(errors="replace").rstrip()
        if not text or text.startswith(_NOISE):
            return
        self._lines.append(text)
        if text.startswith(_CRASH):
            self._crash = [text]
        elif 0 < len(self._crash) < _OF_A_CRASH:
            self._crash.append(text)

    def told(self) -> str:
        """For the end of a message: `` (its last words: ...)``, or nothing."""
        with self._lock:
            parts = [each[:LONGEST].decode(errors="replace") for each in self._parts.values()]
            lines = [*self._lines, *filter(str.strip, parts)]
            told = lines[-_TOLD:]
            if self._crash and self._crash[0] not in told:
                told = [*self._crash, "...", *lines[-1:]]
        return f" (its last words: {' / '.join(told)})" if told else " (it said nothing)"


class OutputReader(Thread):
    """Reads an output to its end, so that nobody ever waits for us to read.

    The first line, if somebody wants it, goes to ``first``: at most ``longest`` bytes of it, and
    what there is at the end of the output, also if that is nothing.
    """

    def __init__(
        self,
        output: IO[bytes],
        origin: str,
        words: LastWords,
        first: "SimpleQueue[bytes] | None" = None,
        *,
        longest: int = 4096,
    ) -> None:
        super().__init__(name=f"reads {origin} of a plugin", daemon=True)
        self._output = output
        self._origin = origin
        self._words = words
        self._first = first
        self._longest = longest

    def run(self) -> None:
        begun = b""
        while data := self._read():
            if self._first is not None:
                begun, data = self._begin(begun + data)
            if data:
                self._words.add(self._origin, data)
        if self._first is not None:
            self._first.put(begun)
        self._words.add(self._origin, begun)
        self._output.close()

    def _read(self) -> bytes:
        try:
            return self._output.read(_CHUNK)
        except OSError:
            return b""

    def _begin(self, begun: bytes) -> tuple[bytes, bytes]:
        """What is still missing its end, and what comes after the first line."""
        line, end, rest = begun.partition(b"\n")
        if not end and len(begun) < self._longest:
            return begun, b""
        if self._first is not None:
            self._first.put(line[: self._longest])
            self._first = None
        # Garbage is among the last words, a handshake is not.
        return b"", rest if end else begun
