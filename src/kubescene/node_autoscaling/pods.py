"""Pods as the autoscaler sees them, and what it asks of one."""

from functools import cached_property
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject

KINDS_PER_CONTROLLER = 10
"""So many kinds of pods of one controller are told apart; further ones are treated one by one."""

DAEMON_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"
DEFAULT_GRACE = 30
LONG_TERMINATING = 30 * SECOND


class PodController(NamedTuple):
    """The owner that makes a pod anew."""

    api_version: str
    kind: str
    name: str
    uid: str


class SeenPod:
    """One pod at one revision; never changed, so that copies of a world share it."""

    def __init__(self, info: PodInfo, obj: JsonObject | None = None) -> None:
        self.info = info
        self._object = obj

    @cached_property
    def object(self) -> JsonObject:
        """The decoded pod; read-only."""
        return self.info.object if self._object is None else self._object

    def __deepcopy__(self, memo: dict[int, Any]) -> "SeenPod":
        return self

    def __repr__(self) -> str:
        return f"<SeenPod {self.key}>"

    @property
    def key(self) -> str:
        return self.info.key

    @property
    def uid(self) -> str:
        return self.info.uid

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def namespace(self) -> str:
        return self.info.namespace

    @property
    def node(self) -> str:
        """Where it is bound, or else where preemption makes room for it."""
        return self.info.node or self.info.nominated_node

    @cached_property
    def annotations(self) -> JsonObject:
        return self.object["metadata"].get("annotations") or {}

    @cached_property
    def controller(self) -> PodController | None:
        for each in self.object["metadata"].get("ownerReferences") or ():
            if each.get("controller"):
                return PodController(
                    each.get("apiVersion", ""), each["kind"], each["name"], each["uid"]
                )
        return None

    @cached_property
    def is_daemon(self) -> bool:
        owner = self.controller
        return (owner is not None and owner.kind == "DaemonSet") or (
            self.annotations.get(DAEMON_POD) == "true"
        )

    @cached_property
    def is_mirror(self) -> bool:
        return MIRROR in self.annotations

    @property
    def comes_back(self) -> bool:
        """Whether somebody makes it anew elsewhere once it is evicted."""
        is_static = self.annotations.get(SOURCE, "api") != "api"
        return not (is_static or self.is_mirror or self.is_daemon)

    def is_expendable(self, cutoff: int) -> bool:
        if self.info.priority >= cutoff:
            return False  # As almost always, and then nobody decodes it.
        priority = self.object["spec"].get("priority")
        return priority is not None and priority < cutoff

    @cached_property
    def created(self) -> int:
        return _time(self.object["metadata"].get("creationTimestamp"))

    @cached_property
    def deleted(self) -> int | None:
        stamp = self.object["metadata"].get("deletionTimestamp")
        return None if stamp is None else _time(stamp)

    @property
    def grace(self) -> int:
        """Seconds that it may take to end."""
        given = self.object["spec"].get("terminationGracePeriodSeconds")
        return DEFAULT_GRACE if given is None else int(given)

    def has_lingered(self, now: int) -> bool:
        """Whether it should have ended long ago."""
        if self.deleted is None:
            return False
        return self.deleted + self.grace * SECOND + LONG_TERMINATING < now

    @property
    def is_unschedulable(self) -> bool:
        """Whether the scheduler has tried, and found no node."""
        conditions = (self.object.get("status") or {}).get("conditions") or ()
        found = next((each for each in conditions if each["type"] == "PodScheduled"), None)
        return (
            found is not None
            and found["status"] == "False"
            and found.get("reason") == "Unschedulable"
        )

    @cached_property
    def likeness(self) -> bytes:
        """What pods of one controller have in common if no plugin can tell them apart."""
        labels = self.object["metadata"].get("labels") or {}
        return orjson.dumps([labels, _relevant(self.object["spec"])], option=orjson.OPT_SORT_KEYS)

    @property
    def is_gated(self) -> bool:
        return bool(self.info.gates)

    def unbound(self) -> "SeenPod":
        """The same pod as if it had to be placed anew."""
        return SeenPod(replace(self.info, node="", nominated_node=""), self.object)

    def copied(self, suffix: str) -> "SeenPod":
        """Another pod like this one."""
        info = replace(self.info, uid=f"{self.uid}-{suffix}", name=f"{self.name}-{suffix}")
        return SeenPod(info, self.object)


def _time(stamp: str | None) -> int:
    return 0 if stamp is None else parse_time(stamp)


def _relevant(spec: JsonObject) -> JsonObject:
    """The spec without what says where a pod is and what the scheduler does not read."""
    kept = {name: value for name, value in spec.items() if name not in ("nodeName", "hostname")}
    volumes = spec.get("volumes") or ()
    projected = {each["name"] for each in volumes if "projected" in each}
    if projected:
        kept["volumes"] = [each for each in volumes if each["name"] not in projected]
    for kind in ("containers", "initContainers"):
        if kind in spec:
            kept[kind] = [_container(each, projected) for each in spec[kind]]
    return kept


def _container(container: JsonObject, projected: set[str]) -> JsonObject:
    kept = {name: value for name, value in container.items() if name != "env"}
    if projected and "volumeMounts" in container:
        mounts = container["volumeMounts"]
        kept["volumeMounts"] = [each for each in mounts if each["name"] not in projected]
    return kept
