"""The admission plugins that influence scheduling and every-day use, one module each.

Left out on purpose: TaintNodesByCondition, which taints a new node until its kubelet reports. Here
nodes are ready when they appear, so the taint would only delay every pod by one pass of a
controller that takes it away again. ExtendedResourceToleration and other plugins that are off by
default are left out, too.
"""

from kubescene.registry.admission.chain import AdmissionPlugin
from kubescene.registry.admission.plugins.default_classes import (
    DefaultIngressClass,
    DefaultStorageClass,
)
from kubescene.registry.admission.plugins.default_toleration_seconds import (
    DefaultTolerationSeconds,
)
from kubescene.registry.admission.plugins.limit_ranger import LimitRanger
from kubescene.registry.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from kubescene.registry.admission.plugins.persistent_volume_claim_resize import (
    PersistentVolumeClaimResize,
)
from kubescene.registry.admission.plugins.pod_resize import PodResizeValidator
from kubescene.registry.admission.plugins.pod_topology_labels import PodTopologyLabels
from kubescene.registry.admission.plugins.priority import Priority
from kubescene.registry.admission.plugins.resource_quota import ResourceQuota
from kubescene.registry.admission.plugins.runtime_class import RuntimeClass
from kubescene.registry.admission.plugins.service_account import ServiceAccount
from kubescene.registry.admission.plugins.storage_object_in_use_protection import (
    StorageObjectInUseProtection,
)

__all__ = [
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "NamespaceLifecycle",
    "PersistentVolumeClaimResize",
    "PodResizeValidator",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "default_chain",
]


def default_chain() -> list[AdmissionPlugin]:
    """What a kube-apiserver with default settings runs, in its order, as far as it is modelled."""
    return [
        NamespaceLifecycle(),
        LimitRanger(),
        ServiceAccount(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(),
        RuntimeClass(),
        DefaultIngressClass(),
        PodTopologyLabels(),
        PodResizeValidator(),
        ResourceQuota(),
    ]
