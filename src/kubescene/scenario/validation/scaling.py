"""Who scales what in a scenario, and by which numbers: what cannot come of it, said before.

Only objects that operations create are looked at, as they are created. Where names are counted
(``$(INDEX)``) or come with arrivals, nothing is said of what is not there.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from kubescene.durations import format_duration, parse_duration
from kubescene.types import JsonObject, Nanoseconds

HPA = ("autoscaling", "HorizontalPodAutoscaler")
VPA = ("autoscaling.k8s.io", "VerticalPodAutoscaler")
KPA = ("autoscaling.internal.knative.dev", "PodAutoscaler")
KEDA = ("keda.sh", "ScaledObject")
PLUGIN = ("kubescene.dev", "PluginAutoscaler")
SERIES = ("kubescene.dev", "MetricSeries")
TRAFFIC = ("kubescene.dev", "Traffic")
SCALING = frozenset({HPA, VPA, KPA, KEDA, PLUGIN, SERIES, TRAFFIC})
TARGETS = ("Deployment", "ReplicaSet", "ReplicationController", "Service", "StatefulSet")
"""Kinds whose objects have the names that operations give them."""
OF_REQUESTS = frozenset({"requests_per_second", "concurrent_requests"})
"""What a Traffic measures of pods and Services."""
LISTED = 10_000
"""More times than that nobody writes by hand."""
VAIN = "has no effect"
UNASKED = "it goes by requests, and none come: create a Traffic"

Place: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


class Remark(NamedTuple):
    """What is said of which object, by its number."""

    number: int
    what: str
    why: str
    effect: str = VAIN


class Created(NamedTuple):
    """An object that an operation creates, and how much time passes from then on."""

    obj: JsonObject
    passing: Nanoseconds
    is_counted: bool = False
    """Whether it stands for several, whose names are not known."""

    @property
    def kind(self) -> tuple[str, str]:
        return str(self.obj["apiVersion"]).rpartition("/")[0], self.obj["kind"]

    @property
    def place(self) -> Place:
        metadata = _dict(self.obj.get("metadata"))
        name, namespace = metadata.get("name"), metadata.get("namespace")
        return self.obj["kind"], str(namespace or "default"), str(name)

    @property
    def spec(self) -> JsonObject:
        return _dict(self.obj.get("spec"))

    @property
    def target(self) -> Place | None:
        """What it scales, or sends requests to; None if that is not one named object."""
        spec, namespace = self.spec, self.place[1]
        if self.kind == TRAFFIC:
            to = _dict(spec.get("to"))
            for kind in ("Service", "Deployment"):
                if to.get(kind.lower()):
                    return kind, namespace, str(to[kind.lower()])
            given = _dict(to.get("scale"))
        else:
            given = _dict(spec.get("targetRef" if self.kind == VPA else "scaleTargetRef"))
        kind = given.get("kind") or ("Deployment" if self.kind == KEDA else "")
        return (str(kind), namespace, str(given["name"])) if kind and given.get("name") else None


class CreatedObjects:
    """What is created, by what is asked of it."""

    def __init__(self, created: Iterable[Created], *, is_whole: bool) -> None:
        """``is_whole``: whether there is nothing in the world but what operations create."""
        self._created = [*created]
        self._is_whole = is_whole
        self._by_place = {each.place: each for each in self._created}
        self._counted = {each.kind[1] for each in self._created if each.is_counted}

    def remarks(self) -> Iterator[Remark]:
        for number, each in enumerate(self._created):
            if each.kind in SCALING and not each.is_counted:
                said = (*self._of_target(each), *self._of_rivals(number, each))
                said = (*said, *self._of_numbers(each), *_late(each), *_senseless(each))
                yield from (Remark(number, *one) for one in said)

    def _of_target(self, each: Created) -> Iterator[tuple[str, str]]:
        target = each.target
        if target is None or not self._is_whole or target[0] not in TARGETS:
            return
        if target not in self._by_place and target[0] not in self._counted:
            yield shown(each.place), f"nothing in the scenario creates {shown(target)}"

    def _of_rivals(self, number: int, each: Created) -> Iterator[tuple[str, str, str]]:
        """Others before it that scale the same: each undoes what the other does."""
        for other in self._created[:number]:
            if each.target is None or other.target != each.target or other.is_counted:
                continue
            effect = f"is in the way of {shown(other.place)}"
            if {each.kind, other.kind} <= {HPA, KPA, KEDA, PLUGIN}:
                yield shown(each.place), f"both scale {shown(each.target)}", effect
            elif VPA in (each.kind, other.kind):
                shared = [name for name in _goes_by(each) if name in _goes_by(other)]
                if shared:
                    why = f"both go by {' and '.join(shared)} of {shown(each.target)}"
                    yield shown(each.place), why, effect

    def _of_numbers(self, each: Created) -> Iterator[tuple[str, str]]:
        if each.kind == KPA and each.target and self._is_whole and not self._comes(each.place[1]):
            yield f"metrics of {shown(each.place)}", UNASKED
        if each.kind != HPA:
            return
        for metric in _metrics(each):
            kind = metric.get("type")
            source = _dict(metric.get(_member(kind)))
            if kind in ("Resource", "ContainerResource"):
                yield from self._of_utilization(each, source)
                continue
            name = str(_dict(source.get("metric")).get("name"))
            if self._is_whole and not self._is_measured(name, each.place[1], str(kind)):
                why = "nobody measures it: create a MetricSeries"
                yield f"the metric {name} of {shown(each.place)}", why

    def _comes(self, namespace: str) -> bool:
        load = [each for each in self._created if each.kind == TRAFFIC]
        return any(each.is_counted or each.place[1] == namespace for each in load)

    def _is_measured(self, name: str, namespace: str, kind: str) -> bool:
        form = _member(kind)
        for each in self._created:
            if each.place[1] != namespace and not each.is_counted:
                continue
            if each.kind == SERIES and each.spec.get("metric") == name and form in each.spec:
                return True
            if each.kind == TRAFFIC and name in OF_REQUESTS and form != "external":
                return True
        return False

    def _of_utilization(self, each: Created, source: JsonObject) -> Iterator[tuple[str, str]]:
        target = None if each.target is None else self._by_place.get(each.target)
        name = source.get("name")
        if target is None or "averageUtilization" not in _dict(source.get("target")):
            return
        if any(other.kind == VPA and other.target == each.target for other in self._created):
            return
        if "LimitRange" in {other.kind[1] for other in self._created}:
            return
        pod = _dict(_dict(target.spec.get("template")).get("spec"))
        for container in () if "resources" in pod else _dicts(pod.get("containers")):
            resources = _dict(container.get("resources"))
            given = {**_dict(resources.get("limits")), **_dict(resources.get("requests"))}
            if name not in given and source.get("container") in (None, container.get("name")):
                what = f"the utilization of {name} in {shown(each.place)}"
                yield (
                    what,
                    f"container {container.get('name')} of {shown(target.place)} requests none",
                )
                return


def _metrics(each: Created) -> Sequence[JsonObject]:
    return _dicts(each.spec.get("metrics"))


def _goes_by(each: Created) -> Sequence[str]:
    """Resources that decide: of pods' number, or of their size."""
    if each.kind == HPA:
        sources = [_dict(metric.get(_member(metric.get("type")))) for metric in _metrics(each)]
        named = [source.get("name") for source in sources if "name" in source]
        return [str(name) for name in named] if each.spec.get("metrics") else ["cpu"]
    if each.kind == KEDA:
        return [str(one.get("type")) for one in _dicts(each.spec.get("triggers"))]
    if each.kind != VPA or _dict(each.spec.get("updatePolicy")).get("updateMode") == "Off":
        return ()
    policies = _dicts(_dict(each.spec.get("resourcePolicy")).get("containerPolicies"))
    said = [one.get("controlledResources") for one in policies if one.get("mode") != "Off"]
    if not policies or None in said:
        return ("cpu", "memory")
    return [name for name in ("cpu", "memory") if any(name in one for one in said if one)]


