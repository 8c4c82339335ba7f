"""When requests arrive: a curve of rates turned into instants, the same however it is cut.

A pattern gives *windows*: a start, a width, and how many arrivals are expected in it (Q32). One
sequence of points with unit rate runs through all windows: for ``poisson`` the sums of exponential
numbers, for ``even`` the halves between whole numbers. The points that fall into a window's share
are spread over it in proportion. So rates may be any fraction, and what one window leaves over the
next one gets. ``uniform`` is Skenario's: as many whole arrivals as the window's share has,
each at an instant drawn uniformly from the window.

Windows are mapped many at a time, but each by itself: nobody can tell by the result how.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from kubescene.clock import SECOND, Stream
from kubescene.clock.batches import Integers, scaled_exponentials, unit_exponentials

ONE = 1 << 32
"""One request in Q32."""
WINDOWS_AT_ONCE = 64
REQUESTS_AT_ONCE = 1 << 16
_CHUNK = 1 << 14


class Window(NamedTuple):
    """A span of time with one rate. ``mass`` is the number of expected arrivals, Q32."""

    start: int
    width: int
    mass: int


class Spacing(StrEnum):
    UNIFORM = "uniform"
    POISSON = "poisson"
    EVEN = "even"


class Arrivals(Protocol):
    """Instants in order, taken piece by piece."""

    def take(self, until: int, most: int) -> Integers:
        """The next instants before ``until``, at most so many."""
        ...

    @property
    def expected(self) -> int:
        """About how many there are in all."""
        ...


def whole_second(start: int, mass: int) -> Window:
    return Window(start, SECOND, mass)


class SpacedArrivals:
    """The arrivals of a sequence of windows."""

    def __init__(
        self, windows: Iterator[Window], spacing: Spacing, stream: Stream, *, expected: int = 0
    ) -> None:
        self.expected = expected
        self._windows = windows
        self._points = _Points(stream) if spacing is Spacing.POISSON else None
        self._even = spacing is Spacing.EVEN
        self._stream = stream
        self._level = 0
        self._buffer: Integers = np.empty(0, dtype=np.int64)
        self._known_until = 0
        """Every arrival before this instant is in the buffer, or was taken."""
        self._over = False

    def take(self, until: int, most: int) -> Integers:
        while not self._over and self._known_until < until and len(self._buffer) <= most:
            self._fill()
        count = int(np.searchsorted(self._buffer, until))
        taken, self._buffer = np.split(self._buffer, [min(count, most)])
        return taken

    def _fill(self) -> None:
        block = self._block()
        if not block:
            self._over = True
            return
        arrived = self._map(block)
        self._buffer = np.concatenate((self._buffer, arrived))
        self._known_until = block[-1].start + block[-1].width

    def _block(self) -> list[Window]:
        block: list[Window] = []
        mass = 0
        for window in self._windows:
            block.append(window)
            mass += window.mass
            if len(block) == WINDOWS_AT_ONCE or mass >= REQUESTS_AT_ONCE * ONE:
                break
        return block

    def _map(self, block: list[Window]) -> Integers:
        if self._points is not None:
            return self._spread(block, self._points.below(self._level + _mass(block)))
        if self._even:
            return self._spread(block, _halves(self._level, self._level + _mass(block)))
        return np.concatenate([self._drawn(window) for window in block])

    def _spread(self, block: list[Window], points: Integers) -> Integers:
        """Each point into the window that it falls into."""
        masses = np.array([window.mass for window in block], dtype=np.int64)
        levels = self._level + np.concatenate(([0], np.cumsum(masses)))
        self._level = int(levels[-1])
        place = np.searchsorted(levels, points, side="right") - 1
        scales = [_scale(window) for window in block]
        down, factor, up = (
            np.array(column, dtype=np.int64) for column in zip(*scales, strict=True)
        )
        starts = np.array([window.start for window in block], dtype=np.int64)
        widths = np.array([window.width for window in block], dtype=np.int64)
        offsets = ((points - levels[place]) >> down[place]) * factor[place] >> up[place]
        arrived: Integers = starts[place] + np.minimum(offsets, widths[place] - 1)
        return arrived

    def _drawn(self, window: Window) -> Integers:
        first, self._level = self._level, self._level + window.mass
        count = (self._level >> 32) - (first >> 32)
        draws = (self._stream.next_u64s(count) >> np.uint64(32)).astype(np.int64)
        coarse = max(0, window.width.bit_length() - 45)
        offsets = scaled_exponentials(draws, window.width >> coarse) << coarse
        return window.start + np.sort(offsets)


class RecordedArrivals:
    """Instants that somebody has measured."""

    def __init__(self, instants: Integers) -> None:
        self._left = instants
        self.expected = len(instants)

    def take(self, until: int, most: int) -> Integers:
        count = min(int(np.searchsorted(self._left, until)), most)
        taken, self._left = self._left[:count], self._left[count:]
        return taken


class _Points:
    """A Poisson process of rate one, in Q32, drawn by the thousand."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._level = 0
        self._left: Integers = np.empty(0, dtype=np.int64)

    def below(self, level: int) -> Integers:
        """The points below ``level`` that were not given yet."""
        pieces = [self._left]
        while self._level < level:
            units = unit_exponentials(self._stream.next_u64s(_CHUNK))
            points = np.cumsum(units) + self._level
            self._level = int(points[-1])
            pieces.append(points)
        points = np.concatenate(pieces)
        count = int(np.searchsorted(points, level))
        self._left = points[count:]
        return points[:count]


def _mass(block: list[Window]) -> int:
    return sum(window.mass for window in block)


def _halves(start: int, end: int) -> Integers:
    """The numbers k + 1/2 in [start, end), Q32."""
    half = ONE >> 1
    first, last = -(-(start - half) // ONE), -(-(end - half) // ONE)
    return np.arange(first, last, dtype=np.int64) * ONE + half


def _scale(window: Window) -> tuple[int, int, int]:
    """How a share of a window's mass becomes a share of its width: ``(x >> a) * f >> b``."""
    down = max(0, window.mass.bit_length() - 32)
    up = 62 - window.width.bit_length()
    return down, (window.width << up) // max(window.mass >> down, 1), up
