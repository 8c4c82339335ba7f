"""Pods as the scheduler sees them.

`PodInfo` is one pod: identity, and what the queue and the node state need of it. What it shares
with others are its class and its signature (`pod_kinds`). They are keyed by the encoding of the
fields in question, so pods find theirs by one look-up. Pods of one template even share the encoded
spec (`kubescene.api.records.keys`): it is read once (`PodSpec`).

Pods stay small: the decoded object is not kept, `PodInfo.object` decodes it anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct
from msgspec.structs import replace

from kubescene.api.records import Record, same_metadata
from kubescene.api.records.changes import Change
from kubescene.api.records.keys import (
    is_shared,
    pod_keys,
    read_status,
    without_claim_names,
    without_nomination,
)
from kubescene.api.resource_requests import Amounts, nonzero_requests, pod_requests
from kubescene.bounded import BoundedDict
from kubescene.scheduler.state.pod_kinds import (
    PodClass,
    PodSignature,
    PodSpec,
    PodStatus,
)
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import JsonObject, ReadOnlyObject

_SPEC_FIELDS = (
    "affinity",
    "hostNetwork",
    "hostUsers",
    "nodeSelector",
    "overhead",
    "resources",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER_FIELDS = ("image", "ports", "resources", "restartPolicy", "restartPolicyRules")


class Identified(Protocol):
    """Whatever is known by a uid."""

    @property
    def uid(self) -> str: ...


class PodClasses:
    """Finds classes and signatures; forgets those that were not asked for in a long time.

    ``rereads``: every pod is read by itself, whatever it has in common with others.
    """

    def __init__(self, kept: int = POLICY.classes_kept, *, rereads: bool = False) -> None:
        self._rereads = rereads
        self._classes: BoundedDict[bytes, PodClass] = BoundedDict(kept)
        self._signatures: BoundedDict[tuple[Any, ...], PodSignature] = BoundedDict(kept)
        self._specs: BoundedDict[bytes, PodSpec] = BoundedDict()
        self._statuses: BoundedDict[bytes, PodStatus] = BoundedDict()
        self._models: BoundedDict[bytes, PodInfo] = BoundedDict()
        """The newest pod that was read with a spec, by the encoding of that."""

    def of(self, spec: ReadOnlyObject) -> PodClass:
        key = orjson.dumps(_relevant(spec))
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = PodClass(orjson.loads(key))
        else:
            self._classes.move_to_end(key)
        return found

    def spec(self, record: Record, spec: ReadOnlyObject) -> PodSpec:
        """The spec of a pod; if it shares its encoding with another one, what was read there."""
        key = record.spec_key
        if key is None or self._rereads or not is_shared(key):
            return PodSpec(spec, self.of(spec))
        found = self._spec_of(key)
        if found is None:
            found = self._specs[key] = PodSpec(spec, self.of(spec))
            if found.unnamed is not None and (unnamed := without_claim_names(key)) is not None:
                self._specs[unnamed.key] = found.unnamed
        return found

    def _spec_of(self, key: bytes) -> PodSpec | None:
        """What was read of such a spec before, be it with other claims."""
        named = without_claim_names(key)
        if named is None:
            return self._specs.get(key)
        unnamed = self._specs.get(named.key)
        return None if unnamed is None else unnamed.naming([each.decode() for each in named.names])

    def known(
        self, record: Record, before: "PodInfo | None" = None
    ) -> tuple[PodSpec, PodStatus, str] | None:
        """Spec, status and nomination of a pod that shares the encodings of the first two with
        others; None if it does not.

        ``before`` is the same pod as it was: mostly it shares its spec with itself.
        """
        keys = pod_keys(record)
        if keys is None or self._rereads:
            return None
        held = None if before is None else pod_keys(before.record)
        if before is not None and held is not None and held[0] is keys[0]:
            spec: PodSpec | None = before.spec
        else:
            spec = self._spec_of(keys[0])
        if spec is None or not is_shared(keys[2]):
            return None
        status, nominated = self._statuses.get(keys[2]), ""
        if status is None:
            if (split := without_nomination(keys[2])) is None:
                return None
            key, nominated = split
            status = self._statuses.get(key) or self._read(key)
        return None if status.resized else (spec, status, nominated)

    def status(self, key: bytes) -> PodStatus | None:
        """What a status says that nominates nobody, if it was read before."""
        return self._statuses.get(key)

    def _read(self, key: bytes) -> PodStatus:
        """What a status says that nominates nobody."""
        status = self._statuses[key] = PodStatus(read_status(key))
        return status

    def model(self, record: Record) -> "PodInfo | None":
        """A pod that differs from the one of a record in nothing but name, uid and node."""
        keys = pod_keys(record)
        model = None if keys is None else self._models.get(keys[0])
        if model is None or keys is None:
            return None
        if model.namespace != record.namespace or model.labels != record.labels:
            return None
        known = model.record
        is_same = known.status_key == keys[2] and known.owner == record.owner
        return model if is_same and known.deleting is record.deleting else None

    def keep(self, pod: "PodInfo") -> None:
        """Remember a pod as it was read, if others may be like it."""
        keys = pod_keys(pod.record)
        if keys is not None and not pod.spec.is_own and not self._rereads:
            self._models[keys[0]] = pod

    def signature(self, record: Record, spec: PodSpec) -> PodSignature:
        labels = record.labels
        key = (
            spec.alike,
            record.namespace,
            orjson.dumps(labels, option=orjson.OPT_SORT_KEYS) if labels else b"",
            record.owner,
            record.name if spec.is_own else "",
        )
        found = self._signatures.get(key)
        if found is None:
            kind = None if spec.unnamed is None else self.signature(record, spec.unnamed)
            found = self._signatures[key] = PodSignature(record, spec, kind)
        else:
            self._signatures.move_to_end(key)
        return found


class PodInfo(Struct, frozen=True, eq=False):
    """One pod at one revision. Immutable: an update makes a new one, and copies of a world share
    it. ``start_time`` is that of the status, empty if it has none.
    """

    record: Record
    namespace: str
    name: str
    uid: str
    key: str
    labels: Mapping[str, str]
    node: str
    terminating: bool
    """Takes its room all the same until it is gone (S-7)."""
    nominated_node: str
    start_time: str
    spec: PodSpec
    priority: int
    scheduler_name: str
    gates: Sequence[str]
    pod_class: PodClass
    requests: Amounts
    nonzero_cpu: int
    nonzero_memory: int
    signature: PodSignature

    @classmethod
    def read(cls, record: Record, obj: ReadOnlyObject, classes: PodClasses) -> "PodInfo":
        """The pod of a record, decoded."""
        spec = classes.spec(record, obj.get("spec") or {})
        status = PodStatus(obj.get("status") or {})
        pod = cls._made(
            record, spec, status, status.nominated_node, classes.signature(record, spec)
        )
        if not status.resized:
            return pod
        cpu, memory = nonzero_requests(obj)
        return replace(pod, requests=pod_requests(obj), nonzero_cpu=cpu, nonzero_memory=memory)

    @classmethod
    def of(cls, change: Change, classes: PodClasses, before: "PodInfo | None" = None) -> "PodInfo":
        """The pod after a change, decoded only if it shares nothing with others.

        ``before`` is the same pod as it was, if that is known.
        """
        record = change.record
        if before is None and (model := classes.model(record)) is not None:
            key = f"{record.namespace}/{record.name}"
            name, uid, node = record.name, record.uid, record.node
            return replace(model, record=record, name=name, uid=uid, key=key, node=node)
        known = classes.known(record, before)
        if known is None:
            return cls.read(record, change.object, classes)
        spec, status, nominated = known
        if before is not None and before.is_still(record, spec):
            return cls._made(record, spec, status, nominated, before.signature)
        pod = cls._made(record, spec, status, nominated, classes.signature(record, spec))
        classes.keep(pod)
        return pod

    @classmethod
    def _made(
        cls,
        record: Record,
        spec: PodSpec,
        status: PodStatus,
        nominated_node: str,
        signature: PodSignature,
    ) -> "PodInfo":
        pod_class = spec.pod_class
        return cls(
            record,
            record.namespace,
            record.name,
            record.uid,
            f"{record.namespace}/{record.name}",
            record.labels,
            record.node,
            record.deleting,
            nominated_node,
            status.start_time,
            spec,
            spec.priority,
            spec.scheduler_name,
            spec.gates,
            pod_class,
            pod_class.requests,
            pod_class.nonzero_cpu,
            pod_class.nonzero_memory,
            signature,
        )

    def is_still(self, record: Record, spec: PodSpec) -> bool:
        """Whether the pod has the same signature with this record."""
        same_owner = self.signature.owner == record.owner
        return self.spec is spec and self.labels == record.labels and same_owner

    @property
    def generation(self) -> int:
        """That of its metadata; 0 if there is none."""
        known = self.record.generation
        return known if known is not None else self.object["metadata"].get("generation") or 0

    @property
    def is_resized(self) -> bool:
        """Whether it asks for something else than its class does."""
        return self.requests is not self.pod_class.requests

    @property
    def object(self) -> JsonObject:
        """The decoded pod, made anew at each call."""
        return self.record.decode()

    @property
    def group(self) -> str:
        """The name of the pod group that it belongs to; empty if it belongs to none."""
        return self.spec.group

    def assumed(self, node: str) -> "PodInfo":
        """The same pod as it will be once it is bound to ``node``."""
        return replace(self, node=node, nominated_node="")

    def confirmed(self, record: Record, classes: PodClasses) -> "PodInfo":
        """An `assumed` pod whose binding was accepted. That changes labels at most."""
        labels = record.labels
        if labels is self.labels or labels == self.labels:
            return replace(self, record=record)
        signature = classes.signature(record, self.spec)
        return replace(self, record=record, labels=labels, signature=signature)

    def restated(self, record: Record, classes: PodClasses) -> "PodInfo | None":
        """The pod after a change of nothing but its status; None if it may have been more."""
        keys, before = pod_keys(record), pod_keys(self.record)
        if keys is None or before is None or not same_metadata(record, self.record):
            return None
        if keys[0] is not before[0] or keys[1] != before[1]:
            return None
        status = classes.status(keys[2])
        if status is None or status.resized or self.is_resized:
            return None
        return replace(self, record=record, nominated_node="", start_time=status.start_time)

    def __copy__(self) -> "PodInfo":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PodInfo":
        return self

    def __repr__(self) -> str:
        place = f" on {self.node}" if self.node else ""
        return f"<PodInfo {self.key}{place}>"


def _relevant(spec: ReadOnlyObject) -> JsonObject:
    fields = {field: spec[field] for field in _SPEC_FIELDS if field in spec}
    for kind in ("containers", "initContainers"):
        if containers := spec.get(kind):
            fields[kind] = [
                {field: each[field] for field in _CONTAINER_FIELDS if field in each}
                for each in containers
            ]
    return fields
