"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or unreachable."""

from collections.abc import Sequence

from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

SECONDS = 300
TOLERATIONS: tuple[JsonObject, ...] = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


class DefaultTolerationSeconds:
    name = "DefaultTolerationSeconds"
    reads: Sequence[GroupResource] = ()
    is_quiet = True
    kinds = ("Pod",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_write("Pod"):
            return request.obj
        spec = request.obj["spec"]
        given = spec.get("tolerations") or []
        added = [it for it in TOLERATIONS if not any(covers(own, it["key"]) for own in given)]
        if not added:
            return request.obj
        return with_part(request.obj, "spec", {**spec, "tolerations": [*given, *added]})


def covers(toleration: JsonObject, key: str) -> bool:
    right_key = toleration.get("key", "") in ("", key)
    return right_key and toleration.get("effect", "") in ("", "NoExecute")
