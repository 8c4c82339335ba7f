"""Which events may help a pod that InterPodAffinity rejected.

Terms are held against pods as they are written, without a look at the labels of namespaces: what
kube-scheduler's hints do too.
"""

from collections.abc import Mapping, Sequence

from kubescene.api.records.changes import Change
from kubescene.api.selectors import SelectorError
from kubescene.scheduler.domains.affinity_terms import (
    REQUIRED,
    AffinityTerm,
    PodAffinity,
    pod_affinity,
    read_terms,
)
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    EventRegistration,
    EventResource,
    Hint,
)
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject


def registrations() -> Sequence[EventRegistration]:
    pod, node = EventResource.POD, EventResource.NODE
    node_actions = Action.ADD | Action.UPDATE_NODE_LABEL
    events = (
        (ClusterEvent(pod, Action.ADD), after_pod_addition),
        (ClusterEvent(pod, Action.UPDATE_POD_LABEL), after_label_change),
        (ClusterEvent(pod, Action.DELETE), after_pod_deletion),
        (ClusterEvent(node, node_actions), after_node_change),
    )
    return [EventRegistration(event, hint, by_signature=True) for event, hint in events]


def after_pod_addition(pod: PodInfo, change: Change) -> Hint:
    """A pod got a node: does it match the affinity?"""
    terms = pod_affinity(pod.signature)
    return _queue_if(terms.is_unclear or _matches_all(terms.required, change.object))


def after_label_change(pod: PodInfo, change: Change) -> Hint:
    """The pod itself, or one on a node that begins to attract it or ceases to repel it."""
    if change.record.uid == pod.uid:
        return Hint.QUEUE
    before, after = change.previous_object, change.object
    if before is None or not (_has_place(before) and _has_place(after)):
        return Hint.SKIP
    terms = pod_affinity(pod.signature)
    return _queue_if(terms.is_unclear or _relaxes(terms, before, after))


def _relaxes(terms: PodAffinity, before: ReadOnlyObject, after: ReadOnlyObject) -> bool:
    """Whether a pod on a node begins to match the affinity, or ceases to match the
    anti-affinity.
    """
    if not _matches_all(terms.required, before) and _matches_all(terms.required, after):
        return True
    anti = terms.required_anti
    return _matches_all(anti, before) and not _matches_all(anti, after)


def after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """A pod is gone that repelled this one, or was repelled by it."""
    gone = change.previous_object or change.object
    if not _has_place(gone):
        return Hint.SKIP
    terms = pod_affinity(pod.signature)
    if terms.is_unclear or _matches_all(terms.required_anti, gone):
        return Hint.QUEUE
    affinity = (gone["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    try:
        theirs = read_terms(gone["metadata"].get("namespace") or "", affinity.get(REQUIRED))
    except SelectorError:
        return Hint.QUEUE
    return _queue_if(_all_match(theirs, pod.namespace, pod.labels))


def after_node_change(pod: PodInfo, change: Change) -> Hint:
    """A node came, or moved to another domain of one of the terms."""
    terms = pod_affinity(pod.signature)
    after = change.record.labels
    if terms.is_unclear:
        return Hint.QUEUE
    if change.previous is None:
        joins = any(term.topology_key in after for term in terms.required)
        return _queue_if(joins or bool(terms.required_anti))
    before = change.previous.labels
    entered = any(
        after.get(term.topology_key) not in (None, before.get(term.topology_key))
        for term in terms.required
    )
    left = any(
        before.get(term.topology_key) not in (None, after.get(term.topology_key))
        for term in terms.required_anti
    )
    return _queue_if(entered or left)


def _has_place(pod: ReadOnlyObject) -> bool:
    """Whether a pod is on a node or nominated to one."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    return bool(pod["spec"].get("nodeName") or nominated)


def _matches_all(terms: Sequence[AffinityTerm], pod: ReadOnlyObject) -> bool:
    metadata = pod["metadata"]
    return _all_match(terms, metadata.get("namespace") or "", metadata.get("labels") or {})


def _all_match(terms: Sequence[AffinityTerm], namespace: str, labels: Mapping[str, str]) -> bool:
    return bool(terms) and all(term.matches(namespace, labels) for term in terms)


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP
