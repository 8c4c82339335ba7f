"""What an Outage asks for, and what is wrong with that.

The schema of the kind knows types and names; what it cannot say is said here, before a run
(``kubescene validate``) and in the status of an Outage that was created all the same.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from kubescene.api.selectors.label_selectors import read_label_selector
from kubescene.api.selectors.requirements import SelectorError
from kubescene.controllers.builtin.outages.definition import (
    BOOTS_FAIL,
    BOOTS_SLOW,
    GAP,
    NO_CAPACITY,
    OF_GROUPS,
    PULL,
    RECLAIM,
    SILENT,
    STOLEN,
)
from kubescene.durations import parse_duration
from kubescene.types import JsonObject

NOTICE = "2m"
MOST_SLOW = 10_000
LENGTHS = ("after", "for", "notice", "pullTime")
OWN_FIELDS = {
    "notice": (RECLAIM,),
    "pods": (PULL,),
    "namespace": (PULL,),
    "pullTime": (PULL,),
    "pullError": (PULL,),
    "cpuShare": (STOLEN,),
    "bootFactor": (BOOTS_SLOW,),
    "failShare": (BOOTS_FAIL,),
    "code": (NO_CAPACITY, BOOTS_FAIL),
    "message": (NO_CAPACITY, BOOTS_FAIL),
}
"""Fields that only some of them have."""
SPREADING = (SILENT, PULL, STOLEN, GAP)
"""What is wrong with a place, not with machines: nodes that come there later have it, too."""
COMING_BACK = (*SPREADING, *OF_GROUPS)


class SpecFault(NamedTuple):
    """A field of the spec, and what is wrong with it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def spec_faults(spec: JsonObject) -> Iterator[SpecFault]:
    """All that is wrong with a spec whose types are right."""
    spec = {name: value for name, value in spec.items() if value is not None}
    what = spec["what"]
    if what in OF_GROUPS:
        yield from _place_faults(spec)
    elif "nodes" not in spec and "groups" not in spec:
        yield SpecFault("nodes", f"{what} needs a selector; write {{}} for all nodes")
    for name in ("nodes", "groups", "pods"):
        if name in spec:
            yield from _selector_faults(name, spec[name])
    yield from _amount_faults(spec)
    if "for" in spec and what not in COMING_BACK:
        yield SpecFault("for", f"nodes do not come back from {what}; leave it away")
    for name, owners in OWN_FIELDS.items():
        if name in spec and what not in owners:
            listed = " and ".join(owners)
            have = "have" if len(owners) > 1 else "has"
            yield SpecFault(name, f"only {listed} {have} it, and this is {what}; leave it away")
    yield from _own_faults(spec)
    for name in LENGTHS:
        if name in spec and (unreadable := _unreadable(spec[name])):
            yield SpecFault(name, unreadable)


def _amount_faults(spec: JsonObject) -> Iterator[SpecFault]:
    if "share" in spec and "count" in spec:
        yield SpecFault("share", "only one of share and count can be given")
    if not 0 < spec.get("share", 1) <= 1:
        yield SpecFault("share", f"must be above 0 and at most 1, not {spec['share']}")


def _place_faults(spec: JsonObject) -> Iterator[SpecFault]:
    what = spec["what"]
    if "groups" not in spec:
        yield SpecFault("groups", f"{what} needs a selector; write {{}} for all NodeGroups")
    if "nodes" in spec:
        yield SpecFault("nodes", f"{what} is about NodeGroups: name them by groups")


def _own_faults(spec: JsonObject) -> Iterator[SpecFault]:
    """What belongs to one of them alone, and is not there or makes no sense."""
    if spec["what"] == PULL and not spec.get("pullTime") and not spec.get("pullError"):
        message = "ImagePull needs pullTime (pulls are slow), pullError (pulls fail), or both"
        yield SpecFault("pullTime", message)
    if spec["what"] == STOLEN and not 0 < spec.get("cpuShare", 0) < 1:
        given = spec.get("cpuShare", "nothing")
        yield SpecFault("cpuShare", f"{STOLEN} needs a share above 0 and below 1, not {given}")

    if spec["what"] == BOOTS_SLOW and not 0 < spec.get("bootFactor", 0) <= MOST_SLOW:
        given = spec.get("bootFactor", "nothing")
        told = f"{BOOTS_SLOW} needs a number above 0 and at most {MOST_SLOW:,}, not {given}"
        yield SpecFault("bootFactor", told)
    if not 0 < spec.get("failShare", 1) <= 1:
        yield SpecFault("failShare", f"must be above 0 and at most 1, not {spec['failShare']}")


def _selector_faults(name: str, selector: Any) -> Iterator[SpecFault]:
    try:
        read_label_selector(selector)
    except SelectorError as error:
        yield SpecFault(name, str(error))


def _unreadable(text: str) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        return str(error)
    return ""


def length(spec: JsonObject, name: str, default: str) -> int:
    """A duration of a spec that has no faults, in nanoseconds."""
    return parse_duration(spec.get(name, default))


def lasts(spec: JsonObject) -> int | None:
    """From its beginning to its end; None: for good."""
    if spec["what"] == RECLAIM:
        return length(spec, "notice", NOTICE)
    return length(spec, "for", "0") if "for" in spec else None


def amount(spec: JsonObject, there: int) -> int:
    """How many of those that the selector chooses are affected."""
    if "share" in spec:
        return -int(-Fraction(str(spec["share"])) * there // 1)
    return min(int(spec.get("count", there)), there)
