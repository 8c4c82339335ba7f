"""The rule of Knative's pod autoscaler (KPA), and the averages that it is given.

`Scaler` is the rule alone: the averages of a metric over a *stable* and a *panic* window, the ready
pods and what it remembers itself go in, a number of pods comes out. It reads no clock.

- A window needs ``ceil(average / target)`` pods, within ``ceil(maxScaleUpRate * ready)`` and
  ``floor(ready / maxScaleDownRate)``; no ready pod counts as one.
- With an ``activation_scale`` above 1, a window that needs any pod at all needs that many.
- A panic begins when the panic window needs ``panic_threshold`` times the ready pods, and lasts
  until that is more than a stable window ago. In it the larger of both windows counts, and the
  answer never falls. A scaler that begins with several pods begins in panic with them.
- With a ``scale_down_delay`` the answer is the highest of that time.

`Buckets` and `WeightedBuckets` are the averages: sums of fixed stretches of time (a second, as a
rule), all with the same weight, or the more the later. Floating point, in the order of the
original's operations: recorded answers of it are replayed without tolerance
(`kubescene.testing.goldens.kpa`).
"""

from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil, floor, sqrt

import msgspec

from kubescene.autoscalers.exact_math import log, power
from kubescene.clock import SECOND
from kubescene.struct_types import build

TICK = 2 * SECOND
"""How often the original decides, and so how fine the time of a scale-down delay is."""

_PRECISION = 1_000_000.0
_LEAST_WEIGHT = 0.0001
"""What is left of the weight of a value when it leaves a weighted window, at most."""

_LEAST_SHARE = 0.2
"""The weight of the newest bucket, at least."""


class ScalerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What the rule has to know. ``target`` and ``total`` are of one pod; times in nanoseconds.

    ``target`` is what a pod should have, ``total`` what it can take; ``reachable``: requests can
    come. ``target_burst_capacity`` is what the ready pods should be able to take at once on top
    of the present load, before an activator stays in front of them; -1: it always does.
    """

    target: float
    total: float
    target_burst_capacity: float = 211.0
    panic_threshold: float = 2.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    stable_window: int = 60 * SECOND
    scale_down_delay: int = 0
    activation_scale: int = 1
    reachable: bool = True


class KpaScale(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and what led to it.

    Pods that each window needs; those that count, within the rates; and what panic's memory makes
    of these, before the delay.
    """

    desired: int
    excess_burst_capacity: int
    stable: int
    panic: int
    panicking: bool
    within: int
    undelayed: int


