"""``spec.controllers.outside``: controllers that run in processes of their own.

What is declared here says who they are, how they get their turns, and how it is judged that they
have nothing left to do. No program is started from a scenario: whoever plays it says how.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from kubescene.clock import SECOND, parse_duration
from kubescene.types import JsonObject

DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_TIMEOUT = 240 * SECOND
DEFAULT_ATTACH_TIMEOUT = 60 * SECOND
QUIET_WAITER = "quiet"
UNCHECKED = "Unchecked"


class OutsideKind(StrEnum):
    """How a controller gets its turns."""

    SCHEDULER = "scheduler"
    OPERATOR = "operator"
    BAG = "bag"


class ShownPods(StrEnum):
    """How many of the pods that wait a scheduler is shown in a turn."""

    ONE_POD = "OnePod"
    ALL_PODS = "AllPods"


class WaiterCondition(Struct, frozen=True):
    """A sentence about every object of a kind, or about all of them (see `fields.CONDITION`)."""

    api_version: str
    kind: str
    expression: str
    namespace: str = ""
    message: str = ""


class WaiterSpec(Struct, frozen=True):
    """A waiter by name, or conditions; ``quiet_ns`` of silence come first, if they are given."""

    name: str = QUIET_WAITER
    quiet_ns: int | None = None
    conditions: tuple[WaiterCondition, ...] = ()


class OutsideController(Struct, frozen=True):
    """One controller outside. Times are real ones, in nanoseconds.

    ``scheduler_names`` are those of the profiles of a scheduler: the pods that are its own.
    """

    name: str
    kind: OutsideKind = OutsideKind.OPERATOR
    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER_NAME,)
    feed: ShownPods = ShownPods.ONE_POD
    waiter: WaiterSpec | None = None
    timeout_ns: int = DEFAULT_TIMEOUT
    attach_timeout_ns: int = DEFAULT_ATTACH_TIMEOUT
    unchecked: bool = False


class OutsideStatus(Struct, frozen=True):
    """What ``status.outside`` says of one: by which signs it was judged to have nothing left to do.

    ``same_bytes``: another run will give the same; if not, ``message`` says why.
    """

    name: str
    kind: str
    judged_by: tuple[str, ...] = ()
    same_bytes: bool = False
    message: str = ""

    def to_dict(self) -> JsonObject:
        said = {"message": self.message} if self.message else {}
        signs = [*self.judged_by]
        told = {"name": self.name, "kind": self.kind, "judgedBy": signs}
        return {**told, "sameBytes": self.same_bytes, **said}


def outside_of(spec: Mapping[str, Any]) -> tuple[OutsideController, ...]:
    """The outside controllers of a spec without faults, in list order."""
    return tuple(map(_controller, entries_of(spec)))


def entries_of(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """``spec.controllers.outside`` as it is written."""
    return (spec.get("controllers") or {}).get("outside") or ()


def _controller(entry: Mapping[str, Any]) -> OutsideController:
    return OutsideController(
        name=entry["name"],
        kind=OutsideKind(entry.get("kind") or OutsideKind.OPERATOR),
        scheduler_names=scheduler_names_of(entry),
        feed=ShownPods(entry.get("feed") or ShownPods.ONE_POD),
        waiter=_waiter(entry.get("waiter")),
        timeout_ns=duration_of(entry, "timeout") or DEFAULT_TIMEOUT,
        attach_timeout_ns=duration_of(entry, "attachTimeout") or DEFAULT_ATTACH_TIMEOUT,
        unchecked=entry.get("settings") == UNCHECKED,
    )


def scheduler_names_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Whose pods a scheduler takes; a pod without a name is of the default one."""
    names = entry.get("schedulerNames") or (entry.get("schedulerName"),)
    return tuple(name or DEFAULT_SCHEDULER_NAME for name in names)


def scheduler_of(pod: Mapping[str, Any]) -> str:
    """Whose pod it is."""
    return str(pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER_NAME)


def _waiter(given: Mapping[str, Any] | None) -> WaiterSpec | None:
    if given is None:
        return None
    return WaiterSpec(
        name=given.get("name") or ("" if given.get("conditions") else QUIET_WAITER),
        quiet_ns=duration_of(given, "quietPeriod"),
        conditions=tuple(map(_condition, given.get("conditions") or ())),
    )


def _condition(given: Mapping[str, Any]) -> WaiterCondition:
    return WaiterCondition(
        given["apiVersion"],
        given["kind"],
        given["expression"],
        given.get("namespace") or "",
        given.get("message") or "",
    )


def duration_of(given: Mapping[str, Any], name: str) -> int | None:
    """A duration in nanoseconds; raises `ValueError` if it is none."""
    text = given.get(name)
    return None if text is None else parse_duration(text)
