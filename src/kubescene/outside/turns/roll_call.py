"""Whom a scheduler outside would try again: it is asked, since only its plugins know.

Pods that wait are moved to its backoff queue by events, each as the plugins that turned it away
decide, and once nothing else is to do it takes them from there, in an order that depends on real
seconds, one after the other, before anybody could react. So for a moment it is shown all pods that
wait as pods that fit nowhere, and let go: at each that it takes it fails at once, and says so in a
write that its loop waits for. That write is answered and not carried out. Then the pods are shown
as they are, and those that it has named are given to it one by one, as if they were new.
"""

from kubescene.api.records import Record, make_record, versioned
from kubescene.outside.park_pods import PODS, nowhere
from kubescene.types import JsonObject

CALLED = 1
"""The revision of a pod as it is called: never its own, since a pod is not the first write."""


def called(pod: JsonObject) -> Record:
    """A pod as one that fits nowhere, and removes nobody to fit there."""
    spec = {**pod["spec"], "preemptionPolicy": "Never"}
    spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": nowhere()}
    return make_record(PODS, versioned({**pod, "spec": spec}, CALLED), CALLED)


def gone(record: Record, pod: JsonObject) -> Record:
    """A pod as it leaves, only to come back: nobody else gains by that, not even its nomination."""
    status = {**(pod.get("status") or {})}
    status.pop("nominatedNodeName", None)
    return _changed(record, pod, status)


def untold(record: Record, pod: JsonObject) -> Record:
    """A pod whose last failure has no message: the next one is told, though it may say the same."""
    status = {**(pod.get("status") or {})}
    conditions = status.get("conditions") or ()
    status["conditions"] = [_without_message(each) for each in conditions]
    return _changed(record, pod, status)


def _without_message(condition: JsonObject) -> JsonObject:
    if condition.get("type") != "PodScheduled":
        return condition
    return {name: value for name, value in condition.items() if name != "message"}


def _changed(record: Record, pod: JsonObject, status: JsonObject) -> Record:
    revision = record.revision
    return make_record(PODS, versioned({**pod, "status": status}, revision), revision)
