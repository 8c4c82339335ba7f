"""How long a request takes, decided when it arrives: CPU by what is free, and a queueing delay.

The delay is at most Sakasegawa's approximation for m servers. Its power is computed with decimal
numbers, because those of the C library differ between platforms in their last bits; everything else
is done in floating point in the same order as the original, remainders included.
"""

from decimal import Context, Decimal
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from kubescene.clock import MILLISECOND

_PRECISE = Context(prec=24)
LEAST_UTILIZATION = 0.01


class CpuRules(NamedTuple):
    """The constants of the model."""

    servers: int = 100
    saturation: float = 0.96
    epsilon: float = 0.001


class Admission(NamedTuple):
    """What a request gets: CPU in millicores while it is inside, a time, and a bound of delay.

    Without CPU there is no time: the request waits until it times out.
    """

    use: float
    base: int
    delay_bound: int


def admit(
    total: float, occupied: float, cpu_ms: float, io_ms: float, rules: CpuRules
) -> Admission | None:
    """What a request gets of a replica; None if no CPU is left."""
    free = total - occupied
    if free <= rules.epsilon:
        return None
    on_cpu = cpu_ms * 1000 / free
    processing = on_cpu + io_ms
    # Nothing to do takes no time and no CPU; the original divides zero by zero.
    use = on_cpu * free / processing if processing else 0.0
    base = int(processing) * MILLISECOND
    utilization = (occupied + use) * 100 / total
    return Admission(use, base, 1 + waiting_time(base, utilization / 100, rules))


def waiting_time(base: int, utilization: float, rules: CpuRules) -> int:
    """Sakasegawa's bound for this service time, in nanoseconds, rounded down."""
    share = LEAST_UTILIZATION
    if utilization > rules.saturation:
        share = rules.saturation
    elif utilization > 0:
        share = utilization
    servers = rules.servers
    return int(base * power(share, sqrt(2 * (servers + 1)) - 1) / (servers * (1 - share)))


@lru_cache(maxsize=1 << 14)
def power(base: float, exponent: float) -> float:
    """``base ** exponent``, rounded correctly."""
    logarithm = _PRECISE.multiply(_PRECISE.ln(Decimal(base)), Decimal(exponent))
    return float(_PRECISE.exp(logarithm))
