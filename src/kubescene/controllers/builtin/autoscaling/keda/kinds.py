"""The kind of KEDA."""

from kubescene.api.scheme import GroupVersionKind
from kubescene.controllers.builtin.autoscaling.definitions import offered

NAME = "keda-operator"
GROUP = "keda.sh"
SCALED_OBJECT = GroupVersionKind(GROUP, "v1alpha1", "ScaledObject")
OFFERS = offered(GROUP, (SCALED_OBJECT.kind,))
