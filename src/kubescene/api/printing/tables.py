"""Columns, tables, and the small readings that rows have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from kubescene.api import quantity
from kubescene.api.schemas.builtin_types import definition
from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.api.selectors.requirements import SelectorError
from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND
from kubescene.types import JsonObject, JsonValue, Nanoseconds

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

Cells: TypeAlias = list[JsonValue]
Row: TypeAlias = Callable[[JsonObject, Nanoseconds], Cells]

_PACKAGES = {"meta": "io.k8s.apimachinery.pkg.apis."}
_BUILT_IN = "io.k8s.api."


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column. A description such as ``@core.v1.PodSpec.nodeName`` is that of the field."""

    name: str
    description: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0

    def to_dict(self) -> JsonObject:
        """The column definition as a ``Table`` carries it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": _documented(self.description),
            "priority": self.priority,
        }


@dataclass(frozen=True)
class TableColumns:
    """Columns of one kind, and how to fill them."""

    columns: tuple[PrinterColumn, ...]
    row: Row
    """All cells of an object, in the order of the columns; objects are read, never changed."""
    conditions: Callable[[JsonObject], list[JsonObject]] = lambda _: []
    """Conditions of the row, such as that of a pod that has completed."""

    @cached_property
    def definitions(self) -> list[JsonObject]:
        """Column definitions on the wire; the first call may load the schemas."""
        return [column.to_dict() for column in self.columns]


def text(name: str, description: str = "") -> PrinterColumn:
    return PrinterColumn(name, description)


def integer(name: str, description: str = "") -> PrinterColumn:
    return PrinterColumn(name, description, "integer")


def boolean(name: str, description: str = "") -> PrinterColumn:
    return PrinterColumn(name, description, "boolean")


def wide(name: str, description: str = "") -> PrinterColumn:
    """A column that only ``-o wide`` shows."""
    return PrinterColumn(name, description, priority=1)


NAME = PrinterColumn("Name", "@meta.v1.ObjectMeta.name", format="name")
AGE = PrinterColumn("Age", "@meta.v1.ObjectMeta.creationTimestamp")
CREATED_AT = PrinterColumn("Created At", "@meta.v1.ObjectMeta.creationTimestamp", "date")
CONTAINERS = wide("Containers", "Names of each container in the template.")
IMAGES = wide("Images", "Images referenced by each container in the template.")


def dig(obj: JsonValue, path: str, default: JsonValue = None) -> JsonValue:
    """What stands at a dotted path; ``default`` where anything on the way is absent or null."""
    for step in _steps(path):
        # Most are plain dicts, and asking an abstract class costs more than all the rest.
        if type(obj) is not dict and not isinstance(obj, Mapping):
            return default
        obj = obj.get(step)
    return default if obj is None else obj


def name_of(obj: JsonObject) -> str:
    return str(dig(obj, "metadata.name", ""))


def condition(obj: JsonObject, kind: str) -> JsonObject | None:
    """The first condition of this type in the status."""
    return next((c for c in dig(obj, "status.conditions", ()) if c.get("type") == kind), None)


def is_true(obj: JsonObject, kind: str) -> bool:
    """Whether the status has this condition, and it holds."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def age(obj: JsonObject, now: Nanoseconds) -> str:
    """Time since creation."""
    return since(dig(obj, "metadata.creationTimestamp"), now)


def since(timestamp: str | None, now: Nanoseconds) -> str:
    """Time since an instant, for people; ``<unknown>`` if there is none."""
    return human_duration(now - parse_time(timestamp)) if timestamp else UNKNOWN


def human_duration(duration: Nanoseconds) -> str:
    """Two or three significant figures: ``90s``, ``5m30s``, ``3h``, ``2d4h``, ``3y20d``.

    A clock may lag by less than two seconds; what lies further ahead is ``<invalid>``.
    """
    if duration <= -2 * SECOND:
        return "<invalid>"
    seconds = max(duration, 0) // SECOND
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(
    selector: JsonObject | None, *, broken: str = "<error>", empty: str = NONE
) -> str:
    """A label selector as one line; ``broken`` if it is no good, ``empty`` if it says nothing."""
    try:
        return str(from_label_selector(selector)) or empty
    except SelectorError:
        return broken


def container_texts(pod_spec: JsonObject | None) -> tuple[str, str]:
    """Names and images of the containers of a pod template."""
    containers = dig(pod_spec, "containers", ())
    return (
        ",".join(c.get("name", "") for c in containers),
        ",".join(c.get("image", "") for c in containers),
    )


def amount(value: str | int | None) -> str:
    """A quantity in canonical form; zero if absent."""
    return "0" if value is None else quantity.canonical(value)


def shortened(items: list[str], shown: int = 3, separator: str = ",") -> str:
    """The first few of many: ``a,b,c + 2 more...``."""
    listed = separator.join(items[:shown])
    return listed if len(items) <= shown else f"{listed} + {len(items) - shown} more..."


def yes_or_no(value: bool | None) -> str:
    return UNSET if value is None else str(value)


def name_and_age(obj: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(obj), age(obj, now)]


NAME_AND_AGE = TableColumns((NAME, AGE), name_and_age)
NAME_AND_CREATION = TableColumns(
    (NAME, CREATED_AT), lambda obj, _: [name_of(obj), dig(obj, "metadata.creationTimestamp", "")]
)


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _documented(description: str) -> str:
    if not description.startswith("@"):
        return description
    type_name, _, field = description[1:].rpartition(".")
    package = _PACKAGES.get(type_name.partition(".")[0], _BUILT_IN)
    found = definition(package + type_name)["properties"].get(field, {})
    return str(found.get("description", ""))
