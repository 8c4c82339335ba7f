"""Which pods of a node ``kubectl drain`` takes away, leaves, or does not dare to touch.

The filters of kubectl (k8s.io/kubectl/pkg/drain/filters.go, v1.36), in its order and in its words:
each may keep a pod; what the last one that was asked says is what is told.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, parse_time
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
MIRROR = "kubernetes.io/config.mirror"
FINISHED = ("Succeeded", "Failed")
DAEMON_SET_FATAL = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
DAEMON_SET_WARNING = "ignoring DaemonSet-managed Pods"
LOCAL_STORAGE_FATAL = "Pods with local storage (use --delete-emptydir-data to override)"
LOCAL_STORAGE_WARNING = "deleting Pods with local storage"
UNMANAGED_FATAL = "Pods that declare no controller (use --force to override)"
UNMANAGED_WARNING = "deleting Pods that declare no controller"


class DrainReason(StrEnum):
    OKAY = "Okay"
    SKIP = "Skip"
    WARNING = "Warning"
    ERROR = "Error"


class DrainVerdict(NamedTuple):
    """Whether a pod goes, and what is to be said of it."""

    goes: bool
    reason: DrainReason
    message: str = ""


OKAY = DrainVerdict(True, DrainReason.OKAY)
SKIP = DrainVerdict(False, DrainReason.SKIP)


class DrainFilters:
    """The filters with the flags of one drain, by the names of the operation's fields."""

    def __init__(self, flags: Mapping[str, Any], reader: Reader) -> None:
        self._force = flags.get("force") is True
        self._ignores_daemon_sets = flags.get("ignoreDaemonSets") is True
        self._deletes_local_data = flags.get("deleteEmptyDirData") is True
        self._skipped_after_s: int = flags.get("skipWaitForDeleteTimeoutSeconds") or 0
        self._reader = reader

    def verdict(self, pod: JsonObject, now: int) -> DrainVerdict:
        """What becomes of a pod."""
        if self.is_skipped(pod, now):
            return SKIP
        verdict = OKAY
        for ask in (self._daemon_set, _mirror, self._local_storage, self._unmanaged):
            verdict = ask(pod)
            if not verdict.goes:
                break
        return verdict

    def is_skipped(self, pod: JsonObject, now: int) -> bool:
        """Whether it should have been gone for so long that nobody waits for it."""
        end = self.skipped_from(pod)
        return end is not None and now >= end

    def skipped_from(self, pod: JsonObject) -> int | None:
        """From when on nobody waits for a pod that is being deleted; None if always."""
        deleted = pod["metadata"].get("deletionTimestamp")
        if not deleted or self._skipped_after_s <= 0:
            return None
        return parse_time(deleted) + (self._skipped_after_s + 1) * SECOND

    def _daemon_set(self, pod: JsonObject) -> DrainVerdict:
        owner = controller_of(pod)
        kind = DAEMON_SET.api_version, DAEMON_SET.kind
        if owner is None or (owner.get("apiVersion"), owner.get("kind")) != kind:
            return OKAY
        if has_finished(pod):
            return OKAY
        ref = ObjectRef(DAEMON_SET, owner["name"], pod["metadata"]["namespace"])
        try:
            self._reader.get(ref)
        except ApiError as error:
            if isinstance(error, NotFoundError) and self._force:
                return DrainVerdict(True, DrainReason.WARNING, error.message)
            return DrainVerdict(False, DrainReason.ERROR, error.message)
        if not self._ignores_daemon_sets:
            return DrainVerdict(False, DrainReason.ERROR, DAEMON_SET_FATAL)
        return DrainVerdict(False, DrainReason.WARNING, DAEMON_SET_WARNING)

    def _local_storage(self, pod: JsonObject) -> DrainVerdict:
        volumes = pod["spec"].get("volumes") or ()
        if has_finished(pod) or all(each.get("emptyDir") is None for each in volumes):
            return OKAY
        if not self._deletes_local_data:
            return DrainVerdict(False, DrainReason.ERROR, LOCAL_STORAGE_FATAL)
        return DrainVerdict(True, DrainReason.WARNING, LOCAL_STORAGE_WARNING)

    def _unmanaged(self, pod: JsonObject) -> DrainVerdict:
        if has_finished(pod) or controller_of(pod) is not None:
            return OKAY
        if self._force:
            return DrainVerdict(True, DrainReason.WARNING, UNMANAGED_WARNING)
        return DrainVerdict(False, DrainReason.ERROR, UNMANAGED_FATAL)


def _mirror(pod: JsonObject) -> DrainVerdict:
    return SKIP if MIRROR in (pod["metadata"].get("annotations") or {}) else OKAY


def controller_of(pod: JsonObject) -> JsonObject | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def has_finished(pod: JsonObject) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


Verdicts = Iterable[tuple[JsonObject, DrainVerdict]]


def warnings_of(verdicts: Verdicts) -> str:
    """All warnings as kubectl writes them; empty if there are none."""
    told = _grouped(verdicts, DrainReason.WARNING)
    return "; ".join(f"{message}: {', '.join(pods)}" for message, pods in told.items())


def errors_of(verdicts: Verdicts) -> list[str]:
    """Why the node cannot be drained; none if it can."""
    told = _grouped(verdicts, DrainReason.ERROR)
    return [f"cannot delete {message}: {', '.join(pods)}" for message, pods in told.items()]


def _grouped(verdicts: Verdicts, reason: DrainReason) -> dict[str, list[str]]:
    """Pods by what is said of them, in the order of the first of each."""
    found: dict[str, list[str]] = {}
    for pod, verdict in verdicts:
        if verdict.reason is reason:
            metadata = pod["metadata"]
            name = f"{metadata['namespace']}/{metadata['name']}"
            found.setdefault(verdict.message, []).append(name)
    return found


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one text: each once, in brackets if there are several."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
