"""What back-tests of a count share: recorded usage, pods that follow decisions, and the outcome."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from kubescene.api.quantity import QuantityError, parse
from kubescene.durations import SECOND
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject, Nanoseconds

Amount: TypeAlias = str | int | float

LONG_AGO = 10**18
"""Pods that are there at the start have been ready for longer than any window."""

MOST_PASSES = 1_000_000
"""Half a year at the interval of the HPA; more than that is a mistake in the times."""


class PodUsageSample(Struct, frozen=True):
    """What was used at ``time``. ``where`` it stands is for messages, such as ``FILE:LINE``.

    ``replicas`` is how many there were in fact, if that is known.
    """

    time: Nanoseconds
    amounts: Mapping[str, Amount]
    where: str = ""
    replicas: int | None = None


class RecordedUsage(Struct, frozen=True):
    """A checked sample: thousandths."""

    time: Nanoseconds
    amounts: Mapping[str, int]
    replicas: int | None = None


def checked_usage(samples: Iterable[PodUsageSample], wanted: Iterable[str]) -> list[RecordedUsage]:
    """The samples in thousandths. `ConfigurationError` names the sample and the key at fault."""
    usage = list(_usage(samples, sorted(set(wanted))))
    if not usage:
        raise ConfigurationError("usage: there are no samples")
    return usage


def _usage(samples: Iterable[PodUsageSample], keys: list[str]) -> Iterator[RecordedUsage]:
    last = None
    for number, sample in enumerate(samples):
        where = f"{sample.where}: " if sample.where else f"usage[{number}]."
        if last is not None and sample.time <= last:
            raise ConfigurationError(f"{where}time: {sample.time} does not follow {last}")
        last = sample.time
        if missing := next((key for key in keys if key not in sample.amounts), None):
            known = ", ".join(sorted(sample.amounts)) or "nothing"
            raise ConfigurationError(f"{where}{missing}: missing; the sample has {known}")
        amounts = {key: milli(sample.amounts[key], f"{where}{key}") for key in keys}
        yield RecordedUsage(sample.time, amounts, sample.replicas)


def milli(amount: Amount, where: str) -> int:
    """An amount in thousandths; ``where`` is its name for the error."""
    if isinstance(amount, float) and not math.isfinite(amount):
        raise ConfigurationError(f"{where}: {amount} is not a finite number")
    try:
        quantity = parse(amount)
    except QuantityError as error:
        raise ConfigurationError(f"{where}: {amount!r} is not an amount: {error}") from error
    if quantity.nanos < 0:
        raise ConfigurationError(f"{where}: {amount} is negative")
    return quantity.milli_value()


class Explained(Protocol):
    """Why a pass came to its count: as text, and for programs."""

    def __str__(self) -> str: ...

    def to_dict(self) -> JsonObject: ...


Why = TypeVar("Why", bound=Explained)


class BackTestRow(Struct, Generic[Why], frozen=True):
    """One pass: counts before it, what it wanted, and why; what there was in fact, if known."""

    time: Nanoseconds
    replicas: int
    ready: int
    desired: int
    explanation: Why
    proposal: int | None = None
    error: str = ""
    recorded: int | None = None


class ReplicaBackTest(Struct, Generic[Why], frozen=True):
    """All passes, and what they add up to."""

    rows: tuple[BackTestRow[Why], ...]
    interval: Nanoseconds

    @property
    def highest(self) -> int:
        return max(row.desired for row in self.rows)

    @property
    def lowest(self) -> int:
        return min(row.desired for row in self.rows)

    @property
    def rescales(self) -> int:
        """How often the count was changed."""
        return sum(row.desired != row.replicas for row in self.rows)

    @property
    def reversals(self) -> int:
        """How often a change went against the one before it: flapping."""
        changes = [row.desired > row.replicas for row in self.rows if row.desired != row.replicas]
        return sum(before != after for before, after in pairwise(changes))

    @property
    def replica_seconds(self) -> float:
        """Replicas times how long they were there, until one interval after the last pass."""
        return self._seconds(lambda row: row.desired)

    @property
    def recorded_seconds(self) -> float | None:
        """The same of what there was in fact; None if that is not known of every pass."""
        if any(row.recorded is None for row in self.rows):
            return None
        return self._seconds(lambda row: row.recorded or 0)

    @property
    def below_recorded(self) -> int:
        """In how many passes fewer replicas were wanted than there were in fact."""
        return sum(row.recorded is not None and row.desired < row.recorded for row in self.rows)

    def _seconds(self, count: Callable[[BackTestRow[Why]], int]) -> float:
        times = [row.time for row in self.rows]
        ends = [*times[1:], times[-1] + self.interval]
        spans = (end - time for time, end in zip(times, ends, strict=True))
        return sum(count(row) * span for row, span in zip(self.rows, spans, strict=True)) / SECOND


class FollowingPods:
    """Pods that follow the decisions: new ones are ready after ``startup``, the newest go first."""

    def __init__(self, startup: Nanoseconds, count: int, now: Nanoseconds) -> None:
        if startup < 0:
            raise ConfigurationError(f"startup: {startup} ns is too short")
        if count < 0:
            raise ConfigurationError(f"replicas: {count} is negative")
        self.startup = startup
        self.created: list[Nanoseconds] = []
        self.scale(count, now - LONG_AGO)

    def __len__(self) -> int:
        return len(self.created)

    def ready(self, now: Nanoseconds) -> int:
        return sum(self.is_ready(number, now) for number in range(len(self.created)))

    def is_ready(self, number: int, now: Nanoseconds) -> bool:
        return self.created[number] + self.startup <= now

    def scale(self, replicas: int, now: Nanoseconds) -> None:
        del self.created[max(replicas, 0) :]
        self.created += [now] * (replicas - len(self.created))


def passes(
    usage: list[RecordedUsage], interval: Nanoseconds
) -> Iterator[tuple[Nanoseconds, RecordedUsage]]:
    """The instants of the passes, from the first sample to the last, each with what holds then."""
    if interval < 1:
        raise ConfigurationError(f"interval: {interval} ns is too short")
    count = (usage[-1].time - usage[0].time) // interval + 1
    if count > MOST_PASSES:
        raise ConfigurationError(
            f"usage: {count:,} passes from the first sample to the last; are the times in "
            "nanoseconds? Else take a longer interval"
        )
    at, now = 0, usage[0].time
    while now <= usage[-1].time:
        while at + 1 < len(usage) and usage[at + 1].time <= now:
            at += 1
        yield now, usage[at]
        now += interval


def start_of(usage: list[RecordedUsage], given: int | None, otherwise: int) -> int:
    """With how many replicas it begins: as asked, or as recorded, or so many."""
    if given is not None:
        return given
    return otherwise if usage[0].replicas is None else usage[0].replicas
