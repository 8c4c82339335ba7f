"""Which writes count.

Two questions, one answer. Is the write part of the story (recorded in the timeline)? And if a
simulation controller makes it, does it move the minor step? Bookkeeping (Events, Leases, reviews)
and liveness do neither. A failed scheduling attempt writes a condition and perhaps a nomination: it
is told as ``podUnscheduled`` and does not move the step.
"""

from kubescene.actors import Actor
from kubescene.api.kinds import NODE, POD, SCENARIO
from kubescene.api.scheme import GroupVersionKind

BOOKKEEPING = frozenset(
    {
        ("", "Event"),
        ("events.k8s.io", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("authentication.k8s.io", "SelfSubjectReview"),
        ("authentication.k8s.io", "TokenRequest"),
        ("authentication.k8s.io", "TokenReview"),
        ("authorization.k8s.io", "LocalSubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectRulesReview"),
        ("authorization.k8s.io", "SubjectAccessReview"),
        (SCENARIO.group, SCENARIO.kind),
    }
)
"""Group and kind of objects that are bookkeeping rather than cluster state."""

KUBELET = "kubelet"
"""The stand-in's name; its status writes are the cluster breathing, not part of the story."""


def is_significant(
    actor: Actor, gvk: GroupVersionKind, subresource: str, *, asked: bool = False
) -> bool:
    """Whether a write is told, and moves the minor step if a simulation controller makes it.

    ``asked``: an operation wants it, so that even a node's status is part of the story.
    """
    if (gvk.group, gvk.kind) in BOOKKEEPING:
        return False
    if subresource != "status" or asked:
        return True
    if gvk == NODE or actor.name == KUBELET:
        return False
    # What a scheduler writes into a pod's status is told by the attempt that wrote it.
    return not (gvk == POD and actor.schedules)
