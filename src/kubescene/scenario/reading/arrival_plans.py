"""What ``arrivals`` of a create operation says: when objects come, how large, how long they run.

``{poisson: {every: 30s}, for: 1h, cpu: {uniform: {min: 100m, max: 2}}, runTime: 5m}``. Times count
from the operation. Amounts are put into the pod that comes, or into the template of what comes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from kubescene.clock import Streams, parse_duration
from kubescene.clock.distributions import LARGEST, Distribution, read_distribution
from kubescene.controllers.kubelet.behaviour import PREFIX
from kubescene.durations import go_duration
from kubescene.errors import ScenarioError
from kubescene.scenario.fields.table import MAX_COUNT
from kubescene.types import JsonObject
from kubescene.usage.courses import parse_amount

RUN_TIME = "runTime"
RUN_TIME_ANNOTATION = f"{PREFIX}run-time"
RESOURCES = ("cpu", "memory")
AMOUNTS = (*RESOURCES, RUN_TIME)
COLUMNS = ("at", *AMOUNTS)
PATTERNS = ("poisson", "uniform", "bursts", "listed", "file")


class ArrivalTimes(Protocol):
    """A pattern: when each comes, in nanoseconds from the operation."""

    def offset(self, index: int, before: int, draw: Callable[[Distribution, str], int]) -> int:
        """That of one of them; ``before`` is that of the one before it, zero for the first."""
        ...


class RandomTimes(Struct, frozen=True):
    """A Poisson process: gaps are exponential and independent."""

    gap: Distribution

    def offset(self, index: int, before: int, draw: Callable[[Distribution, str], int]) -> int:
        del index
        return before + draw(self.gap, "gap")


class RegularTimes(Struct, frozen=True):
    """So many at once, the first of them at once, and again and again."""

    every: int
    size: int

    def offset(self, index: int, before: int, draw: Callable[[Distribution, str], int]) -> int:
        del before, draw
        return index // self.size * self.every


class ListedTimes(Struct, frozen=True):
    offsets: tuple[int, ...]

    def offset(self, index: int, before: int, draw: Callable[[Distribution, str], int]) -> int:
        del before, draw
        return self.offsets[index]


class ArrivalPlan(Struct, frozen=True):
    """When objects come, and what is drawn for each of them.

    Every number has a stream of its own, named by operation, object and purpose: neither another
    operation nor another amount changes what is drawn.
    """

    times: ArrivalTimes
    most: int
    length: int
    """They come before that time is over."""
    amounts: Mapping[str, Distribution]
    listed: tuple[Mapping[str, Distribution], ...] = ()
    """Amounts of single objects, which win."""

    def next(self, index: int, before: int, streams: Streams, name: str) -> int | None:
        """When an object comes after the operation; None if there is none."""
        if index >= self.most:
            return None

        def draw(amount: Distribution, what: str) -> int:
            return amount.draw(streams.single(stream_name(name, index, what)))

        offset = self.times.offset(index, before, draw)
        return offset if offset < self.length else None

    def amounts_of(self, index: int, streams: Streams, name: str) -> dict[str, str]:
        """What is said of an object, as Kubernetes writes it."""
        own = self.listed[index] if self.listed else {}
        given = {**self.amounts, **own}
        return {
            what: WRITE[what](given[what].draw(streams.single(stream_name(name, index, what))))
            for what in AMOUNTS
            if what in given
        }

    @property
    def said(self) -> frozenset[str]:
        """The amounts that are given to any object."""
        return frozenset(self.amounts).union(*self.listed)


def stream_name(operation: str, index: int, what: str) -> str:
    return f"arrivals/{operation}/{index}/{what}"


def read_plan(body: Mapping[str, Any]) -> ArrivalPlan:
    """The plan of a create operation; raises `ScenarioError` with the way from its body."""
    given = {name: part for name, part in body["arrivals"].items() if part is not None}
    present = [name for name in PATTERNS if name in given]
    if len(present) != 1:
        found = ", ".join(present) or "none"
        raise _fault(f"exactly one of {', '.join(PATTERNS)} must be set; found: {found}")
    (pattern,) = present
    if pattern == "file":
        told = "there is no folder to read from: only a file that is played has one"
        raise _fault(told, "file")
    amounts = _amounts(given, ())
    if pattern == "listed":
        return _listed_plan(body, given, amounts)
    every = _positive(given[pattern]["every"], pattern, "every")
    size = given[pattern].get("size") or 1
    length = LARGEST if "for" not in given else _positive(given["for"], "for")
    count = body.get("count")
    _check_number(-(-length // every) * size, count, bounded="for" in given)
    if pattern == "poisson":
        times: ArrivalTimes = RandomTimes(read_distribution({"exponential": {"mean": every}}, int))
    else:
        times = RegularTimes(every, size)
    return ArrivalPlan(times, count or LARGEST, length, amounts)


def _check_number(number: int, count: int | None, *, bounded: bool) -> None:
    if count is None and not bounded:
        raise _fault("say how many come at most (count beside arrivals), or for how long (for)")
    if count is None and number > MAX_COUNT:
        raise _fault(f"{number} objects would come, more than {MAX_COUNT}; a count bounds", "for")


def _listed_plan(
    body: Mapping[str, Any], given: Mapping[str, Any], amounts: Mapping[str, Distribution]
) -> ArrivalPlan:
    if "for" in given:
        raise _fault("not beside listed objects: the list says when the last one comes", "for")
    if body.get("count") is not None:
        told = "not beside listed arrivals: the list says how many come"
        raise ScenarioError(told, path=("count",))
    rows = given["listed"]
    if not rows or len(rows) > MAX_COUNT:
        raise _fault(f"must have from 1 to {MAX_COUNT} entries", "listed")
    offsets = tuple(_in_order(rows))
    own = tuple(_amounts(row, ("listed", number)) for number, row in enumerate(rows))
    return ArrivalPlan(ListedTimes(offsets), len(rows), LARGEST, amounts, own)


def _in_order(rows: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    before = 0
    for number, row in enumerate(rows):
        offset = _duration_at(row["at"], "listed", number, "at")
        if offset < before:
            raise _fault(went_back(row["at"], rows[number - 1]["at"]), "listed", number, "at")
        yield offset
        before = offset


def went_back(at: str, before: str) -> str:
    return f"{at} is before {before}: the entries must be in the order of their times"


def _amounts(given: Mapping[str, Any], place: tuple[str | int, ...]) -> dict[str, Distribution]:
    found = {}
    for name in AMOUNTS:
        if given.get(name) is not None:
            try:
                found[name] = read_distribution(given[name], READ[name])
            except ValueError as error:
                raise _fault(str(error), *place, name) from error
    return found


def _positive(text: str, *place: str) -> int:
    found = _duration_at(text, *place)
    if not found:
        raise _fault(f"must be longer than zero, such as 5m, not {text!r}", *place)
    return found


def _duration_at(text: str, *place: str | int) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise _fault(str(error), *place) from error


def _fault(message: str, *place: str | int) -> ScenarioError:
    return ScenarioError(message, path=("arrivals", *place))


def _read_time(value: Any) -> int:
    return parse_duration(value if isinstance(value, str) else repr(value))


def _read_bytes(value: Any) -> int:
    return parse_amount(value) // 1000


READ: Mapping[str, Callable[[Any], int]] = {
    "cpu": parse_amount,
    "memory": _read_bytes,
    RUN_TIME: _read_time,
}
WRITE: Mapping[str, Callable[[int], str]] = {
    "cpu": lambda thousandths: f"{thousandths}m",
    "memory": str,
    RUN_TIME: go_duration,
}


# -- the pod that comes --------------------------------------------------------------------------


def pod_of(obj: JsonObject) -> JsonObject | None:
    """The pod that amounts are put into: the object, or its template; None if it has none."""
    pod = obj if obj.get("kind") == "Pod" else _member(_member(obj, "spec"), "template")
    containers = _member(pod, "spec").get("containers")
    first = containers[0] if isinstance(containers, list) and containers else None
    if not isinstance(first, dict):
        return None
    parts = (pod.get("metadata"), _member(pod, "metadata").get("annotations"))
    sizes = (first.get("resources"), _member(first, "resources").get("requests"))
    return pod if all(each is None or isinstance(each, dict) for each in parts + sizes) else None


def _member(value: Any, name: str) -> JsonObject:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def with_amounts(obj: JsonObject, amounts: Mapping[str, str]) -> JsonObject:
    """The object whose pod asks for so much and runs for so long."""
    pod = pod_of(obj)
    if not amounts or pod is None:
        return obj
    changed = _pod_with(pod, amounts)
    return changed if pod is obj else {**obj, "spec": {**obj["spec"], "template": changed}}


def _pod_with(pod: JsonObject, amounts: Mapping[str, str]) -> JsonObject:
    requests = {name: amounts[name] for name in RESOURCES if name in amounts}
    if RUN_TIME in amounts:
        metadata = _member(pod, "metadata")
        own = {RUN_TIME_ANNOTATION: amounts[RUN_TIME]}
        annotations = {**_member(metadata, "annotations"), **own}
        pod = {**pod, "metadata": {**metadata, "annotations": annotations}}
    if not requests:
        return pod
    first, *others = pod["spec"]["containers"]
    resources = _member(first, "resources")
    requests = {**_member(resources, "requests"), **requests}
    first = {**first, "resources": {**resources, "requests": requests}}
    return {**pod, "spec": {**pod["spec"], "containers": [first, *others]}}
