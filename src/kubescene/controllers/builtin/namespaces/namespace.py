"""The namespace controller: empties a namespace that is being deleted, then lets it go.

Pods go first, so that nothing runs on without the configuration, policies and claims around it;
when the last pod has gone, everything else is deleted. What remains (an object with finalizers)
is told in the conditions of the namespace, and the controller looks again whenever something in it
changes. Kinds that were defined after the start are not watched: for them it looks again after
a while.

The real one waits five seconds before it deletes anything, and takes pods that stay longer than
their grace period for a failure. In a scenario time stands still inside a step, so it waits and
judges only if it is given a delay.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from kubescene.api.kinds import NAMESPACE, POD
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import DELETING, GOES
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType, Scheme
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

NAMESPACES = GroupResource("", "namespaces")
PODS = GroupResource("", "pods")
FINALIZER = "kubernetes"
LOOK_AGAIN = 15 * SECOND
USUAL_DELAY = 5 * SECOND
"""How long kube-controller-manager waits before it deletes anything."""

Content: TypeAlias = dict[GroupResource, Sequence[JsonObject]]

Told: TypeAlias = dict[str, tuple[str, str]]
"""By condition that is true, its reason and message."""

Discovery: TypeAlias = Callable[[], Iterable[ResourceType]]
"""The namespaced types that can be deleted, as they are known now."""

_ALL_WELL = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


class NamespaceReconciler:
    """Keys are namespaces. Between passes it remembers which are going."""

    name = "namespace"
    pod_traits = GOES | DELETING

    def __init__(self, discovery: Discovery, delay: int = 0) -> None:
        self._discovery = discovery
        self._delay = delay
        types = list(discovery())
        self._watched = frozenset(it.group_resource for it in types)
        self.kinds: Sequence[GroupVersionKind] = (NAMESPACE, *(it.gvk for it in types))
        self._going: set[str] = set()
        self._begins: dict[str, int] = {}
        """By namespace that goes, when its content may be deleted."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource == NAMESPACES:
            return self._observe_namespace(change)
        if record.namespace in self._going and change.type is not ChangeType.ADDED:
            return (ObjectKey("", record.namespace),)
        return ()

    def _observe_namespace(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if change.type is ChangeType.DELETED:
            self._going.discard(record.name)
            self._begins.pop(record.name, None)
        elif record.phase == "Terminating" and record.name not in self._going:
            self._going.add(record.name)
            return (ObjectKey("", record.name),)
        return ()

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        namespace = reader.find(ObjectRef(NAMESPACE, key.name))
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return NOTHING
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            return NOTHING
        if self._delay and (left := self._begins.setdefault(key.name, now + self._delay) - now) > 0:
            return Plan(requeue_after=left)
        if pods := reader.list(POD, namespace=key.name):
            return self._waiting_for_pods(namespace, pods, now)
        if content := self._content(key.name, reader):
            return self._waiting(namespace, content, remaining(content), now)
        kept = [it for it in finalizers if it != FINALIZER]
        patch = {"spec": {"finalizers": kept or None}}
        return Plan((Patch(ObjectRef.to(namespace), patch, subresource="finalize"),))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """Somebody else was faster; anything else is a mistake of ours."""
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _content(self, name: str, reader: Reader) -> Content:
        found = {it.group_resource: reader.list(it.gvk, namespace=name) for it in self._discovery()}
        return {resource: objects for resource, objects in found.items() if objects}

    def _waiting_for_pods(
        self, namespace: JsonObject, pods: Sequence[JsonObject], now: int
    ) -> Plan:
        """While pods stop, all is well; a delay gives them until their grace period is over."""
        if not self._delay:
            return self._waiting(namespace, {PODS: pods}, {}, now)
        left = parse_time(namespace["metadata"]["deletionTimestamp"]) + grace_of(pods) - now
        if left > 0:
            return self._waiting(namespace, {PODS: pods}, {}, now, again=left)
        return self._waiting(namespace, {PODS: pods}, overdue(namespace, pods), now)

    def _waiting(
        self,
        namespace: JsonObject,
        content: Content,
        told: Told,
        now: int,
        again: int | None = None,
    ) -> Plan:
        """Delete what is not going yet, then say what stays; look ``again`` after a while."""
        if again is None and any(resource not in self._watched for resource in content):
            again = LOOK_AGAIN
        fresh = [it for objects in content.values() for it in objects if not is_going(it)]
        if fresh:
            doomed = [Delete(ObjectRef.to(it), in_background(it)) for it in fresh]
            return Plan(doomed, requeue_after=again)
        status = with_conditions(namespace.get("status") or {}, told, now)
        if status == namespace.get("status"):
            return Plan(requeue_after=again)
        patch = {"status": status}
        write = Patch(ObjectRef.to(namespace), patch, subresource="status")
        return Plan((write,), requeue_after=again)


def is_going(obj: JsonObject) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def grace_of(pods: Iterable[JsonObject]) -> int:
    """The longest time that a pod which has not ended may take."""
    ended = ("Succeeded", "Failed")
    living = (pod for pod in pods if pod["status"].get("phase") not in ended)
    periods = (pod["spec"].get("terminationGracePeriodSeconds") or 0 for pod in living)
    return max(periods, default=0) * SECOND


def overdue(namespace: JsonObject, pods: Iterable[JsonObject]) -> Told:
    """That pods should have gone; nothing if one of them has finalizers, which take their time."""
    if any(pod["metadata"].get("finalizers") for pod in pods):
        return {}
    message = (
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in "
        f"namespace: {namespace['metadata']['name']} for gvr: /v1, Resource=pods"
    )
    return {"NamespaceDeletionContentFailure": ("ContentDeletionFailed", message)}


def remaining(content: Content) -> Told:
    """What the conditions tell of objects that a namespace still holds."""
    kinds = sorted(
        f"{resource.resource}.{resource.group} has {len(objects)} resource instances"
        for resource, objects in content.items()
    )
    counts: dict[str, int] = {}
    for obj in (it for objects in content.values() for it in objects):
        for finalizer in obj["metadata"].get("finalizers") or ():
            counts[finalizer] = counts.get(finalizer, 0) + 1
    told = {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(kinds)}",
        )
    }
    if counts:
        holders = sorted(f"{name} in {count} resource instances" for name, count in counts.items())
        told["NamespaceFinalizersRemaining"] = (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(holders)}",
        )
    return told


