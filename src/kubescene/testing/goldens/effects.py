"""The recorded effects of a cycle, done to a world in which our scheduler decided otherwise.

Isolated mode judges every cycle by itself. Where ours differed, the world is made anew and all
recorded outcomes up to there are applied to it.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.client.interfaces import ObjectRef
from kubescene.testing.goldens.claims import RESOURCE_CLAIM
from kubescene.testing.goldens.volume_writes import CLAIM
from kubescene.testing.goldens.worlds import World, pod_ref
from kubescene.types import JsonObject

DISRUPTION = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
"""The condition of a victim that is about to be deleted."""


class Effects:
    """What kube-scheduler did to one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._client = world.client

    def apply(self, key: str, outcome: Mapping[str, Any]) -> None:
        if not outcome:
            return
        if "nextStart" in outcome:
            self._world.scheduler.start_index.index = outcome["nextStart"]
        self._write_claims(key, outcome.get("claims") or {})
        if "node" in outcome:
            self._place(key, outcome)
        else:
            self._fail(key, outcome)
        self._client.take_calls()

    def _place(self, key: str, outcome: Mapping[str, Any]) -> None:
        volumes = outcome.get("volumes") or {}
        for claim, volume in (volumes.get("bound") or {}).items():
            self._client.volumes.bind(_claim(claim), volume)
        for claim, node in (volumes.get("provisioned") or {}).items():
            self._client.volumes.provision(_claim(claim), node)
        if "bindError" in outcome:
            self.hold(key, outcome)
        else:
            self._client.bind(pod_ref(key), outcome["node"])

    def hold(self, key: str, outcome: Mapping[str, Any]) -> None:
        """A pod that failed in PreBind keeps the nomination that it got before it (E-7)."""
        if not outcome["bindError"].startswith("running PreBind plugin"):
            return
        pod = self._world.pod(key)
        _nominate(pod.setdefault("status", {}), outcome["node"])
        self._world.update(pod)

    def _fail(self, key: str, outcome: Mapping[str, Any]) -> None:
        if victims := (outcome.get("preemption") or {}).get("victims"):
            self._preempt(key, outcome["preemption"]["node"], victims)
        pod = self._world.pod(key)
        status = pod.setdefault("status", {})
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": outcome["reason"],
                "message": outcome["message"],
            }
        ]
        if "nominated" in outcome:
            _nominate(status, outcome["nominated"])
        self._world.update(pod)

    def _preempt(self, key: str, node: str, victims: list[str]) -> None:
        running = [
            victim
            for victim in victims
            if "deletionTimestamp" not in self._world.pod(victim)["metadata"]
        ]
        if running:
            self._clear_nominations(node, self._world.pod(key)["spec"].get("priority") or 0)
        for victim in running:
            # The condition comes before the deletion, and moves the pod in its node's list.
            if self._world.case.get("gracefulVictims"):
                obj = self._world.pod(victim)
                obj.setdefault("status", {}).setdefault("conditions", []).append(DISRUPTION)
                self._world.update(obj)
            self._client.delete(pod_ref(victim))

    def _clear_nominations(self, node: str, priority: int) -> None:
        for pod in self._world.scheduler.nominations.on(node):
            if pod.priority < priority:
                obj = self._world.pod(pod.key)
                _nominate(obj.setdefault("status", {}), "")
                self._world.update(obj)

    def _write_claims(self, key: str, claims: Mapping[str, Any]) -> None:
        for name, after in (claims.get("after") or {}).items():
            self._write_claim(_resource_claim(name), after)
        if status := claims.get("extendedResourceClaimStatus"):
            pod = self._world.pod(key)
            pod.setdefault("status", {})["extendedResourceClaimStatus"] = status
            self._world.update(pod)

    def _write_claim(self, ref: ObjectRef, after: Mapping[str, Any]) -> None:
        if after.get("created"):
            self._client.create(_new_claim(ref, after))
        if after.get("deleted"):
            if self._client.find(ref) is not None:
                self._world.remove(ref)
            return
        claim = self._client.get(ref)
        status = claim.setdefault("status", {})
        for name in ("allocation", "reservedFor", "devices"):
            status.pop(name, None)
            if name in after:
                status[name] = after[name]
        claim["metadata"]["finalizers"] = after.get("finalizers") or []
        self._world.update(claim)


def _nominate(status: JsonObject, node: str) -> None:
    status.pop("nominatedNodeName", None)
    if node:
        status["nominatedNodeName"] = node


def _claim(key: str) -> ObjectRef:
    namespace, name = key.split("/")
    return ObjectRef(CLAIM, name, namespace)


def _resource_claim(key: str) -> ObjectRef:
    namespace, name = key.split("/")
    return ObjectRef(RESOURCE_CLAIM, name, namespace)


def _new_claim(ref: ObjectRef, after: Mapping[str, Any]) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "spec": after.get("spec") or {},
    }
