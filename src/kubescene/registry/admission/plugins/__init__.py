"""The admission plugins that influence scheduling and every-day use, one module each.

Left out on purpose: TaintNodesByCondition, which taints a new node until its kubelet reports. Here
nodes are ready when they appear, so the taint would only delay every pod by one pass of a
controller that takes it away again. ExtendedResourceToleration and other plugins that are off by
default are left out, too, but for PodNodeSelector: it changes nothing where nobody asks for it.
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
from kubescene.registry.admission.plugins.node_template import NodeTemplateAdmission
from kubescene.registry.admission.plugins.persistent_volume_claim_resize import (
    PersistentVolumeClaimResize,
)
from kubescene.registry.admission.plugins.pod_node_selector import PodNodeSelector
from kubescene.registry.admission.plugins.pod_resize import PodResizeValidator
from kubescene.registry.admission.plugins.pod_topology_labels import PodTopologyLabels
from kubescene.registry.admission.plugins.priority import Priority
from kubescene.registry.admission.plugins.resource_quota import ResourceQuota
from kubescene.registry.admission.plugins.runtime_class import RuntimeClass
from kubescene.registry.admission.plugins.service_account import ServiceAccount
from kubescene.registry.admission.plugins.storage_object_in_use_protection import (
    StorageObjectInUseProtection,
)
from kubescene.registry.admission.plugins.vertical_pod_autoscaler import VerticalAdmission

__all__ = [
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "NamespaceLifecycle",
    "NodeTemplate",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "VerticalAdmission",
    "default_chain",
]


def default_chain() -> list[AdmissionPlugin]:
    """What a kube-apiserver with default settings runs, in its order, as far as it is modelled.

    Webhooks come in where some are configured (`webhooks`); the vertical pod autoscaler's is built
    in, at their place, and so is what looks after kinds of our own.
    """
    return [
        NamespaceLifecycle(),
        LimitRanger(),
        ServiceAccount(),
        PodNodeSelector(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(),
        RuntimeClass(),
        DefaultIngressClass(),
        PodTopologyLabels(),
        # Where kube-apiserver asks webhooks that change objects.
        VerticalAdmission(),
        PodResizeValidator(),
        NodeTemplateAdmission(),
        ResourceQuota(),
    ]
