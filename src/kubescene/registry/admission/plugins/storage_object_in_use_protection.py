"""StorageObjectInUseProtection: volumes and claims in use outlive their deletion.

The finalizer is taken away by the storage protection controller once nobody uses the object.
"""

from collections.abc import Sequence

from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_metadata
from kubescene.types import JsonObject

PROTECTION_FINALIZERS = {
    "PersistentVolume": "kubernetes.io/pv-protection",
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "VolumeAttributesClass": "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection:
    name = "StorageObjectInUseProtection"
    reads: Sequence[GroupResource] = ()
    is_quiet = True
    kinds = tuple(PROTECTION_FINALIZERS)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        kind = request.resource_type.kind
        if kind not in PROTECTION_FINALIZERS or not request.is_create(kind):
            return request.obj
        finalizer = PROTECTION_FINALIZERS[kind]
        finalizers = request.obj["metadata"].get("finalizers") or []
        if finalizer in finalizers:
            return request.obj
        return with_metadata(request.obj, finalizers=[*finalizers, finalizer])
