"""PersistentVolumeClaimResize: a claim grows only if it is bound and its class allows it."""

from kubescene.api import quantity
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.plugins.default_classes import (
    OLD_STORAGE_CLASS,
    STORAGE_CLASSES,
)
from kubescene.types import JsonObject


class PersistentVolumeClaimResize:
    name = "PersistentVolumeClaimResize"
    reads = (STORAGE_CLASSES,)
    is_quiet = True
    kinds = ("PersistentVolumeClaim",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        return request.obj

    def validate(self, request: AdmissionRequest) -> None:
        old = request.old
        if old is None or not request.is_write("PersistentVolumeClaim"):
            return
        if size_of(request.obj) <= size_of(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise request.forbidden("Only bound persistent volume claims can be expanded")
        if not may_grow(request, old):
            raise request.forbidden(
                "only dynamically provisioned pvc can be resized and the storageclass that "
                "provisions the pvc must support resize"
            )


def size_of(claim: JsonObject) -> int:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return quantity.milli_value(requests.get("storage", "0"))


def may_grow(request: AdmissionRequest, old: JsonObject) -> bool:
    name = class_of(request.obj)
    record = request.store.get(STORAGE_CLASSES, "", name) if name == class_of(old) else None
    return record is not None and bool(request.store.decoded(record).get("allowVolumeExpansion"))


def class_of(claim: JsonObject) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(OLD_STORAGE_CLASS) or claim["spec"].get("storageClassName") or "")
