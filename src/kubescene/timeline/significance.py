"""Which writes count.

Two questions, one answer. Is the write part of the story (recorded in the timeline)? And if a
simulation controller makes it, does it move the minor step? Bookkeeping (Events, Leases, reviews)
and liveness do neither. A failed scheduling attempt writes a condition and perhaps a nomination: it
is told as ``podUnscheduled`` and does not move the step.
"""

from kubescene.actors import Actor, Component
from kubescene.api.kinds import BOOKKEEPING
from kubescene.api.scheme import GroupResource

NODES, PODS = GroupResource("", "nodes"), GroupResource("", "pods")
BREATHING = frozenset(
    {
        NODES,
        GroupResource("karpenter.sh", "nodepools"),
        GroupResource("kubescene.dev", "nodegroups"),
        GroupResource("kubescene.dev", "traffics"),
        GroupResource("autoscaling", "horizontalpodautoscalers"),
        GroupResource("autoscaling.k8s.io", "verticalpodautoscalers"),
        GroupResource("autoscaling.internal.knative.dev", "podautoscalers"),
        GroupResource("keda.sh", "scaledobjects"),
        GroupResource("kubescene.dev", "pluginautoscalers"),
    }
)
"""Kinds whose status follows what is told otherwise."""


def is_significant(
    actor: Actor, resource: GroupResource, subresource: str, *, asked: bool = False
) -> bool:
    """Whether a write is told, and moves the minor step if a simulation controller makes it.

    ``asked``: an operation wants it, so that even a node's status is part of the story.
    """
    if resource in BOOKKEEPING:
        return False
    if subresource != "status" or asked:
        return True
    if resource in BREATHING or actor.component is Component.KUBELET:
        return False
    # What a scheduler writes into a pod's status is told by the attempt that wrote it.
    return not (resource == PODS and actor.component is Component.SCHEDULER)
