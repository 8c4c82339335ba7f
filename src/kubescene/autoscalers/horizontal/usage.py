"""Usage over time, as somebody measured it: what a back-test plays to an autoscaler.

A sample says what was used at an instant, under the keys of the autoscaler's metrics
(`usage_key`): ``cpu`` and ``memory`` are the sum over all pods, ``app/cpu`` is that of one
container, a Pods metric has its name and is a sum, too, Object and External metrics have their name
and are the value itself. Amounts are quantities or plain numbers: cores, bytes, units.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from kubescene.api.quantity import QuantityError, parse
from kubescene.autoscalers.horizontal.specs import HorizontalSpec, MetricSpec
from kubescene.errors import ConfigurationError
from kubescene.types import Nanoseconds

Amount: TypeAlias = str | int | float


class UsageSample(Struct, frozen=True):
    """What was used at ``time``. ``where`` it stands is for messages, such as ``FILE:LINE``."""

    time: Nanoseconds
    amounts: Mapping[str, Amount]
    where: str = ""


class Usage(Struct, frozen=True):
    """A checked sample: thousandths."""

    time: Nanoseconds
    amounts: Mapping[str, int]


def usage_key(metric: MetricSpec) -> str:
    """Under which key a sample has the amount of a metric."""
    return f"{metric.container}/{metric.name}" if metric.container else metric.name


def checked_usage(samples: Iterable[UsageSample], spec: HorizontalSpec) -> list[Usage]:
    """The samples in thousandths. `ConfigurationError` names the sample and the key at fault."""
    usage = list(_usage(samples, {usage_key(metric) for metric in spec.metrics}))
    if not usage:
        raise ConfigurationError("usage: there are no samples")
    return usage


def _usage(samples: Iterable[UsageSample], wanted: Iterable[str]) -> Iterator[Usage]:
    keys, last = sorted(wanted), None
    for number, sample in enumerate(samples):
        where = f"{sample.where}: " if sample.where else f"usage[{number}]."
        if last is not None and sample.time <= last:
            raise ConfigurationError(f"{where}time: {sample.time} does not follow {last}")
        last = sample.time
        if missing := next((key for key in keys if key not in sample.amounts), None):
            known = ", ".join(sorted(sample.amounts)) or "nothing"
            raise ConfigurationError(f"{where}{missing}: missing; the sample has {known}")
        yield Usage(sample.time, {key: milli(sample.amounts[key], f"{where}{key}") for key in keys})


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
