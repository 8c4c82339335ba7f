"""Park pods: how a scheduler that nobody may change is made to stand still.

A park pod exists in one program's watch only. It fits no node, so the scheduler fails at it and
says so in a PATCH of its status, which its scheduling loop sends itself: as long as that request is
not answered, the loop stands still. The pod has the lowest priority of all, so its turn comes when
the active queue is empty. That PATCH is therefore an exact sign of both.
"""

import orjson

from kubescene.api.records import Record, make_record, versioned
from kubescene.api.scheme import GroupResource
from kubescene.types import JsonObject

PREFIX = "kubescene-park-"
NAMESPACE = "default"
LOWEST_PRIORITY = -(2**31)
PODS = GroupResource("", "pods")
_NOWHERE = "kubescene.dev/nowhere"
"""No node can have this name: it has a slash."""


def is_park_pod(name: str) -> bool:
    return name.startswith(PREFIX) and name[len(PREFIX) :].isdecimal()


def mentions_park_pod(body: bytes) -> bool:
    """Whether an Event is about one."""
    return PREFIX.encode() in body


def ordinal_of(name: str) -> int:
    """Which one it is, of a park pod's name."""
    return int(name[len(PREFIX) :])


def park_pod_name(ordinal: int) -> str:
    return f"{PREFIX}{ordinal}"


def nowhere() -> JsonObject:
    """The affinity to a node that cannot be."""
    field = {"key": "metadata.name", "operator": "In", "values": [_NOWHERE]}
    terms = [{"matchFields": [field]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def park_pod(ordinal: int, scheduler_name: str, created: str) -> JsonObject:
    """The park pod of one turn; each has a name and a uid of its own."""
    name = park_pod_name(ordinal)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"00000000-0000-4000-8000-{ordinal:012x}",
            "creationTimestamp": created,
        },
        "spec": {
            "schedulerName": scheduler_name,
            "priority": LOWEST_PRIORITY,
            "preemptionPolicy": "Never",
            "containers": [{"name": "park", "image": "park", "resources": {}}],
            "affinity": {"nodeAffinity": nowhere()},
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


def park_record(pod: JsonObject, revision: int) -> Record:
    """The pod as an event carries it: from ``revision`` on its reader goes on."""
    return make_record(PODS, versioned(pod, revision), revision)


def park_reply(pod: JsonObject, revision: int) -> bytes:
    """What the scheduler is told when it has written the pod's status."""
    return orjson.dumps(versioned(pod, revision))
