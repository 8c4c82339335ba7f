"""What a container uses over time, as data: amounts, shares of its requests, series by its age.

    cpu: 200m                                            the same all the time
    cpu: {normal: {mean: 200m, deviation: 50m}}          drawn once for every run of a container
    cpu: {share: 0.5}                                    half of what it requests
    cpu: {series: [{at: 0s, value: 100m}, {at: 1m, value: 400m}], interpolation: Linear}

Ages count from the start of a run; before the first point nothing is used.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kubescene.api.quantity import QuantityError, milli_value
from kubescene.clock.distributions import Distribution, ReadSamples, read_distribution
from kubescene.types import Nanoseconds
from kubescene.usage.series import LARGEST, RESOURCES, Points, read_points

LINEAR = "Linear"
INTERPOLATIONS = (LINEAR, "Previous")
PARTS = 1_000_000
MOST_SHARE = 1000


class UsageCourse(Struct, frozen=True):
    """What is used of one resource: exactly one of these is given."""

    amount: Distribution | None = None
    """Thousandths."""
    share: int | None = None
    """Of the request, in millionths."""
    points: Points | None = None

    def by_age(self, requested: int, draw: Callable[[Distribution], int]) -> Points:
        """The course of one run; thousandths by nanoseconds since its start."""
        if self.points is not None:
            return self.points
        if self.share is not None:
            return Points((0,), (requested * self.share // PARTS,))
        assert self.amount is not None
        return Points((0,), (draw(self.amount),))


class UsageCourses(Struct, frozen=True):
    """By resource; None: nothing is said of it."""

    cpu: UsageCourse | None = None
    memory: UsageCourse | None = None


def exceeded_at(points: Points, limit: int) -> Nanoseconds | None:
    """The age at which a course is above a limit for the first time; None if it never is."""
    for place, (time, value) in enumerate(zip(points.times, points.values, strict=True)):
        if value > limit:
            return time
        if not points.linear or place + 1 == len(points.times):
            continue
        following = points.values[place + 1]
        if following > limit:
            # The first instant of the line that is a whole thousandth above the limit.
            length, rise = points.times[place + 1] - time, following - value
            return time - (-(limit + 1 - value) * length // rise)
    return None


def read_courses(value: Any, samples: ReadSamples | None = None) -> UsageCourses:
    """What is written as ``usage``; ValueError begins with the resource at fault."""
    if not isinstance(value, Mapping):
        raise ValueError("must be an object with cpu or memory")
    for name in value:
        if name not in RESOURCES:
            raise ValueError(f"has no {name}; it has {' and '.join(RESOURCES)}")
    return UsageCourses(
        **{name: _named(name, part, samples) for name, part in value.items() if part is not None}
    )


def _named(name: str, value: Any, samples: ReadSamples | None) -> UsageCourse:
    try:
        return _course(value, samples)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _course(value: Any, samples: ReadSamples | None) -> UsageCourse:
    if isinstance(value, Mapping) and "share" in value:
        return UsageCourse(share=_share(value))
    if isinstance(value, Mapping) and "series" in value:
        return UsageCourse(points=_series(value))
    return UsageCourse(amount=read_distribution(value, parse_amount, samples))


def _share(value: Mapping[str, Any]) -> int:
    share = value["share"]
    if len(value) > 1:
        raise ValueError("a share stands alone")
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise ValueError(f"share must be a number, not {share!r}")
    if not 0 <= share <= MOST_SHARE:
        raise ValueError(f"share must be from 0 to {MOST_SHARE}, not {share!r}")
    return round(share * PARTS)


def _series(value: Mapping[str, Any]) -> Points:
    if unknown := [str(name) for name in value if name not in ("series", "interpolation")]:
        raise ValueError(f"a series has no {', '.join(unknown)}; it may have interpolation")
    kind = value.get("interpolation", "Previous")
    if kind not in INTERPOLATIONS:
        raise ValueError(f"interpolation must be one of {', '.join(INTERPOLATIONS)}, not {kind!r}")
    series = value["series"]
    if not isinstance(series, list | tuple) or not series:
        raise ValueError("series must be a list of points ({at, value})")
    return read_points(series, linear=kind == LINEAR, where="series")


def parse_amount(value: Any) -> int:
    """A quantity in thousandths."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is no quantity")
    try:
        amount = milli_value(str(value))
    except QuantityError as error:
        raise ValueError(str(error)) from error
    if not 0 <= amount <= LARGEST:
        raise ValueError(f"{value!r} is negative or too large")
    return amount
