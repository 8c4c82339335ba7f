"""Usage samples as they come from outside, and what is wrong with them."""

from collections.abc import Iterable, Iterator
from math import ceil, isfinite
from typing import Any

import msgspec

from kubescene.errors import ConfigurationError


class SampleError(ConfigurationError):
    """A sample that means nothing; the message says which one and names its field."""


class UsageSample(msgspec.Struct, frozen=True):
    """What one container used at ``time`` (nanoseconds): ``cpu`` millicores, ``memory`` bytes.

    None: not measured. Fractions are rounded up, as quantities are. With ``oom`` the container was
    killed for lack of memory, and ``memory`` is what it had requested.
    """

    time: int
    cpu: int | float | None = None
    memory: int | float | None = None
    pod: str = "pod"
    container: str = "container"
    oom: bool = False


def checked(samples: Iterable[UsageSample]) -> Iterator[UsageSample]:
    """The samples in whole units; raises `SampleError` at the first that is no sample."""
    last: int | None = None
    for number, sample in enumerate(samples):
        where = f"samples[{number}]"
        if isinstance(sample.time, bool) or not isinstance(sample.time, int):
            raise SampleError(f"{where}.time: {sample.time!r} is no whole number of nanoseconds")
        if last is not None and sample.time < last:
            raise SampleError(f"{where}.time: {sample.time} is before {last}; sort by time")
        last = sample.time
        yield msgspec.structs.replace(
            sample,
            cpu=whole_units(sample.cpu, f"{where}.cpu"),
            memory=whole_units(sample.memory, f"{where}.memory"),
        )


def whole_units(value: Any, where: str) -> int | None:
    """A measured amount in whole units; None stays None, anything that is no amount is refused."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SampleError(f"{where}: {value!r} is no number")
    if not isfinite(value):
        raise SampleError(f"{where}: {value!r}; an amount has to be finite")
    if value < 0:
        raise SampleError(f"{where}: {value!r}; an amount cannot be negative")
    return ceil(value)