def with_conditions(status: JsonObject, told: Told, now: int) -> JsonObject:
    """The status whose conditions say ``told``, and of everything else that it went well."""
    before = {it.get("type"): it for it in status.get("conditions") or ()}
    conditions = []
    for kind, well in _ALL_WELL.items():
        state = "True" if kind in told else "False"
        reason, message = told.get(kind, well)
        old = before.get(kind) or {}
        same = old.get("status") == state
        since = old.get("lastTransitionTime") if same else format_time(now)
        conditions.append(
            {
                "type": kind,
                "status": state,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        )
    return {**status, "conditions": conditions}


def namespaced_types(scheme: Scheme) -> list[ResourceType]:
    """One version of every namespaced resource that can be listed and deleted."""
    types: dict[GroupResource, ResourceType] = {}
    for resource_type in scheme:
        deletable = {"delete", "list"} <= set(resource_type.verbs)
        if resource_type.namespaced and deletable and resource_type.stored_as is None:
            types.setdefault(resource_type.group_resource, resource_type)
    return list(types.values())


def namespace(context: ControllerContext, delay: int = 0) -> ReconcilerController:
    """The factory of the controller; it deletes nothing before the delay is over."""
    discovery = partial(namespaced_types, context.scheme)
    return ReconcilerController(NamespaceReconciler(discovery, delay), context)


def in_background(obj: JsonObject) -> DeleteOptions:
    """Everything in the namespace goes anyway, so nobody is to be orphaned."""
    return DeleteOptions(uid=obj["metadata"]["uid"], propagation_policy="Background")
