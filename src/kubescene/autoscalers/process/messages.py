"""The autoscaler interface's values as protobuf messages, and back."""

from collections.abc import Iterable
from typing import Any

import msgspec

from kubescene.autoscalers.interfaces import (
    Autoscaler,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    RecommendedPodResources,
    Stat,
    StatRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.process.definitions import message, methods, unknown_numbers

FILE = "autoscaler"
PLUGIN = methods(FILE, "Plugin")
HEALTH = methods("health", "Health")
CONTROLLER = methods("go_plugin", "GRPCController")
STDIO = methods("go_plugin", "GRPCStdio")

Empty = message(FILE, "Empty")
SERVING = 1
_METRICS = frozenset(MetricType)
_Event = message(FILE, "EventRequest")
_Autoscaler = message(FILE, "Autoscaler")
_Pod = message(FILE, "Pod")
_Stat = message(FILE, "Stat")
_StatRequest = message(FILE, "StatRequest")
_Resources = message(FILE, "RecommendedPodResources")
_PodNames = message(FILE, "PodNames")
_Horizontal = message(FILE, "HorizontalRecommendationResponse")
_Vertical = message(FILE, "VerticalRecommendationResponse")


def event_message(request: EventRequest) -> Any:
    made = _Event(partition=request.partition, time=request.time, type=request.type)
    told = request.object
    if isinstance(told, Autoscaler):
        made.autoscaler.CopyFrom(_Autoscaler(type=told.type, yaml=told.yaml))
    else:
        made.pod.CopyFrom(
            _Pod(
                name=told.name,
                state=told.state,
                last_transition=told.last_transition,
                cpu_request=told.cpu_request,
                memory_request=told.memory_request,
            )
        )
    return made


def event_of(got: Any) -> EventRequest:
    """Raises ValueError for an event about nothing, or of a type that nobody knows."""
    return EventRequest(got.partition, got.time, EventType(got.type), _object_of(got))


def _object_of(got: Any) -> Autoscaler | Pod:
    match got.WhichOneof("object_oneof"):
        case "autoscaler":
            return Autoscaler(got.autoscaler.type, got.autoscaler.yaml)
        case "pod":
            pod = got.pod
            return Pod(
                pod.name, str(pod.state), pod.last_transition, pod.cpu_request, pod.memory_request
            )
        case _:
            raise ValueError("the event has neither an autoscaler nor a pod")


def stat_message(request: StatRequest) -> Any:
    stats = [
        _Stat(time=each.time, pod_name=each.pod_name, type=each.type, value=each.value)
        for each in request.stat
    ]
    return _StatRequest(partition=request.partition, stat=stats)


def stats_of(got: Any) -> StatRequest:
    """Stats of types that we do not know are left out."""
    return StatRequest(
        got.partition,
        tuple(
            Stat(each.time, each.pod_name, MetricType(each.type), each.value)
            for each in got.stat
            if each.type in _METRICS
        ),
    )


def horizontal_message(answer: HorizontalRecommendationResponse) -> Any:
    _check_response(answer, HorizontalRecommendationResponse)
    return _Horizontal(
        rec=_whole(answer.rec, "rec"), reason=answer.reason, details=_json(answer.details)
    )


def horizontal_of(got: Any) -> HorizontalRecommendationResponse:
    return HorizontalRecommendationResponse(got.rec, got.reason, _details(got.details))


def vertical_message(answer: VerticalRecommendationResponse) -> Any:
    _check_response(answer, VerticalRecommendationResponse)
    made = _Vertical(
        rec=[_resources_message(each) for each in answer.rec],
        resize=answer.resize,
        withheld=not answer.admit,
        reason=answer.reason,
        details=_json(answer.details),
    )
    if answer.evict is not None:
        made.evict.CopyFrom(_PodNames(name=answer.evict))
    return made


def vertical_of(got: Any) -> VerticalRecommendationResponse:
    return VerticalRecommendationResponse(
        tuple(
            RecommendedPodResources(
                each.lower_bound, each.upper_bound, each.target, each.resource_name
            )
            for each in got.rec
        ),
        evict=tuple(got.evict.name) if got.HasField("evict") else None,
        resize=tuple(got.resize),
        admit=not got.withheld,
        reason=got.reason,
        details=_details(got.details),
    )


def capabilities_of(numbers: Iterable[int]) -> frozenset[Capability]:
    """Those that we know."""
    known = {int(each): each for each in Capability}
    return frozenset(known[each] for each in numbers if each in known)


def unreadable(got: Any) -> str:
    """What is wrong with a message that has a field of another type than it should; or ``""``.

    Protobuf skips such a field as if it were a new one, and the answer would silently be 0.
    """
    known = got.DESCRIPTOR.fields_by_number
    for number in unknown_numbers(got):
        if number in known:
            name = known[number].name
            return f"field {name} of {got.DESCRIPTOR.name} is of another type than it should be"
    return ""


def _resources_message(each: RecommendedPodResources) -> Any:
    return _Resources(
        lower_bound=_whole(each.lower_bound, "lower_bound"),
        upper_bound=_whole(each.upper_bound, "upper_bound"),
        target=_whole(each.target, "target"),
        resource_name=each.resource_name,
    )


def _check_response(answer: Any, wanted: type) -> None:
    if not isinstance(answer, wanted):
        raise TypeError(f"the answer is no {wanted.__name__} but {answer!r}")


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, not a whole number")
    return value


def _json(details: dict[str, Any]) -> bytes:
    return msgspec.json.encode(details) if details else b""


def _details(text: bytes) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
