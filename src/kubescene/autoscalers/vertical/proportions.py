"""Limits that follow requests: the ratio of limit to request stays as it was.

Amounts are scaled in whole millicores or bytes without floating point.
"""

from typing import NamedTuple

from kubescene.api import quantity
from kubescene.api.quantity import MAX_INT64, ZERO, Quantity
from kubescene.autoscalers.vertical.amounts import CPU


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
