"""The kind of Knative's pod autoscaler."""

from kubescene.api.scheme import GroupVersionKind
from kubescene.controllers.builtin.autoscaling.definitions import offered

NAME = "knative-autoscaler"
GROUP = "autoscaling.internal.knative.dev"
AUTOSCALER = GroupVersionKind(GROUP, "v1alpha1", "PodAutoscaler")
OFFERS = offered(GROUP, (AUTOSCALER.kind,))
