"""From the plugin sets of a profile to the plugins at every extension point (K-5, K-6, K-7)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.defaulting import EVERY
from kubescene.scheduler.configuration.schema import MULTI_POINT
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint
from kubescene.types import JsonObject

MAX_SCORE = 100
MAX_TOTAL_SCORE = (1 << 63) - 1

PointsOf: TypeAlias = Callable[[str], Sequence[ExtensionPoint] | None]
"""The points that a plugin can stand at; None if there is no such plugin."""

ORDER = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.POST_FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
    ExtensionPoint.PRE_BIND,
    ExtensionPoint.BIND,
    ExtensionPoint.POST_BIND,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.QUEUE_SORT,
)
"""In which order kube-scheduler looks at the points: it decides which of two faults is told."""


class Expansion:
    """The plugin sets of one profile; ``points_of`` knows the plugins."""

    def __init__(self, plugins: JsonObject, points_of: PointsOf, path: str) -> None:
        self._plugins = plugins
        self._points_of = points_of
        self._path = path

    def points(self) -> dict[ExtensionPoint, tuple[EnabledPlugin, ...]]:
        """The plugins at every point in the order in which they run."""
        for point in ORDER:
            self._check(point)
        self._check_placement()
        names = {point: self._expanded(point) for point in ORDER}
        weights = self._weights()
        return {
            point: tuple(EnabledPlugin(name, weights.get(name, 1)) for name in names[point])
            for point in ExtensionPoint
        }

    def _enabled(self, set_name: str) -> list[str]:
        given = self._plugins.get(set_name) or {}
        return [each["name"] for each in given.get("enabled") or ()]

    def _check(self, point: ExtensionPoint) -> None:
        """What is enabled at a point must exist, belong there, and be named once."""
        names = self._enabled(field_of(point))
        for at, name in enumerate(names):
            place = f"{field_of(point)}.enabled[{at}]"
            points = self._points_of(name)
            if points is None:
                raise self._fault(f'{type_of(point)} "{name}" does not exist', place)
            if point not in points:
                raise self._fault(f'plugin "{name}" does not extend {type_of(point)} plugin', place)
            if name in names[:at]:
                raise self._twice(name, point, place)

    def _check_placement(self) -> None:
        """Pod groups are not placed by plugins here: nothing exists that could stand there."""
        for set_name in ("placementGenerate", "placementScore"):
            kind = f"{set_name[0].upper()}{set_name[1:]}Plugin"
            for at, name in enumerate(self._enabled(set_name)):
                text = f'{kind} "{name}" does not exist'
                if self._points_of(name) is not None:
                    text = f'plugin "{name}" does not extend {kind} plugin'
                raise self._fault(text, f"{set_name}.enabled[{at}]")

    def _expanded(self, point: ExtensionPoint) -> list[str]:
        given = self._plugins.get(field_of(point)) or {}
        disabled = {each["name"] for each in given.get("disabled") or ()}
        own = self._enabled(field_of(point))
        if EVERY in disabled:
            return own
        everywhere = self._everywhere(point, disabled, own)
        overriding = [name for name in own if name in everywhere]
        others = [name for name in own if name not in everywhere]
        return [*overriding, *(name for name in everywhere if name not in own), *others]

    def _everywhere(self, point: ExtensionPoint, disabled: set[str], own: list[str]) -> list[str]:
        """The plugins of ``multiPoint`` that belong to a point."""
        found: list[str] = []
        for at, name in enumerate(self._enabled(MULTI_POINT)):
            place = f"{MULTI_POINT}.enabled[{at}]"
            points = self._points_of(name)
            if points is None:
                raise self._fault(f'{type_of(point)} "{name}" does not exist', place)
            if point not in points or name in disabled:
                continue
            if name in found and name not in own:
                raise self._twice(name, point, place)
            found.append(name)
        return list(dict.fromkeys(found))

    def _weights(self) -> Mapping[str, int]:
        """Of each Score plugin; what is said at Score comes before multiPoint (K-6)."""
        weights: dict[str, int] = {}
        total = 0
        for set_name in ("score", MULTI_POINT):
            given = self._plugins.get(set_name) or {}
            for each in given.get("enabled") or ():
                name, weight = each["name"], each.get("weight") or 1
                if name in weights or ExtensionPoint.SCORE not in (self._points_of(name) or ()):
                    continue
                weights[name] = weight
                if weight * MAX_SCORE > _int64(MAX_TOTAL_SCORE - total):
                    text = "score plugins: total score of Score plugins could overflow"
                    raise self._fault(text, set_name)
                total += weight * MAX_SCORE
        return weights

    def _twice(self, name: str, point: ExtensionPoint, place: str) -> SchedulerConfigurationError:
        return self._fault(f'plugin "{name}" already registered as "{type_of(point)}"', place)

    def _fault(self, text: str, place: str) -> SchedulerConfigurationError:
        return SchedulerConfigurationError(text, f"{self._path}.{place}")


def field_of(point: ExtensionPoint) -> str:
    """Under which name a point is configured: ``preFilter``."""
    return point[0].lower() + point[1:]


def type_of(point: ExtensionPoint) -> str:
    return f"{point}Plugin"


def _int64(value: int) -> int:
    """As 64 bits hold it: upstream's check for overflow overflows itself."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
