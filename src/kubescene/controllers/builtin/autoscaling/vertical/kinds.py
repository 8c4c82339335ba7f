"""The kinds of the vertical pod autoscaler."""

from kubescene.api.scheme import GroupVersionKind
from kubescene.controllers.builtin.autoscaling.definitions import offered

GROUP = "autoscaling.k8s.io"
AUTOSCALER = GroupVersionKind(GROUP, "v1", "VerticalPodAutoscaler")
CHECKPOINT = GroupVersionKind(GROUP, "v1", "VerticalPodAutoscalerCheckpoint")
OFFERS = offered(GROUP, (AUTOSCALER.kind, CHECKPOINT.kind))
