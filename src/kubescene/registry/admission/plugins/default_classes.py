"""DefaultStorageClass and DefaultIngressClass: who names no class gets the default one.

Classes are marked by annotation. Of several defaults the newest counts, then the first by name.
"""

from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

STORAGE_CLASSES = GroupResource("storage.k8s.io", "storageclasses")
INGRESS_CLASSES = GroupResource("networking.k8s.io", "ingressclasses")

DEFAULT_STORAGE_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
DEFAULT_INGRESS_CLASS = ("ingressclass.kubernetes.io/is-default-class",)
OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
OLD_INGRESS_CLASS = "kubernetes.io/ingress.class"


class DefaultStorageClass:
    name = "DefaultStorageClass"
    reads = (STORAGE_CLASSES,)
    is_quiet = True
    kinds = ("PersistentVolumeClaim",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("PersistentVolumeClaim"):
            return request.obj
        return with_class(
            request,
            field="storageClassName",
            annotation=OLD_STORAGE_CLASS,
            default=default_class(request, STORAGE_CLASSES, DEFAULT_STORAGE_CLASS),
        )


class DefaultIngressClass:
    name = "DefaultIngressClass"
    reads = (INGRESS_CLASSES,)
    is_quiet = True
    kinds = ("Ingress",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Ingress"):
            return request.obj
        return with_class(
            request,
            field="ingressClassName",
            annotation=OLD_INGRESS_CLASS,
            default=default_class(request, INGRESS_CLASSES, DEFAULT_INGRESS_CLASS),
        )


def with_class(
    request: AdmissionRequest, *, field: str, annotation: str, default: str
) -> JsonObject:
    """The object with the default class, unless it asks for one: an empty name asks for none."""
    obj = request.obj
    spec = obj.get("spec") or {}
    asked = spec.get(field) is not None
    if not default or asked or annotation in (obj["metadata"].get("annotations") or ()):
        return obj
    return with_part(obj, "spec", {**spec, field: default})


def default_class(
    request: AdmissionRequest, resource: GroupResource, annotations: tuple[str, ...]
) -> str:
    """The name of the default class, or an empty text."""
    classes = [request.store.decoded(it)["metadata"] for it in request.store.list(resource)]
    defaults = [it for it in classes if is_default(it, annotations)]
    # Listed by name, and max keeps the first of equals.
    newest = max(defaults, key=lambda it: str(it["creationTimestamp"]), default=None)
    return "" if newest is None else str(newest["name"])


def is_default(metadata: JsonObject, annotations: tuple[str, ...]) -> bool:
    given = metadata.get("annotations") or {}
    return any(given.get(name) == "true" for name in annotations)
