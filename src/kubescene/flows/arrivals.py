"""When requests arrive: a curve of rates turned into instants, the same however it is cut.

A pattern gives *windows*: a start, a width, and how many arrivals are expected in it (Q32). One
sequence of points with unit rate runs through all windows: for ``poisson`` the sums of exponential
numbers, for ``even`` the halves between whole numbers. The points that fall into a window's share
are spread over it in proportion. So rates may be any fraction, and what one window leaves over the
next one gets. ``uniform`` is Skenario's: as many whole arrivals as the window's share has,
each at an instant drawn uniformly from the window.

Windows are mapped many at a time, but each by itself: nobody can tell by the result how.
"""

from array import array
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from kubescene.clock import SECOND, Stream
from kubescene.clock.batches import Integers, scaled_exponentials, unit_exponentials
from kubescene.flows.kernels import NEVER

ONE = 1 << 32
"""One request in Q32."""
WINDOWS_AT_ONCE = 256
REQUESTS_AT_ONCE = 1 << 16
_CHUNK = 1 << 14
HORIZON = 3600 * SECOND
"""So far windows without an end are made first; then twice as far each time."""


class ArrivalWindow(NamedTuple):
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

    def due(self, place: int, until: int) -> int | None:
        """When the one at that place of those to come is due, if that is before ``until``."""
        ...

    @property
    def expected(self) -> int:
        """About how many there are in all."""
        ...


def whole_second(start: int, mass: int) -> ArrivalWindow:
    return ArrivalWindow(start, SECOND, mass)


class SpacedArrivals:
    """The arrivals of a sequence of windows, of which those before ``halt`` count."""

    def __init__(
        self, windows: Iterable[ArrivalWindow], spacing: Spacing, stream: Stream, halt: int
    ) -> None:
        self._windows = _before(windows, halt)
        self.expected = _expected(self._windows, halt)
        self._points = _Points(stream) if spacing is Spacing.POISSON else None
        self._even = spacing is Spacing.EVEN
        self._stream = stream
        self._level = 0
        self._mapped = 0
        self._known_until = self._next_start()
        """Every arrival before this instant is in the buffer, or was taken."""
        self._buffer: Integers = np.empty(0, dtype=np.int64)

    def take(self, until: int, most: int) -> Integers:
        while self._known_until < until and len(self._buffer) <= most:
            self._fill()
        count = min(int(self._buffer.searchsorted(until)), most)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def due(self, place: int, until: int) -> int | None:
        """When the one at that place of those to come is due, if that is before ``until``."""
        while self._known_until < until and len(self._buffer) <= place:
            self._fill()
        return due_in(self._buffer, place, until)

    def _next_start(self) -> int:
        left = self._windows[self._mapped :]
        return int(left[0, 0]) if len(left) else NEVER

    def _fill(self) -> None:
        start = self._mapped
        block = self._windows[start : start + WINDOWS_AT_ONCE]
        enough = int(np.searchsorted(np.cumsum(block[:, 2]), REQUESTS_AT_ONCE * ONE)) + 1
        block = block[:enough]
        self._mapped += len(block)
        self._known_until = self._next_start()
        self._buffer = np.concatenate((self._buffer, self._map(block)))

    def _map(self, block: Integers) -> Integers:
        end = self._level + int(block[:, 2].sum())
        if self._points is not None:
            return self._spread(block, self._points.below(end))
        if self._even:
            return self._spread(block, _halves(self._level, end))
        widths = block[:, 1]
        if (widths == widths[0]).all():
            return self._drawn(block)
        borders = np.flatnonzero(np.diff(widths)) + 1
        return np.concatenate([self._drawn(alike) for alike in np.split(block, borders)])

    def _spread(self, block: Integers, points: Integers) -> Integers:
        """Each point into the window that it falls into."""
        levels = self._level + np.concatenate(([0], np.cumsum(block[:, 2])))
        self._level = int(levels[-1])
        place = np.searchsorted(levels, points, side="right") - 1
        scales = np.array([_scale(ArrivalWindow(*row)) for row in block.tolist()], dtype=np.int64)
        down, factor, up = (scales[place, column] for column in range(3))
        offsets = ((points - levels[place]) >> down) * factor >> up
        arrived: Integers = block[place, 0] + np.minimum(offsets, block[place, 1] - 1)
        return arrived

    def _drawn(self, block: Integers) -> Integers:
        """A draw for each request of windows of one width, in order within each window."""
        levels = self._level + np.concatenate(([0], np.cumsum(block[:, 2])))
        self._level = int(levels[-1])
        counts = np.diff(levels >> 32)
        draws = (self._stream.next_u64s(int(counts.sum())) >> np.uint64(32)).astype(np.int64)
        width = int(block[0, 1])
        coarse = max(0, width.bit_length() - 45)
        offsets = scaled_exponentials(draws, width >> coarse) << coarse
        # Windows do not overlap: sorting all of them sorts each.
        return np.sort(np.repeat(block[:, 0], counts) + offsets)


