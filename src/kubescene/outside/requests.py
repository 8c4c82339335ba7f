"""One request of a program outside, and what becomes of it while a scenario has the world.

What tells how a program is doing rather than what the cluster should do (Leases, Events, reviews,
dry runs) always passes: it comes from timers and threads of its own, and nobody decides by it.
"""

from enum import Enum, auto
from typing import NamedTuple

from kubescene.api.scheme import GroupResource
from kubescene.outside.park_pods import is_park_pod, mentions_park_pod

EVENTS = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
LEASES = GroupResource("coordination.k8s.io", "leases")
DEVICE_CLAIMS = GroupResource("resource.k8s.io", "resourceclaims")
PODS = GroupResource("", "pods")
REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")
READS = ("get", "list", "watch")


class OutsideRequest(NamedTuple):
    """What a request wants. ``body`` is empty for reads."""

    verb: str
    resource: GroupResource
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    body: bytes = b""
    dry_run: bool = False
    lists: bool = False
    """Whether it wants to know what exists: a list, or a watch that begins with that."""

    @property
    def reads(self) -> bool:
        return self.verb in READS

    @property
    def is_bind(self) -> bool:
        return self.subresource == "binding" or self.resource.resource == "bindings"

    @property
    def deletes_a_pod(self) -> bool:
        return self.verb == "delete" and self.resource == PODS

    @property
    def lists_pods(self) -> bool:
        return self.lists and self.resource == PODS

    @property
    def is_pod_status(self) -> bool:
        return self.resource == PODS and self.subresource == "status"

    @property
    def order(self) -> tuple[str, str, str, str, str, str, bytes]:
        """What comes first of several that came in no order: the same in every run."""
        group, resource = self.resource
        place = (self.namespace, self.name)
        return (resource, group, self.subresource, self.verb, *place, self.body)

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        place = "/".join(each for each in (self.namespace, self.name) if each)
        return f"{self.verb} {self.resource}{part} {place}".rstrip()


class Treatment(Enum):
    """What the gate does with a request."""

    PASS = auto()
    DROP = auto()
    """Answered as if it had been done."""
    PARK_POD = auto()
    READ = auto()
    WRITE = auto()


def treatment_of(asked: OutsideRequest) -> Treatment:
    if asked.resource in EVENTS:
        return Treatment.DROP if mentions_park_pod(asked.body) else Treatment.PASS
    if passes(asked):
        return Treatment.PASS
    if asked.resource == PODS and is_park_pod(asked.name):
        return Treatment.PARK_POD
    return Treatment.READ if asked.reads else Treatment.WRITE


def passes(asked: OutsideRequest) -> bool:
    return (
        asked.dry_run
        or asked.resource == LEASES
        or asked.resource.group in REVIEWS
        or asked.subresource == "token"
    )