def _late(each: Created) -> Iterator[tuple[str, str]]:
    """The first point, or request, that comes after the end."""
    spec, where = each.spec, "spec.points"
    times = [point.get("at") for point in _dicts(spec.get("points"))]
    if each.kind == TRAFFIC:
        arrivals = _dict(spec.get("arrivals"))
        given = _dict(arrivals.get("piecewise")).get("points")
        where, times = (
            "spec.arrivals.piecewise.points",
            [point.get("at") for point in _dicts(given)],
        )
        recorded = _dict(arrivals.get("replay")).get("arrivals")
        if isinstance(recorded, list):
            where, times = "spec.arrivals.replay.arrivals", recorded
    elif each.kind != SERIES:
        return
    if not each.passing:
        return
    # As many come of a file, which are in order: then the last one tells.
    first = len(times) - 1 if len(times) > LISTED else 0
    for place, time in enumerate(times[first:], first):
        try:
            at = parse_duration(str(time))
        except ValueError:
            return  # a fault, and told as one
        if at > each.passing:
            what = f"{where}[{place}] of {shown(each.place)}"
            yield what, f"it comes at {time}, and {format_duration(each.passing)} pass"
            return


def _senseless(each: Created) -> Iterator[tuple[str, str]]:
    """What KEDA accepts, and tells by a condition."""
    if each.kind != KEDA:
        return
    # What reads formulas takes longer to load than many a scenario to check.
    from kubescene.autoscalers.keda.objects import read_scaled_object

    _, namespace, name = each.place
    metadata = {**_dict(each.obj.get("metadata")), "namespace": namespace, "name": name}
    try:
        read_scaled_object({**each.obj, "metadata": metadata})
    except ValueError as error:
        yield shown(each.place), str(error)
    except (AttributeError, KeyError, TypeError):
        return  # of another form than its schema, which is a fault of its own


def shown(place: Place) -> str:
    return f"{place[0]} {place[1]}/{place[2]}"


def _member(kind: Any) -> str:
    """The member of a metric that holds what its type says."""
    text = str(kind)
    return text[:1].lower() + text[1:]


def _dict(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