class WindowSource(Protocol):
    """A rate of arrivals that nobody has written down to its end."""

    def before(self, halt: int) -> Iterable[ArrivalWindow]:
        """The windows up to an instant; the last one may be cut there. Asked again, the same."""
        ...


class OpenArrivals(SpacedArrivals):
    """Arrivals without an end: windows are made when they are near, and the rates may change."""

    def __init__(self, spacing: Spacing, stream: Stream) -> None:
        """Nobody comes before `begin`."""
        self._source: WindowSource | None = None
        self._unmade = NEVER
        """Windows from here on are still to be made."""
        super().__init__((), spacing, stream, NEVER)

    def begin(self, source: WindowSource | None, now: int) -> None:
        """From ``now`` on these are the rates, None for nobody; all before has been taken.

        The sequence of points goes on: what was known of those to come is drawn anew.
        """
        self._source, self._unmade = source, NEVER if source is None else now
        self._windows, self._mapped = self._windows[:0], 0
        self._buffer = self._buffer[:0]
        self._known_until = self._unmade

    def _next_start(self) -> int:
        left = self._windows[self._mapped :]
        return int(left[0, 0]) if len(left) else self._unmade

    def _fill(self) -> None:
        if self._mapped < len(self._windows):
            super()._fill()
            return
        assert self._source is not None
        begin, horizon = self._unmade, max(2 * self._unmade, HORIZON)
        windows = _before(self._source.before(horizon), horizon)
        ends = windows[:, 0] + windows[:, 1]
        # One that ends at the horizon may have been cut there, and is made another time.
        cut = windows[ends >= horizon]
        self._windows, self._mapped = _after(windows[(ends < horizon) & (ends > begin)], begin), 0
        self._unmade = max(int(cut[0, 0]), begin) if len(cut) else horizon
        self._known_until = self._next_start()


class RecordedArrivals:
    """Instants that somebody has measured."""

    def __init__(self, instants: Integers) -> None:
        self._left = instants
        self.expected = len(instants)

    def take(self, until: int, most: int) -> Integers:
        count = min(int(np.searchsorted(self._left, until)), most)
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def due(self, place: int, until: int) -> int | None:
        return due_in(self._left, place, until)


def due_in(instants: Integers, place: int, until: int) -> int | None:
    found = int(instants[place]) if place < len(instants) else until
    return found if found < until else None


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


def _before(windows: Iterable[ArrivalWindow], halt: int) -> Integers:
    """The windows that begin before an instant, a row each."""
    numbers = array("q")
    for window in windows:
        if window[0] >= halt:
            break
        numbers.extend(window)
    return np.frombuffer(numbers, dtype=np.int64).reshape(-1, 3)


def _after(windows: Integers, begin: int) -> Integers:
    """The windows from an instant on; the one that lies across it keeps its share."""
    late = np.maximum(begin - windows[:, 0], 0)
    if late.any():
        windows = windows.copy()
        for place in np.flatnonzero(late).tolist():
            start, width, mass = windows[place].tolist()
            left = start + width - begin
            windows[place] = begin, left, mass * left // width
    return windows


def _expected(windows: Integers, halt: int) -> int:
    """How many requests come before the end."""
    whole = windows[:-1, 2]
    # In halves of 32 bits: the sum of all masses need not fit into 64.
    mass = (int((whole >> 32).sum()) << 32) + int((whole & (ONE - 1)).sum())
    for start, width, last in windows[-1:].tolist():
        mass += last * min(width, halt - start) // width
    return mass // ONE


def _halves(start: int, end: int) -> Integers:
    """The numbers k + 1/2 in [start, end), Q32."""
    half = ONE >> 1
    first, last = -(-(start - half) // ONE), -(-(end - half) // ONE)
    return np.arange(first, last, dtype=np.int64) * ONE + half


def _scale(window: ArrivalWindow) -> tuple[int, int, int]:
    """How a share of a window's mass becomes a share of its width: ``(x >> a) * f >> b``."""
    down = max(0, window.mass.bit_length() - 32)
    up = 62 - window.width.bit_length()
    return down, (window.width << up) // max(window.mass >> down, 1), up
