"""Which writes count.

Two questions, one table. Is the write part of the story (recorded in the timeline)? And if a
simulation controller made it, does it move the minor step? Bookkeeping (Events, Leases, reviews)
and node liveness do neither. A failed scheduling attempt writes a condition and perhaps a
nomination: it is told as ``podUnscheduled`` and does not move the step.
"""

from kubescene.actors import Role
from kubescene.timeline.instruments import ObjectWrite

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


def moves_step(*, kind: str, subresource: str) -> bool:
    """Whether a simulation controller's write advances the minor step."""
    if kind in BOOKKEEPING_KINDS:
        return False
    return not (subresource == "status" and kind in {"Pod", "Node"})


def is_significant(write: ObjectWrite) -> bool:
    """Whether the write is recorded as a create, patch or delete event."""
    if write.kind in BOOKKEEPING_KINDS:
        return False
    if write.subresource == "status":
        if write.kind == "Node" or write.actor.name == KUBELET:
            return False
        # A scheduler's status write on a pod is told by the attempt that made it.
        return not (write.kind == "Pod" and write.actor.role is Role.SIMULATION)
    return True
