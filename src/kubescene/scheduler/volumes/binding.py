"""From chosen volumes to bound ones: assume, write, and wait for those who do the rest.

The scheduler names the claim in the volume, or the node in the claim. The volume controller and the
provisioners answer by completing the binding, or by taking back what was named.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kubescene.api.options import LASTING
from kubescene.api.volumes.claims import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    annotations_of,
    is_bound,
    volume_of,
)
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import EventResource, Handle, PreBindAnswer
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.volumes.finding import AssumeCache, ClaimsOfPod, VolumeFinder
from kubescene.types import JsonObject, ReadOnlyObject

VOLUME = KINDS[EventResource.PERSISTENT_VOLUME]
CLAIM = KINDS[EventResource.PERSISTENT_VOLUME_CLAIM]
WAITING = Status(Code.WAIT)


@dataclass(slots=True)
class Assumed:
    """What is assumed for one pod: volumes with their claims, and claims to provision for.

    ``deadline`` is the instant at which it is too late, once everything has been written.
    """

    bindings: list[tuple[str, ReadOnlyObject]] = field(default_factory=list)
    provisions: list[ReadOnlyObject] = field(default_factory=list)
    deadline: int | None = None

    def claims(self) -> Iterator[tuple[str, str]]:
        """Namespace and name of every claim."""
        for claim in (*(claim for _, claim in self.bindings), *self.provisions):
            yield claim["metadata"].get("namespace") or "", claim["metadata"]["name"]


class VolumeBinder:
    """Binds the volumes of pods. ``timeout`` is in nanoseconds."""

    def __init__(self, handle: Handle, timeout: int) -> None:
        self._handle = handle
        self._timeout = timeout
        self._volume_lister = handle.lister(VOLUME)
        self._claim_lister = handle.lister(CLAIM)
        self._volumes = AssumeCache(self._volume_lister)
        self.claims = AssumeCache(self._claim_lister)
        self.finder = VolumeFinder(handle, self._volumes)

    def assume(self, claims: ClaimsOfPod, node: str, row: int) -> Assumed:
        """Count the volumes of a pod as taken."""
        found = self.finder.find(claims, row)
        assumed = Assumed(found.bindings)
        for name, claim in found.bindings:
            volume = self._volumes.get(name)
            assert volume is not None
            if patch := _naming(volume, claim):
                self._volumes.assume(_patched(volume, patch))
                self.finder.renew(name)
        for claim in found.provisions:
            annotated = _patched(claim, _selecting(node))
            self.claims.assume(annotated)
            assumed.provisions.append(annotated)
        return assumed

    def restore(self, assumed: Assumed) -> None:
        """Give back what was assumed. What was written stays so, as upstream."""
        for name, _ in assumed.bindings:
            self._volumes.restore({"metadata": {"name": name}})
            self.finder.renew(name)
        for claim in assumed.provisions:
            self.claims.restore(claim)

    def bind(self, assumed: Assumed, node: str) -> PreBindAnswer:
        """Write what was assumed, once, and see what came of it. Raises `ApiError`."""
        now = self._handle.clock.now()
        if assumed.deadline is None:
            self._write(assumed, node)
            assumed.deadline = now + self._timeout
        fault, done = self._check(assumed, node)
        if fault:
            return Status.error(f"binding volumes: {fault}")
        if done:
            return SUCCESS
        if now >= assumed.deadline:
            return Status.error("binding volumes: context deadline exceeded")
        return WAITING, assumed.deadline - now

    def _write(self, assumed: Assumed, node: str) -> None:
        """Write whole objects, so that a change by somebody else in between is a conflict."""
        client = self._handle.client
        for name, claim in assumed.bindings:
            volume = self._volume_lister.get(name)
            if volume is not None and (patch := _naming(volume, claim)):
                client.update(_patched(volume, patch), options=LASTING)
        for claim in assumed.provisions:
            client.update(_patched(claim, _selecting(node)), options=LASTING)

    def _check(self, assumed: Assumed, node: str) -> tuple[str, bool]:
        """What went wrong, and whether all is done."""
        info = self._handle.nodes.info(node)
        if info is None:
            return f'failed to get node "{node}": node "{node}" not found', False
        for name, claim in assumed.bindings:
            fault, bound = self._check_binding(name, claim, node)
            if fault or not bound:
                return fault, False
        for claim in assumed.provisions:
            fault, bound = self._check_provision(claim, node)
            if fault or not bound:
                return fault, False
        return "", True

    def _check_binding(self, name: str, claim: ReadOnlyObject, node: str) -> tuple[str, bool]:
        volume, current = self._volume_lister.get(name), self._current(claim)
        if volume is None:
            return f'failed to check binding: persistentvolumes "{name}" not found', False
        if current is None:
            return f"failed to check binding: {_unknown(claim)}", False
        if not self.finder.reaches(volume, node):
            return _mismatch(name, node), False
        if not (volume["spec"].get("claimRef") or {}).get("uid"):
            return f'ClaimRef got reset for pv "{name}"', False
        return "", is_bound(current)

    def _check_provision(self, claim: ReadOnlyObject, node: str) -> tuple[str, bool]:
        current, name = self._current(claim), claim["metadata"]["name"]
        if current is None:
            return f"failed to check provisioning pvc: {_unknown(claim)}", False
        annotations = annotations_of(current)
        if not annotations:
            return f'selectedNode annotation reset for PVC "{name}"', False
        if annotations.get(SELECTED_NODE) != node:
            return f'provisioning failed for PVC "{name}"', False
        if volume_of(current):
            volume = self._volume_lister.get(volume_of(current))
            if volume is None:
                return "", False
            if not self.finder.reaches(volume, node):
                return _mismatch(volume_of(current), node), False
        return "", is_bound(current)

    def _current(self, claim: ReadOnlyObject) -> ReadOnlyObject | None:
        metadata = claim["metadata"]
        return self._claim_lister.get(metadata["name"], metadata.get("namespace") or "")


def _naming(volume: ReadOnlyObject, claim: ReadOnlyObject) -> JsonObject:
    """The patch that names a claim in a volume; empty if the volume names it already."""
    held, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    wanted = {key: metadata.get(key) or "" for key in ("namespace", "name", "uid")}
    patch: JsonObject = {}
    if any((held.get(key) or "") != value for key, value in wanted.items()):
        # Without the claim's revision, which is another one in a used server.
        known = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **wanted}
        patch["spec"] = {"claimRef": known}
    promised = all((held.get(key) or "") == wanted[key] for key in ("namespace", "name"))
    if promised and held.get("uid") in (None, "", wanted["uid"]):
        return patch
    if BOUND_BY_CONTROLLER not in annotations_of(volume):
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return patch


def _selecting(node: str) -> JsonObject:
    return {"metadata": {"annotations": {SELECTED_NODE: node}}}


def _patched(obj: ReadOnlyObject, patch: JsonObject) -> JsonObject:
    """A copy of an object with the members of a patch merged in."""
    result = dict(obj)
    for key, value in patch.items():
        old = result.get(key)
        result[key] = _patched(old, value) if isinstance(old, dict) else value
    return result


def _mismatch(volume: str, node: str) -> str:
    reason = "no matching NodeSelectorTerms"
    return f'pv "{volume}" node affinity doesn\'t match node "{node}": {reason}'


def _unknown(claim: ReadOnlyObject) -> str:
    metadata = claim["metadata"]
    key = f"{metadata.get('namespace') or ''}/{metadata['name']}"
    return f'persistentvolumeclaims "{key}" not found'