@dataclass(slots=True)
class Scaler:
    """The rule with its memory: since when there is panic, its highest answer, the delay."""

    spec: ScalerSpec
    panicking_since: int | None = None
    panic_pods: int = 0
    delayed: deque[tuple[int, int]] = field(default_factory=deque)

    @classmethod
    def beginning(cls, spec: ScalerSpec, ready: int, now: int) -> "Scaler":
        """One that begins with so many ready pods: it keeps several until it knows better."""
        return cls(spec, now, ready) if ready > 1 else cls(spec)

    def scale(self, stable: float, panic: float, ready: int, now: int) -> KpaScale:
        """The decision on two averages over all pods."""
        spec, some = self.spec, max(ready, 1)
        needed = ceil(stable / spec.target), ceil(panic / spec.target)
        self._panic_or_calm(needed[1] / some >= spec.panic_threshold, now)
        pods = within = self._within(needed[0], some)
        if self.panicking_since is not None:
            within = max(within, self._within(needed[1], some))
            pods = self.panic_pods = max(within, self.panic_pods)
        return KpaScale(
            desired=self._delayed(pods, now) if spec.scale_down_delay > 0 else pods,
            excess_burst_capacity=self._excess(panic, ready),
            stable=needed[0],
            panic=needed[1],
            panicking=self.panicking_since is not None,
            within=within,
            undelayed=pods,
        )

    def _within(self, needed: int, ready: int) -> int:
        spec = self.spec
        least = floor(ready / spec.max_scale_down_rate) if spec.reachable else 0
        pods = min(max(needed, least), ceil(spec.max_scale_up_rate * ready))
        return max(pods, spec.activation_scale) if needed and spec.activation_scale > 1 else pods

    def _panic_or_calm(self, alarm: bool, now: int) -> None:
        if alarm:
            self.panicking_since = now
        elif (
            self.panicking_since is not None
            and now - self.panicking_since > self.spec.stable_window
        ):
            self.panicking_since, self.panic_pods = None, 0

    def _delayed(self, pods: int, now: int) -> int:
        """The most pods of the delay, in ticks; what a later, larger answer covers is forgotten."""
        tick, kept = now // TICK, self.delayed
        while kept and kept[-1][1] <= pods:
            kept.pop()
        while kept and tick - kept[0][0] >= -(-self.spec.scale_down_delay // TICK):
            kept.popleft()
        if not kept or kept[-1][0] != tick:
            kept.append((tick, pods))
        return kept[0][1]

    def _excess(self, panic: float, ready: int) -> int:
        wanted = self.spec.target_burst_capacity
        if wanted > 0:
            return floor(ready * self.spec.total - wanted - panic)
        return 0 if wanted == 0 else -1


@dataclass(slots=True)
class Buckets:
    """Sums of a value by stretches of time (``granularity``), as far back as a window reaches."""

    window: int
    granularity: int = SECOND
    sums: list[float] = field(init=False)
    total: float = 0.0
    first: int | None = None
    last: int = 0

    def __post_init__(self) -> None:
        self.sums = [0.0] * -(-self.window // self.granularity)

    def record(self, now: int, value: float) -> None:
        """Add a value; one that is a window older than the last is forgotten at once."""
        at, sums = now // self.granularity, self.sums
        if self.first is None or (at - self.last) * self.granularity >= self.window:
            sums[:] = [0.0] * len(sums)
            self.first, self.last, self.total = at, at, 0.0
        elif (self.last - at) * self.granularity >= self.window:
            return
        for each in range(self.last + 1, at + 1):
            self.total -= sums[each % len(sums)]
            sums[each % len(sums)] = 0.0
        self.first, self.last = min(at, self.first), max(at, self.last)
        sums[at % len(sums)] += value
        self.total += value

    def is_empty(self, now: int) -> bool:
        """Whether nothing was recorded within the window."""
        gone = now // self.granularity - self.last
        return self.first is None or gone * self.granularity > self.window

    def average(self, now: int) -> float:
        """Per bucket since the first one, or of the window; down to a millionth."""
        gone = max(now // self.granularity - self.last, 0)
        if self.first is None or gone * self.granularity >= self.window:
            return 0.0
        total, count = self.total, len(self.sums)
        for each in range(self.last + 1, self.last + gone + 1):
            total -= self.sums[each % count]
        return (
            floor(total / min(self.last - self.first + 1, count - gone) * _PRECISION) / _PRECISION
        )


@dataclass(slots=True)
class WeightedBuckets(Buckets):
    """The same with weights that fall by a constant factor from bucket to bucket."""

    share: float = field(init=False)
    """The weight of the newest bucket, and the part that the next one has less."""

    def __post_init__(self) -> None:
        Buckets.__post_init__(self)
        self.share = max(_LEAST_SHARE, 1 - _root(_LEAST_WEIGHT, len(self.sums)))

    def average(self, now: int) -> float:
        if self.is_empty(now):
            return 0.0
        count, kept = len(self.sums), 1 - self.share
        gone = max(now // self.granularity - self.last, 0)
        weight, average = self.share * power(kept, gone), 0.0
        for each in range(count - gone):
            average += self.sums[(self.last - each) % count] * weight
            weight *= kept
        return average


def _root(x: float, count: int) -> float:
    """The root of a number with the bits of the original: by its rounded logarithm."""
    if count <= 2:
        return x if count == 1 else sqrt(x)
    return float(Decimal(1 / count * log(x)).exp())


for _each in (ScalerSpec, KpaScale):
    build(_each)
