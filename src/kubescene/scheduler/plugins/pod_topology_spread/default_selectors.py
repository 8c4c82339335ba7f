"""The selector of default constraints: whatever selects the pod (SC-6).

Services of the namespace that select the pod, and the ReplicationController, ReplicaSet or
StatefulSet that controls it. Jobs and DaemonSets do not count.
"""

from collections.abc import Mapping

from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import (
    LabelSelector,
    SelectorError,
    from_label_selector,
    from_labels,
)
from kubescene.bounded import BoundedDict
from kubescene.scheduler.framework.interfaces import Handle, Lister
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import ReadOnlyObject

SERVICE = GroupVersionKind("", "v1", "Service")
REPLICATION_CONTROLLER = GroupVersionKind("", "v1", "ReplicationController")
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")


class DefaultSelectors:
    """Finds the selectors of pods, and remembers them until one of these objects changes."""

    def __init__(self, handle: Handle) -> None:
        self._services = handle.lister(SERVICE)
        self._controllers: dict[tuple[str, str], Lister] = {
            (gvk.api_version, gvk.kind): handle.lister(gvk)
            for gvk in (REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)
        }
        self._version = 0
        self._known: BoundedDict[PodSignature, LabelSelector] = BoundedDict(POLICY.classes_kept)
        self._served: Memo[PodSignature, Mapping[str, str]] = Memo(self._find_services)
        self._services_version = 0

    @property
    def services_version(self) -> int:
        """Grows when Services change."""
        return self._services.spec_version

    @property
    def version(self) -> int:
        """Grows when a selector may have changed."""
        return self._services.spec_version + sum(
            each.spec_version for each in self._controllers.values()
        )

    def may_select(self, signature: PodSignature) -> bool:
        """Whether there can be a selector; to know for certain takes the pod."""
        return bool(signature.owner or self._services_of(signature))

    def of(self, pod: PodInfo) -> LabelSelector:
        """The selector; one without requirements if nothing selects the pod."""
        version = self.version
        if version != self._version:
            self._version = version
            self._known.clear()
        found = self._known.get(pod.signature)
        if found is None:
            found = self._known[pod.signature] = self._find(pod)
        return found

    def _services_of(self, signature: PodSignature) -> Mapping[str, str]:
        """The selectors of all Services that select the pod, as one."""
        if self._services_version != self._services.spec_version:
            self._services_version = self._services.spec_version
            self._served.clear()
        return self._served[signature]

    def _find_services(self, signature: PodSignature) -> Mapping[str, str]:
        merged: dict[str, str] = {}
        for service in self._services.list(signature.namespace):
            selector = (service.get("spec") or {}).get("selector")
            # A Service without selector selects nothing.
            if selector is not None and from_labels(selector).matches(signature.labels):
                merged |= selector
        return merged

    def _find(self, pod: PodInfo) -> LabelSelector:
        labels = self._services_of(pod.signature)
        controller, kind = self._controller(pod)
        selector = ((controller or {}).get("spec") or {}).get("selector")
        if selector is None:
            return from_labels(labels)
        if kind == REPLICATION_CONTROLLER.kind:
            return from_labels({**labels, **selector})
        try:
            return from_labels(labels).adding(*from_label_selector(selector).requirements)
        except SelectorError:
            return from_labels(labels)

    def _controller(self, pod: PodInfo) -> tuple[ReadOnlyObject | None, str]:
        if not pod.signature.owner:
            return None, ""
        references = pod.object["metadata"].get("ownerReferences") or ()
        for each in references:
            if each.get("controller"):
                lister = self._controllers.get((each["apiVersion"], each["kind"]))
                found = None if lister is None else lister.get(each["name"], pod.namespace)
                return found, each["kind"]
        return None, ""
