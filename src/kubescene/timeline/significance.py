"""Which writes count.

Two questions, one answer. Is the write part of the story (recorded in the timeline)? And if a
simulation controller makes it, does it move the minor step? Bookkeeping (Events, Leases, reviews)
and liveness do neither. A failed scheduling attempt writes a condition and perhaps a nomination: it
is told as ``podUnscheduled`` and does not move the step.
"""

from kubescene.actors import Actor

BOOKKEEPING_KINDS = frozenset(
    {
        "Event",
        "Lease",
        "Binding",
        "Eviction",
        "LocalSubjectAccessReview",
        "Scenario",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
        "TokenRequest",
        "TokenReview",
    }
)

KUBELET = "kubelet"
"""The stand-in's name; its status writes are the cluster breathing, not part of the story."""


def is_significant(actor: Actor, kind: str, subresource: str) -> bool:
    """Whether a write is told, and moves the minor step if a simulation controller makes it."""
    if kind in BOOKKEEPING_KINDS:
        return False
    if subresource != "status":
        return True
    if kind == "Node" or actor.name == KUBELET:
        return False
    # What a scheduler writes into a pod's status is told by the attempt that wrote it.
    return not (kind == "Pod" and actor.schedules)
