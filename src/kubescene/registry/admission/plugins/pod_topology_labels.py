"""PodTopologyLabels: a pod that is created on a node carries the node's zone and region.

Pods that are bound later get the labels with the binding (`registry.subresources.binding`).
"""

from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_metadata
from kubescene.registry.subresources.binding import NODES, topology_labels
from kubescene.types import JsonObject


class PodTopologyLabels:
    name = "PodTopologyLabels"
    reads = (NODES,)
    is_quiet = True
    kinds = ("Pod",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not request.is_create("Pod"):
            return request.obj
        node = request.obj["spec"].get("nodeName")
        labels = topology_labels(node, request.store) if node else {}
        if not labels:
            return request.obj
        own = request.obj["metadata"].get("labels") or {}
        return with_metadata(request.obj, labels={**own, **labels})
