"""LimitRanger: what containers do not say is filled in, and bounds are kept, as LimitRanges ask.

Every LimitRange of the namespace counts, in order of names. Defaults go into new pods; bounds are
checked on the object as it would be stored, which for pods is at their creation and their resizing.
"""

from collections.abc import Iterable, Iterator, Mapping

from kubescene.api.quantity import Quantity, parse
from kubescene.api.resource_requests import needed_together
from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_metadata, with_part
from kubescene.types import JsonObject

LIMIT_RANGES = GroupResource("", "limitranges")
ANNOTATION = "kubernetes.io/limit-ranger"
_CLAIM = "PersistentVolumeClaim"
_ROLES = {"containers": "container", "initContainers": "init container"}


class LimitRanger:
    name = "LimitRanger"
    reads = (LIMIT_RANGES,)
    is_quiet = True
    kinds = ("Pod", _CLAIM)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod") and not is_resize(request):
            return request.obj
        pod = request.obj
        for limits in limits_of(request):
            pod = with_defaults(pod, limits)
        return pod

    def validate(self, request: AdmissionRequest) -> None:
        is_pod = request.is_create("Pod") or is_resize(request)
        if not is_pod and not request.is_write(_CLAIM):
            return
        faults_of = pod_faults if is_pod else claim_faults
        # The first LimitRange that is broken speaks for all.
        for limits in limits_of(request):
            if found := [*faults_of(request.obj, limits)]:
                raise request.forbidden(together(found))


def is_resize(request: AdmissionRequest) -> bool:
    kind = request.resource_type
    return request.subresource == "resize" and kind.kind == "Pod" and not kind.custom


def limits_of(request: AdmissionRequest) -> list[list[JsonObject]]:
    """The limits of each LimitRange of the namespace; none matters to what is being deleted."""
    store = request.store
    if not store.count(LIMIT_RANGES):
        return []
    if request.old is not None and request.old["metadata"].get("deletionTimestamp"):
        return []
    ranges = map(store.decoded, store.list(LIMIT_RANGES, request.namespace))
    return [(each.get("spec") or {}).get("limits") or [] for each in ranges]


def together(faults: Iterable[str]) -> str:
    """All faults in one text. The real order is that of chance within a map; here it is fixed."""
    unique = sorted(dict.fromkeys(faults))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


# -- defaults --------------------------------------------------------------------------------


def with_defaults(pod: JsonObject, limits: Iterable[JsonObject]) -> JsonObject:
    """The pod with what its containers do not state, and an annotation that says what was set."""
    defaults: dict[str, JsonObject] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            defaults["requests"] |= limit.get("defaultRequest") or {}
            defaults["limits"] |= limit.get("default") or {}
    told: list[str] = []
    spec = pod["spec"]
    for part, role in _ROLES.items():
        if spec.get(part):
            completed = [completed_container(each, defaults, role, told) for each in spec[part]]
            spec = {**spec, part: completed}
    if not told:
        return pod
    annotations = dict(pod["metadata"].get("annotations") or {})
    annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"
    return with_metadata(with_part(pod, "spec", spec), annotations=annotations)


def completed_container(
    container: JsonObject, defaults: Mapping[str, JsonObject], role: str, told: list[str]
) -> JsonObject:
    """A container with the defaults for what it leaves open; what was set is ``told``."""
    resources = container.get("resources") or {}
    for side, each in (("requests", "request"), ("limits", "limit")):
        stated = resources.get(side) or {}
        missing = {name: defaults[side][name] for name in sorted(defaults[side].keys() - stated)}
        if missing:
            resources = {**resources, side: {**stated, **missing}}
            told.append(f"{', '.join(missing)} {each} for {role} {container.get('name', '')}")
    return {**container, "resources": resources} if resources else container


# -- bounds ----------------------------------------------------------------------------------


def pod_faults(pod: JsonObject, limits: Iterable[JsonObject]) -> Iterator[str]:
    """How a pod and its containers break the bounds."""
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for limit in limits:
        kind = limit.get("type")
        if kind == "Container":
            for container in containers:
                resources = container.get("resources") or {}
                requests = amounts(resources.get("requests"))
                yield from faults(limit, requests, amounts(resources.get("limits")))
        elif kind == "Pod":
            yield from faults(limit, of_pod(spec, "requests"), of_pod(spec, "limits"))


def claim_faults(claim: JsonObject, limits: Iterable[JsonObject]) -> Iterator[str]:
    """How a claim breaks the bounds. Claims have no limits: a maximum is one of requests."""
    asked = amounts((claim["spec"].get("resources") or {}).get("requests"))
    for limit in limits:
        if limit.get("type") == _CLAIM:
            for name, bound in amounts(limit.get("min")).items():
                yield from too_little(f"{name} usage per {_CLAIM} is {bound}", bound, name, asked)
            for name, bound in amounts(limit.get("max")).items():
                rule = f"maximum {name} usage per {_CLAIM} is {bound}"
                if name not in asked:
                    yield f"{rule}.  No request is specified"
                elif asked[name].milli_value() > bound.milli_value():
                    yield f"{rule}, but request is {asked[name]}"


def faults(
    limit: JsonObject, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]
) -> Iterator[str]:
    kind = limit["type"]
    for name, bound in amounts(limit.get("min")).items():
        usage = f"{name} usage per {kind} is {bound}"
        yield from too_little(usage, bound, name, requests, limits)
    for name, bound in amounts(limit.get("max")).items():
        usage = f"{name} usage per {kind} is {bound}"
        yield from too_much(usage, bound, name, requests, limits)
    for name, bound in amounts(limit.get("maxLimitRequestRatio")).items():
        rule = f"{name} max limit to request ratio per {kind} is {bound}"
        yield from too_wide(rule, bound, requests.get(name), limits.get(name))


def too_little(
    usage: str,
    bound: Quantity,
    name: str,
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity] | None = None,
) -> Iterator[str]:
    limit = (limits or {}).get(name)
    if name not in requests:
        yield f"minimum {usage}.  No request is specified"
    elif requests[name].milli_value() < bound.milli_value():
        yield f"minimum {usage}, but request is {requests[name]}"
    elif limit is not None and limit.milli_value() < bound.milli_value():
        yield f"minimum {usage}, but limit is {limit}"


def too_much(
    usage: str,
    bound: Quantity,
    name: str,
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity],
) -> Iterator[str]:
    request = requests.get(name)
    if name not in limits:
        yield f"maximum {usage}.  No limit is specified"
    elif limits[name].milli_value() > bound.milli_value():
        yield f"maximum {usage}, but limit is {limits[name]}"
    elif request is not None and request.milli_value() > bound.milli_value():
        yield f"maximum {usage}, but request is {request}"


def too_wide(
    rule: str, bound: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    if not request:
        yield f"{rule}, but no request is specified or request is 0"
    elif not limit:
        yield f"{rule}, but no limit is specified or limit is 0"
    elif (ratio := limit.milli_value() / request.milli_value()) * 1000 > bound.milli_value():
        yield f"{rule}, but provided ratio is {ratio:f}"


def amounts(listed: JsonObject | None) -> dict[str, Quantity]:
    return {name: parse(amount) for name, amount in sorted((listed or {}).items())}


def of_pod(spec: JsonObject, side: str) -> dict[str, Quantity]:
    """What all containers state together, or the pod itself in their place."""
    return {
        **needed_together(spec, side),
        **amounts((spec.get("resources") or {}).get(side)),
    }
