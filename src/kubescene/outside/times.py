"""Real times that programs outside write, replaced by the scenario's.

A program takes "now" from the machine's clock: in conditions, as the start of a pod or a job. In a
scenario it is another time, and it is the same in every run. Only fields that are times by their
name are looked at, and only times of the run itself are replaced: what the program has read from
the scenario and writes back stays as it is, and so does everything that belongs to people, such as
annotations and the data of a ConfigMap. A time that lies ahead (now and an hour) is not known to
be one of the machine's: it stays, too. So the scenario's own times had better not be today's.
"""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from kubescene.clock import SECOND, format_time, parse_time
from kubescene.types import JsonValue

TIMES = ("Time", "Timestamp")
"""How the names of times end: ``lastTransitionTime``, ``completionTime``, ``lastTimestamp`` ..."""
OTHER_TIMES = frozenset({"startedAt", "finishedAt", "timeAdded"})
OPAQUE = frozenset(
    {
        "annotations",
        "binaryData",
        "data",
        "fieldsV1",
        "labels",
        "matchLabels",
        "nodeSelector",
        "parameters",
        "stringData",
    }
)
"""Members whose own members are named by people, or by nobody that we know."""
WRITES = ("add", "replace")
"""Operations of a JSON patch whose value is written."""


class TimeWindow(NamedTuple):
    """The real time of a run, both ends included, and the instant that it stands for."""

    since: int
    until: int
    now: int

    def instead_of(self, text: str) -> str:
        """The scenario's time in the same notation; the text itself if it is no time of the run."""
        try:
            instant = parse_time(text)
        except ValueError:
            return text
        digits = len(text.partition(".")[2].rstrip("Zz").partition("+")[0].partition("-")[0])
        # A program writes fewer digits than the clock has: it was not earlier than that.
        step = SECOND // 10**digits
        if not self.since // step * step <= instant <= self.until:
            return text
        return written(self.now, digits, text)


def with_scenario_times(body: JsonValue, since: int, until: int, now: int) -> JsonValue:
    """A body as it would be if "now" were the scenario's: an object, or a patch of either kind.

    ``since`` and ``until`` are real, ``now`` is virtual, all in nanoseconds. What needs no change
    is not copied, and nothing is changed in place.
    """
    window = TimeWindow(since, until, now)
    if isinstance(body, list):
        return _list([_operation(each, window) for each in body], body)
    return _value(body, window)


def written(instant: int, digits: int, like: str) -> str:
    """An instant with so many digits after the second, its zone written as another text has it."""
    whole = format_time(instant).removesuffix("Z")
    fraction = f".{instant % SECOND:09d}"[: digits + 1] if digits else ""
    return f"{whole}{fraction}{'+00:00' if like.endswith('+00:00') else 'Z'}"


def is_time(name: str) -> bool:
    """Whether a field of this name holds a time, here and in custom resources."""
    return name.endswith(TIMES) or name in OTHER_TIMES


def _value(value: Any, window: TimeWindow) -> Any:
    if isinstance(value, Mapping):
        return _object({name: _member(name, each, window) for name, each in value.items()}, value)
    if isinstance(value, list):
        return _list([_value(each, window) for each in value], value)
    return value


def _member(name: str, value: Any, window: TimeWindow) -> Any:
    if isinstance(value, str):
        return window.instead_of(value) if is_time(name) else value
    if name in OPAQUE:
        return value
    if name == "managedFields" and isinstance(value, list):
        return _list([_managed(each, window) for each in value], value)
    return _value(value, window)


def _managed(entry: Any, window: TimeWindow) -> Any:
    time = entry.get("time") if isinstance(entry, Mapping) else None
    if not isinstance(time, str):
        return entry
    return _object({**entry, "time": window.instead_of(time)}, entry)


def _operation(operation: Any, window: TimeWindow) -> Any:
    """One operation of a JSON patch. What it only compares with is left alone."""
    if not isinstance(operation, Mapping) or operation.get("op") not in WRITES:
        return operation
    steps = [step.replace("~1", "/").replace("~0", "~") for step in _steps(operation.get("path"))]
    if not OPAQUE.isdisjoint(steps) or "value" not in operation:
        return operation
    value = operation["value"]
    name = next((step for step in reversed(steps) if not _is_index(step)), "")
    # The end of a list has the name of the list: its items are no times.
    name = name if steps and steps[-1] == name else ""
    return _object({**operation, "value": _member(name, value, window)}, operation)


def _steps(path: Any) -> Sequence[str]:
    return path.split("/")[1:] if isinstance(path, str) else ()


def _is_index(step: str) -> bool:
    return step == "-" or step.isdecimal()


def _object(made: dict[str, Any], value: Mapping[str, Any]) -> Any:
    """The object itself if none of its members was replaced."""
    return value if all(map(is_, made.values(), value.values())) else made


def _list(made: list[Any], value: list[Any]) -> Any:
    return value if all(map(is_, made, value)) else made
