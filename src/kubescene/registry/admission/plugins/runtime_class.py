"""RuntimeClass: a pod's runtime brings overhead, a node selector and tolerations with it."""

from kubescene.api.scheme import GroupResource
from kubescene.api.validation.equality import same
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

RUNTIME_CLASSES = GroupResource("node.k8s.io", "runtimeclasses")
MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClass:
    name = "RuntimeClass"
    reads = (RUNTIME_CLASSES,)
    is_quiet = True
    kinds = ("Pod",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod"):
            return request.obj
        spec = request.obj["spec"]
        runtime = find_class(request, spec)
        changes = {**overhead_of(request, spec, runtime), **placement_of(request, spec, runtime)}
        return with_part(request.obj, "spec", {**spec, **changes}) if changes else request.obj


def find_class(request: AdmissionRequest, spec: JsonObject) -> JsonObject:
    """The class that the pod names; an empty one if it names none."""
    name = spec.get("runtimeClassName")
    if name is None:
        return {}
    record = request.store.get(RUNTIME_CLASSES, "", name)
    if record is None:
        raise request.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
    return request.store.decoded(record)


def overhead_of(request: AdmissionRequest, spec: JsonObject, runtime: JsonObject) -> JsonObject:
    if runtime.get("overhead") is None:
        if spec.get("overhead") is not None:
            raise request.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        return {}
    fixed, stated = runtime["overhead"].get("podFixed") or {}, spec.get("overhead")
    if stated and not same(stated, fixed, "overhead"):
        raise request.forbidden(MISMATCH)
    return {"overhead": fixed}


def placement_of(request: AdmissionRequest, spec: JsonObject, runtime: JsonObject) -> JsonObject:
    scheduling = runtime.get("scheduling")
    if scheduling is None:
        return {}
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.setdefault(key, value) != value:
            raise request.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    own, more = spec.get("tolerations") or [], scheduling.get("tolerations") or []
    changes: JsonObject = {"tolerations": merged_tolerations([*own, *more])}
    return {**changes, "nodeSelector": selector} if selector else changes


def merged_tolerations(tolerations: list[JsonObject]) -> list[JsonObject]:
    """The tolerations without those that another one includes; the first of equals stays."""
    merged: list[JsonObject] = []
    for position, toleration in enumerate(tolerations):
        later = tolerations[position + 1 :]
        if any(includes(other, toleration) for other in merged):
            continue
        if not any(other != toleration and includes(other, toleration) for other in later):
            merged.append(toleration)
    return merged


def includes(wide: JsonObject, narrow: JsonObject) -> bool:
    """Whether ``wide`` tolerates all that ``narrow`` does."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    any_key = not wide.get("key") and operator == "Exists"
    if narrow.get("key", "") != wide.get("key", "") and not any_key:
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect"):
        return False
    if not lasts_as_long(wide, narrow):
        return False
    if operator in ("", "Equal"):
        return narrow.get("operator") == "Equal" and narrow.get("value") == wide.get("value")
    return bool(operator == "Exists")


def lasts_as_long(wide: JsonObject, narrow: JsonObject) -> bool:
    limit, other = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if wide.get("effect") != "NoExecute" or limit is None:
        return True
    return other is not None and bool(other <= limit)
