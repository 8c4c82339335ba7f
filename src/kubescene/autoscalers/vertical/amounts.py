"""Amounts of a resource as the recommender counts them: whole millicores, whole bytes.

Every step of an estimate ends in an amount, cut to a whole number and held within 0 and 10^14.
"""

from collections.abc import Mapping
from math import ceil, isnan

from kubescene.api import quantity
from kubescene.api.quantity import Format, Quantity

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
    return quantity.from_value(units, Format.BINARY_SI)


def units_of(resource: str, amount: Quantity) -> int:
    """A quantity in the units of its resource: millicores or bytes."""
    return amount.milli_value() if resource == CPU else amount.value()


def as_texts(quantities: Mapping[str, Quantity]) -> dict[str, str]:
    """A resource list as it stands in an API object."""
    return {name: str(each) for name, each in quantities.items()}
