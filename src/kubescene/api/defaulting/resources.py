"""Resource lists: quantities in canonical form, never finer than a thousandth.

The server keeps what it parsed, not what was written: ``1000m`` is stored as ``1`` and
``0.5`` as ``500m``. In resource lists, finer amounts are rounded up (away from zero) to milli.
"""

from typing import Any

from kubescene.api.defaulting.sharing import within
from kubescene.api.quantity import Quantity, QuantityError, canonical, from_milli, parse
from kubescene.types import JsonObject

_MILLI_NANOS = 10**6


def _stored_text(value: str | int | float) -> Any:
    try:
        return str(_rounded(parse(value)))
    except QuantityError:
        return value


def _rounded(quantity: Quantity) -> Quantity:
    if quantity.nanos % _MILLI_NANOS == 0:
        return quantity
    return from_milli(quantity.milli_value(), quantity.format)


def stored_quantity(value: Any) -> Any:
    """The quantity as the server keeps it in a resource list.

    What is no quantity is left alone, for validation to report.
    """
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return _stored_text(value)
    return value


def canonical_quantity(value: Any) -> Any:
    """A lone quantity as it is stored: canonical, but not rounded."""
    try:
        text = canonical(value)
    except (QuantityError, TypeError):
        return value
    return value if text == value else text


def resource_list(resources: JsonObject) -> JsonObject:
    """A resource list with every quantity as it is stored."""
    done = {name: stored_quantity(value) for name, value in resources.items()}
    return resources if done == resources else done


def default_resources(resources: JsonObject) -> JsonObject:
    """Requests and limits as they are stored."""
    return within(within(resources, "limits", resource_list), "requests", resource_list)
