"""What becomes of a NodeClaim: launched, registered, initialized, expired, drained, gone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubescene.api.kinds import NODE, POD
from kubescene.api.selectors.tolerations import tolerates
from kubescene.client import ObjectRef
from kubescene.clock import MINUTE, SECOND, format_time, parse_time
from kubescene.durations import MILLISECOND, parse_duration
from kubescene.karpenter.kinds import NODE_CLAIM_KIND
from kubescene.karpenter.nodepools import POOL_HASH, NodePool
from kubescene.karpenter.nodes import find_condition, is_passing, last_pod_event
from kubescene.karpenter.objects import INSTANCE, KarpenterWorld
from kubescene.karpenter.offers import sizes_of
from kubescene.karpenter.pods import DISRUPTED, PodSeen
from kubescene.karpenter.requirements import (
    DOMAIN,
    INITIALIZED,
    NODE_POOL,
    from_expressions,
    from_labels,
)
from kubescene.types import JsonObject, ReadOnlyObject

FINALIZER = f"{DOMAIN}/termination"
REGISTRATION_TIMEOUT = 15 * MINUTE
DEDUPED = 10 * SECOND
"""Pod events of a node are written once in so long."""
_CRITICAL = ("system-cluster-critical", "system-node-critical")
_FIRST_RETRY, _LAST_RETRY = 100 * MILLISECOND, 10 * SECOND


class ClaimLifecycle:
    """All claims, one step of each at a time; `turn` says when the next one is due."""

    def __init__(self, world: KarpenterWorld) -> None:
        self._world = world
        self._due: dict[str, int] = {}
        """When a claim is to be looked at again, though nothing has changed."""
        self._interrupted: dict[str, tuple[int, int]] = {}
        """Spot machines: when they are told to go, and when they go."""
        self._retries: dict[str, tuple[int, int]] = {}
        """Pods that may not be evicted yet: how long was waited, and until when."""

    @property
    def next_due(self) -> int | None:
        return min(self._due.values(), default=None)

    def turn(self, now: int) -> None:
        """Do what is due, of every claim that was touched or whose time has come."""
        world = self._world
        self._note_pod_events(now)
        names = list(world.touched)
        world.touched.clear()
        names += [name for name, at in self._due.items() if at <= now and name not in names]
        for name in names:
            self._due.pop(name, None)
            claim = world.claims.get(name)
            if claim is None:
                self._interrupted.pop(name, None)
                continue
            at = self._step(name, claim, now)
            if at is not None:
                self._due[name] = max(at, now + 1)

    def _step(self, name: str, claim: ReadOnlyObject, now: int) -> int | None:
        """One step; when the next one is due, None if only a change matters."""
        if claim["metadata"].get("deletionTimestamp"):
            return self._terminate(name, claim, now)
        if self._has(claim, "Launched") != "True":
            self._launch(name, claim, now)
            return None
        if self._is_lost(name, claim, now):
            return None
        times = [
            self._register(name, claim, now),
            self._expire(name, claim, now),
            self._interrupt(name, now),
        ]
        pool = self._world.pools.get(_pool_of(claim))
        if pool is not None:
            times.append(self._consolidatable(name, claim, pool, now))
            self._drift(name, claim, pool, now)
        return min((each for each in times if each is not None), default=None)

    # -- coming ----------------------------------------------------------------------------

    def _launch(self, name: str, claim: ReadOnlyObject, now: int) -> None:
        """Have the cheapest machine that the claim allows; without one, the claim goes."""
        world = self._world
        chosen = world.offers.choose(from_expressions(claim["spec"].get("requirements") or ()), now)
        if chosen is None:
            self._give_up(name, claim, "InsufficientCapacityError", "nothing that fits can be had")
            return
        kind, offer = chosen
        machine, labels = world.offers.machine(name, claim, kind, offer)
        world.create(machine)
        world.patch(ObjectRef(NODE_CLAIM_KIND, name), {"metadata": {"labels": labels}})
        self._tell(
            name,
            claim,
            {"Launched": "True"},
            now,
            providerID=f"kubescene:///{name}",
            **sizes_of(kind),
        )
        if (told := world.offers.interruption(name, kind.name)) and offer.capacity_type == "spot":
            after, notice = told
            self._interrupted[name] = now + after, now + after + notice

    def _is_lost(self, name: str, claim: ReadOnlyObject, now: int) -> bool:
        """Whether its machine failed or is gone, so that the claim goes, too."""
        machine = self._world.instances.get(name)
        if machine is None or machine["metadata"].get("deletionTimestamp"):
            self._world.delete(ObjectRef(NODE_CLAIM_KIND, name))
            return True
        status = machine.get("status") or {}
        if status.get("phase") != "Failed":
            return False
        error = status.get("error") or {}
        if error.get("class") == "OutOfResource":
            self._world.offers.sell_out(claim["metadata"].get("labels") or {}, now)
        self._give_up(name, claim, error.get("code", "Failed"), error.get("message", ""))
        return True

    def _give_up(self, name: str, claim: ReadOnlyObject, reason: str, message: str) -> None:
        self._world.tell(claim, reason, message, warns=True)
        self._world.delete(ObjectRef(NODE_CLAIM_KIND, name))

    def _register(self, name: str, claim: ReadOnlyObject, now: int) -> int | None:
        """Its node has come, and is ready for pods; too late is never."""
        node = self._world.nodes.get(name)
        if node is None:
            launched = find_condition(claim, "Launched") or {}
            limit = parse_time(launched["lastTransitionTime"]) + REGISTRATION_TIMEOUT
            if self._has(claim, "Registered") != "True" and now >= limit:
                self._give_up(name, claim, "RegistrationTimeout", "it did not register in 15m")
                return None
            return limit
        told: dict[str, str] = {}
        if self._has(claim, "Registered") != "True":
            told["Registered"] = "True"
        if self._has(claim, "Initialized") != "True" and self._is_set_up(node, claim):
            labels = {"metadata": {"labels": {INITIALIZED: "true"}}}
            self._world.patch(ObjectRef(NODE, name), labels)
            told["Initialized"] = told["Ready"] = "True"
        if told:
            self._tell(name, claim, told, now, nodeName=name)
        return None

    def _is_set_up(self, node: ReadOnlyObject, claim: ReadOnlyObject) -> bool:
        ready = find_condition(node, "Ready")
        if ready is None or ready.get("status") != "True":
            return False
        startup = claim["spec"].get("startupTaints") or ()
        for each in (node.get("spec") or {}).get("taints") or ():
            kind = each["key"], each["effect"]
            if is_passing(each) or any((it["key"], it["effect"]) == kind for it in startup):
                return False
        return True

    # -- conditions ------------------------------------------------------------------------

    def _note_pod_events(self, now: int) -> None:
        """When a pod last came or went; only pools that wait for it to be long ago need it."""
        world = self._world
        events = list(world.pod_events)
        world.pod_events.clear()
        for name in events:
            claim = world.claims.get(name)
            pool = None if claim is None else world.pools.get(_pool_of(claim))
            if claim is None or pool is None or pool.fault or not pool.consolidate_after:
                continue
            told = (claim.get("status") or {}).get("lastPodEventTime")
            if told is None or now - parse_time(told) >= DEDUPED:
                status = {"status": {"lastPodEventTime": format_time(now)}}
                world.patch(ObjectRef(NODE_CLAIM_KIND, name), status, status=True)

    def _consolidatable(
        self, name: str, claim: ReadOnlyObject, pool: NodePool, now: int
    ) -> int | None:
        if pool.fault:
            return None
        wait = pool.consolidate_after
        is_set = find_condition(claim, "Consolidatable") is not None
        if wait is None or self._has(claim, "Initialized") != "True":
            if is_set:
                self._tell(name, claim, {"Consolidatable": None}, now)
            return None
        at = last_pod_event(claim) + wait
        if wait and now < at:
            if is_set:
                self._tell(name, claim, {"Consolidatable": None}, now)
            return at
        if not is_set:
            self._tell(name, claim, {"Consolidatable": "True"}, now)
        return None

    def _drift(self, name: str, claim: ReadOnlyObject, pool: NodePool, now: int) -> None:
        why = drift_of(claim, pool)
        is_set = find_condition(claim, "Drifted") is not None
        if why and not is_set:
            self._tell(name, claim, {"Drifted": "True"}, now, why)
        elif is_set and not why:
            self._tell(name, claim, {"Drifted": None}, now)

    def _expire(self, name: str, claim: ReadOnlyObject, now: int) -> int | None:
        text = claim["spec"].get("expireAfter", "Never")
        if text == "Never":
            return None
        at = parse_time(claim["metadata"]["creationTimestamp"]) + parse_duration(text)
        if now < at:
            return at
        self._world.tell(claim, "Expired", f"it is older than {text}")
        self._world.delete(ObjectRef(NODE_CLAIM_KIND, name))
        return None

    def _interrupt(self, name: str, now: int) -> int | None:
        """The cloud takes a spot machine back, with notice."""
        if name not in self._interrupted:
            return None
        notice, _ = self._interrupted[name]
        if now < notice:
            return notice
        claim = self._world.claims[name]
        message = "the cloud takes its spot machine back"
        self._world.tell(claim, "SpotInterrupted", message, warns=True)
        self._world.delete(ObjectRef(NODE_CLAIM_KIND, name))
        return None

    def _has(self, claim: ReadOnlyObject, kind: str) -> str:
        found = find_condition(claim, kind)
        return "Unknown" if found is None else str(found.get("status"))

    def _tell(
        self,
        name: str,
        claim: ReadOnlyObject,
        told: Mapping[str, str | None],
        now: int,
        message: str = "",
        **status: Any,
    ) -> None:
        """Write conditions; None takes one away."""
        known = self._world.claims.get(name, claim)
        conditions = with_conditions(known, told, now, message)
        body = {"status": {**status, "conditions": conditions}}
        self._world.patch(ObjectRef(NODE_CLAIM_KIND, name), body, status=True)

    # -- going -----------------------------------------------------------------------------

    def _terminate(self, name: str, claim: ReadOnlyObject, now: int) -> int | None:
        """Nothing new comes to its node, its pods go, then the machine, then the claim."""
        world = self._world
        node = world.nodes.get(name)
        machine = world.instances.get(name)
        force = self._forced_at(name, claim)
        if node is not None and machine is not None and not _is_going(machine):
            self._taint(node)
            waiting = self._to_drain(name)
            if waiting and (force is None or now < force):
                return self._drain(name, claim, waiting, force, now)
        if machine is not None:
            if not _is_going(machine):
                if self._has(claim, "InstanceTerminating") != "True":
                    self._tell(name, claim, {"InstanceTerminating": "True"}, now)
                world.delete(ObjectRef(INSTANCE, name))
            return None
        kept = [each for each in claim["metadata"].get("finalizers") or () if each != FINALIZER]
        body = {"metadata": {"finalizers": kept or None}}
        world.patch(ObjectRef(NODE_CLAIM_KIND, name), body)
        self._interrupted.pop(name, None)
        return None

    def _forced_at(self, name: str, claim: ReadOnlyObject) -> int | None:
        """When the machine goes, whoever is still there."""
        ends = list[int]()
        if text := claim["spec"].get("terminationGracePeriod"):
            stamp = claim["metadata"]["deletionTimestamp"]
            ends.append(parse_time(stamp) + parse_duration(text))
        if name in self._interrupted:
            ends.append(self._interrupted[name][1])
        return min(ends, default=None)

    def _taint(self, node: ReadOnlyObject) -> None:
        taints = (node.get("spec") or {}).get("taints") or ()
        if not any(each["key"] == DISRUPTED["key"] for each in taints):
            body = {"spec": {"taints": [*taints, dict(DISRUPTED)]}}
            self._world.patch(ObjectRef(NODE, node["metadata"]["name"]), body)

    def _to_drain(self, node: str) -> list[PodSeen]:
        """Pods that have to go before the machine may."""
        return [
            each
            for each in self._world.pods_on(node)
            if not each.has_ended
            and not each.is_owned_by("Node")
            and not any(tolerates(it, DISRUPTED) for it in each.tolerations)
        ]

    def _drain(
        self,
        name: str,
        claim: ReadOnlyObject,
        waiting: Sequence[PodSeen],
        force: int | None,
        now: int,
    ) -> int | None:
        """Evict one group after the other; close to the deadline, delete."""
        times = [] if force is None else [force]
        graceful = list[PodSeen]()
        has_deadline = bool(claim["spec"].get("terminationGracePeriod")) and force is not None
        for each in waiting:
            if has_deadline and force is not None:
                last = force - grace_of(each) * SECOND
                if now >= last:
                    if not each.is_terminating:
                        left = max((force - now) // SECOND, 1)
                        self._world.delete(ObjectRef(POD, each.name, each.namespace), int(left))
                    continue
                times.append(last)
            graceful.append(each)
        for pod in _first_group(graceful):
            if pod.is_terminating or pod.is_protected(now):
                continue
            known, until = self._retries.get(pod.uid, (0, 0))
            if now < until:
                times.append(until)
                continue
            if self._world.evict(pod):
                wait = min(max(known * 2, _FIRST_RETRY), _LAST_RETRY)
                self._retries[pod.uid] = wait, now + wait
                times.append(now + wait)
            else:
                self._retries.pop(pod.uid, None)
        return min(times, default=None)


def with_conditions(
    obj: ReadOnlyObject, told: Mapping[str, str | None], now: int, message: str = ""
) -> list[JsonObject]:
    """The conditions of an object with these; times change with what they say."""
    found: dict[str, JsonObject] = {
        each["type"]: each for each in (obj.get("status") or {}).get("conditions") or ()
    }
    for kind, status in told.items():
        if status is None:
            found.pop(kind, None)
            continue
        before = found.get(kind, {})
        since = before.get("lastTransitionTime")
        found[kind] = {
            "type": kind,
            "status": status,
            "reason": message if message.isalnum() else kind,
            "message": message,
            "lastTransitionTime": since if before.get("status") == status else format_time(now),
        }
    return list(found.values())


def drift_of(claim: ReadOnlyObject, pool: NodePool) -> str:
    """Why a claim is not any more what its pool would order; empty if it is."""
    if pool.fault:
        return ""
    annotations = claim["metadata"].get("annotations") or {}
    if annotations.get(POOL_HASH, pool.hash) != pool.hash:
        return "NodePoolDrifted"
    wanted = from_expressions(pool.spec["template"]["spec"].get("requirements") or ())
    labels = from_labels(claim["metadata"].get("labels") or {})
    return "" if labels.conflict(wanted) is None else "RequirementsDrifted"


def grace_of(pod: PodSeen) -> int:
    """Seconds that it may take to end."""
    given = pod.spec.get("terminationGracePeriodSeconds")
    return 30 if given is None else int(given)


def _first_group(pods: Iterable[PodSeen]) -> list[PodSeen]:
    """Those that go first: what is not critical, and what is no daemon."""
    groups: dict[tuple[bool, bool], list[PodSeen]] = {}
    for each in pods:
        is_critical = each.spec.get("priorityClassName") in _CRITICAL
        groups.setdefault((is_critical, each.is_owned_by("DaemonSet")), []).append(each)
    return groups[min(groups)] if groups else []


def _is_going(machine: ReadOnlyObject) -> bool:
    return bool(machine["metadata"].get("deletionTimestamp"))


def _pool_of(claim: ReadOnlyObject) -> str:
    return str((claim["metadata"].get("labels") or {}).get(NODE_POOL, ""))
