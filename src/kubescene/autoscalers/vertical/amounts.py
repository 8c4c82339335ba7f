"""Amounts of a resource as the recommender counts them: whole millicores, whole bytes.

Every step of an estimate ends in an amount, cut to a whole number and held within 0 and 10^14.
Limits follow requests: the ratio of limit to request stays as it was, without floating point.
"""

from collections.abc import Mapping
from math import ceil, isnan
from typing import NamedTuple

from kubescene.api import quantity
from kubescene.api.quantity import MAX_INT64, ZERO, Quantity, QuantityFormat

CPU = "cpu"
MEMORY = "memory"
RESOURCES = (CPU, MEMORY)

MAX_AMOUNT = 10**14
NOT_A_NUMBER = -(2**63)
"""What a NaN becomes upstream: less than any amount, so that whatever it is compared with wins."""

Amounts = dict[str, int]
Quantities = dict[str, Quantity]

_SIZES = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount(value: float) -> int:
    """The whole amount of a number, within the bounds; of NaN, `NOT_A_NUMBER`."""
    if value > MAX_AMOUNT:
        return MAX_AMOUNT
    if isnan(value):
        return NOT_A_NUMBER
    return int(max(value, 0.0))


def scaled(units: int, factor: float) -> int:
    return amount(float(units) * factor)


def cpu_amount(cores: float) -> int:
    return amount(cores * 1000.0)


def rounded_up(units: int, step: int) -> int:
    """The next multiple of ``step``; a step that is not positive changes nothing."""
    return ceil(float(units) / float(step)) * step if step > 0 else units


def humanized(size: int) -> str:
    """Bytes with two decimals in the largest binary unit that fits."""
    for suffix, unit in _SIZES:
        if size >= unit:
            return f"{float(size) / float(unit):.2f}{suffix}"
    return str(size)


def as_quantity(resource: str, units: int) -> Quantity:
    if resource == CPU:
        return quantity.from_milli(units)
    return quantity.from_value(units, QuantityFormat.BINARY_SI)


def units_of(resource: str, amount: Quantity) -> int:
    """A quantity in the units of its resource: millicores or bytes."""
    return amount.milli_value() if resource == CPU else amount.value()


def as_texts(quantities: Mapping[str, Quantity]) -> dict[str, str]:
    """A resource list as it stands in an API object."""
    return {name: str(each) for name, each in quantities.items()}


class Scaled(NamedTuple):
    """An amount, and a remark where it could not be what it should."""

    amount: Quantity | None
    note: str = ""


def proportional_limit(
    resource: str, limit: Quantity, request: Quantity, recommended: Quantity, default: Quantity
) -> Scaled:
    """The limit that goes with a recommended request; ``default`` is taken where none was set."""
    limit = limit or default
    if not limit:
        return Scaled(None, f"{resource}: limit NOT set since originalLimit is nil or 0")
    if not recommended:
        return Scaled(None, f"{resource}: limit NOT set since recommendedRequest is nil or 0")
    if not request or request.milli_value() == limit.milli_value():
        return Scaled(recommended)
    scaled, is_exact = scale(resource, limit, of=request, to=recommended)
    note = f"{resource}: failed to keep limit to request ratio; capping limit to int64"
    return Scaled(scaled, "" if is_exact else note)


def boundary_request(
    resource: str, limit: Quantity, request: Quantity, boundary: Quantity, default: Quantity
) -> Quantity:
    """The request at which the proportional limit reaches ``boundary``; 0 where there is none."""
    limit = limit or default
    if not limit:
        return ZERO
    if not request:
        return boundary
    return scale(resource, request, of=limit, to=boundary)[0]


def scale(
    resource: str, amount: Quantity, *, of: Quantity, to: Quantity, up: bool = False
) -> tuple[Quantity, bool]:
    """``amount * to / of`` in whole units, and whether that fits; cut, or for cpu rounded ``up``.

    An amount of nothing (``of`` is 0) stays as it is.
    """
    if not of:
        return amount, True
    count = Quantity.milli_value if resource == CPU else Quantity.value
    whole, rest = divmod(count(amount) * count(to), count(of))
    is_exact = abs(whole) <= MAX_INT64
    if not is_exact:
        whole = MAX_INT64
    elif resource == CPU and up and rest:
        whole += 1
    made = quantity.from_milli if resource == CPU else quantity.from_value
    return made(whole, amount.format), is_exact
