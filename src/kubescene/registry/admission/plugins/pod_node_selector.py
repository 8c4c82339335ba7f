"""PodNodeSelector: pods of a namespace go to the nodes that its annotation selects.

A kube-apiserver has to be told to ask it; here it is always asked, since nobody writes that
annotation for another reason. A list of selectors in a file, its other source, is left out.
"""

from kubescene.api.scheme import GroupResource
from kubescene.api.validation.field_errors import quote
from kubescene.api.validation.names import Complaints, label_key, label_value
from kubescene.errors import InternalError
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

NAMESPACES = GroupResource("", "namespaces")
ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
MENTION = f'"{ANNOTATION}"'.encode()
CONFLICT = "pod node label selector conflicts with its namespace node label selector"


class PodNodeSelector:
    name = "PodNodeSelector"
    reads = (NAMESPACES,)
    is_quiet = True
    kinds = ("Pod",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod"):
            return request.obj
        selected = selector_of(request)
        if not selected:
            return request.obj
        spec = request.obj["spec"]
        own = spec.get("nodeSelector") or {}
        if any(own.get(key, value) != value for key, value in selected.items()):
            raise request.forbidden(CONFLICT)
        return with_part(request.obj, "spec", {**spec, "nodeSelector": {**selected, **own}})


def selector_of(request: AdmissionRequest) -> dict[str, str]:
    """What the namespace wants of nodes."""
    record = request.store.get(NAMESPACES, "", request.namespace)
    if record is None or not record.metadata_mentions(MENTION):
        return {}
    metadata = request.store.decoded(record)["metadata"]
    return read_selector((metadata.get("annotations") or {}).get(ANNOTATION, ""))


def read_selector(text: str) -> dict[str, str]:
    """``pool=a,disk=ssd``. A server says what is wrong with it in these words, as its own fault."""
    found: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        parts = pair.split("=")
        if len(parts) != 2:
            raise InternalError(f"invalid selector: [{' '.join(parts)}]")
        key, value = (each.strip() for each in parts)
        check("<nil>", key, label_key(key))
        check(f"[{key}]", value, label_value(value))
        found[key] = value
    return found


def check(where: str, value: str, complaints: Complaints) -> None:
    if complaints:
        told = "; ".join(complaints)
        raise InternalError(f"{where}: Invalid value: {quote(value)}: {told}")
