"""Priority: resolves a pod's priority class to its number and preemption policy."""

from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

PRIORITY_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
PREEMPT = "PreemptLowerPriority"

_KEPT = ("priority", "preemptionPolicy")


class Priority:
    name = "Priority"
    reads = (PRIORITY_CLASSES,)
    is_quiet = True
    kinds = ("Pod", "PriorityClass")

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_write("Pod"):
            return request.obj
        spec = request.obj["spec"]
        if request.old is not None:
            return with_part(request.obj, "spec", kept(spec, request.old["spec"]))
        resolved = resolve(request, spec.get("priorityClassName", ""))
        check_stated(request, spec, resolved)
        return with_part(request.obj, "spec", {**spec, **resolved})

    def validate(self, request: AdmissionRequest) -> None:
        """At most one class is the default of all pods."""
        if not request.is_write("PriorityClass") or not request.obj.get("globalDefault"):
            return
        default = global_default(request)
        if default is not None and default["metadata"]["name"] != request.name:
            raise request.forbidden(
                f"PriorityClass {default['metadata']['name']} is already marked as default. "
                "Only one default can exist"
            )


def kept(spec: JsonObject, old: JsonObject) -> JsonObject:
    """On an update, what was resolved stays though the client left it out."""
    missing = {name: old[name] for name in _KEPT if spec.get(name) is None and name in old}
    return {**spec, **missing} if missing else spec


def resolve(request: AdmissionRequest, name: str) -> JsonObject:
    """Number, policy and class of a pod that names a class, or none."""
    chosen = named(request, name) if name else global_default(request)
    if chosen is None:
        return {"priority": 0, "preemptionPolicy": PREEMPT}
    return {
        "priority": chosen.get("value", 0),
        "priorityClassName": chosen["metadata"]["name"],
        "preemptionPolicy": chosen.get("preemptionPolicy", PREEMPT),
    }


def check_stated(request: AdmissionRequest, spec: JsonObject, resolved: JsonObject) -> None:
    """What the pod says of its priority itself must be what its class says."""
    number, policy = spec.get("priority"), spec.get("preemptionPolicy")
    if number is not None and number != resolved["priority"]:
        raise request.forbidden(
            f"the integer value of priority ({number}) must not be provided in pod spec; "
            f"priority admission controller computed {resolved['priority']} from the given "
            "PriorityClass name"
        )
    if policy is not None and policy != resolved["preemptionPolicy"]:
        raise request.forbidden(
            f"the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; "
            f"priority admission controller computed {resolved['preemptionPolicy']} from the given "
            "PriorityClass name"
        )


def named(request: AdmissionRequest, name: str) -> JsonObject:
    record = request.store.get(PRIORITY_CLASSES, "", name)
    if record is None:
        raise request.forbidden(f"no PriorityClass with name {name} was found")
    return request.store.decoded(record)


def global_default(request: AdmissionRequest) -> JsonObject | None:
    """The default class; the lowest, should there be several."""
    classes = map(request.store.decoded, request.store.list(PRIORITY_CLASSES))
    defaults = [it for it in classes if it.get("globalDefault")]
    return min(defaults, key=lambda it: int(it.get("value", 0)), default=None)
