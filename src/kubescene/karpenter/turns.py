"""The turns of Karpenter in a world of objects: batches, loops of disruption, and what is told."""

from collections.abc import Mapping

from msgspec import Struct, field

from kubescene.api.kinds import NODE
from kubescene.client import ObjectRef
from kubescene.clock import LAST_INSTANT, MINUTE, SECOND
from kubescene.control.loops import ControllerContext
from kubescene.errors import ApiError
from kubescene.karpenter.disruption import (
    METHODS,
    ClusterView,
    Disruption,
    DisruptionCommand,
)
from kubescene.karpenter.facts import KarpenterDecided
from kubescene.karpenter.flags import KarpenterFlags
from kubescene.karpenter.instance_types import INFINITE
from kubescene.karpenter.kinds import NODE_CLAIM_KIND, NODE_POOL_KIND
from kubescene.karpenter.lifecycle import FINALIZER, ClaimLifecycle, with_conditions
from kubescene.karpenter.nodepools import NodePool
from kubescene.karpenter.nodes import condition, find_condition
from kubescene.karpenter.objects import KarpenterWorld
from kubescene.karpenter.packing import OpenClaim, Packed
from kubescene.karpenter.pods import DISRUPTED, DO_NOT_DISRUPT, ONE
from kubescene.node_autoscaling.facts import GroupGrown, GroupOption, NodeRemoved

POLL = 10 * SECOND
"""How often disruption is looked at, and how often waiting pods ask again."""
VALIDATED_AFTER = 15 * SECOND
UNCONSOLIDATED_AFTER = 5 * MINUTE
"""So long nothing is looked at again if nothing has changed."""
COMMAND_TIMEOUT = 10 * MINUTE
_DELAYED = ("empty", "multi", "single")


class _Running(Struct):
    """A command under way."""

    command: DisruptionCommand
    since: int
    replacements: list[str]


class _Batch(Struct):
    """Pods that asked since the last round."""

    began: int | None = None
    last: int = 0
    uids: dict[str, None] = field(default_factory=dict)

    def trigger(self, uid: str, now: int) -> None:
        if uid not in self.uids:
            self.uids[uid] = None
            self.began = now if self.began is None else self.began
            self.last = now

    def due(self, flags: KarpenterFlags) -> int | None:
        if self.began is None:
            return None
        return min(self.last + flags.batch_idle_duration, self.began + flags.batch_max_duration)


class KarpenterTurns:
    """One process of Karpenter."""

    def __init__(self, context: ControllerContext, flags: KarpenterFlags) -> None:
        self._context = context
        self._flags = flags
        self._timers = context.timers
        self._world = KarpenterWorld(context, flags)
        self._lifecycle = ClaimLifecycle(self._world)
        self._batch = _Batch()
        self._asked: dict[str, int] = {}
        """When waiting pods, and nodes that leave, ask again."""
        self._nominated: dict[str, int] = {}
        self._running: dict[str, _Running] = {}
        """Commands by the nodes that they give up."""
        self._next_loop = self._timers.now() + POLL
        self._validating: tuple[int, int, DisruptionCommand] | None = None
        """When, which method, and what is to be looked at again."""
        self._settled: dict[str, tuple[int, int]] = {}
        """Methods that found nothing: in which state, and until when that holds."""
        self._stays: dict[str, str] = {}
        self._told_stays: dict[str, str] = {}
        self._told_unhelped: dict[str, dict[str, str]] = {}
        self._woken_at: int | None = None
        self._leaving: tuple[object, ...] = ()
        """By what nodes left, the last time that anybody looked."""
        self._asks_again: int | None = None
        """No one of those that ask does so again before."""

    def run(self) -> bool:
        """All that is due; whether something was written."""
        now = self._timers.now()
        world = self._world
        world.wrote = False
        self._lifecycle.turn(now)
        self._tell_pools(now)
        self._collect(now)
        due = self._batch.due(self._flags)
        if due is not None and now >= due:
            self._batch = _Batch()
            self._provision(now)
        self._continue_commands(now)
        self._disrupt(now)
        self._sleep(now)
        return world.wrote

    def _sleep(self, now: int) -> None:
        """Wake when the next thing is due."""
        times = [
            self._lifecycle.next_due,
            self._batch.due(self._flags),
            self._asks_again,
            self._validating[0] if self._validating is not None else None,
            self._next_loop if self._world.claims else None,
        ]
        at = min((each for each in times if each is not None and each > now), default=None)
        if at is not None and at != self._woken_at:
            self._woken_at = at
            self._timers.at(at, _nothing, name="karpenter")

    # -- batches ---------------------------------------------------------------------------

    def _collect(self, now: int) -> None:
        """Who asks for a place: pods that wait, and nodes whose pods have to go."""
        changes, self._world.asking = self._world.asking, {}
        leaving = (self._world.claim_changes, *self._running)
        if leaving != self._leaving:
            self._leaving = leaving
            changes |= self._nodes_that_leave()
        for uid, asks in changes.items():
            if not asks:
                self._asked.pop(uid, None)
            elif now >= self._asked.get(uid, 0):
                self._ask(uid, now)
        if self._asks_again is not None and now >= self._asks_again:
            for uid in [uid for uid, at in self._asked.items() if now >= at]:
                self._ask(uid, now)
            self._asks_again = min(self._asked.values(), default=None)

    def _ask(self, uid: str, now: int) -> None:
        self._asked[uid] = now + POLL
        if self._asks_again is None:
            self._asks_again = now + POLL
        self._batch.trigger(uid, now)

    def _nodes_that_leave(self) -> dict[str, bool]:
        """Nodes that ask for their pods, and those that no longer do."""
        asking = {
            f"node/{name}": True
            for name, claim in self._world.claims.items()
            if name in self._running or claim["metadata"].get("deletionTimestamp")
        }
        gone = (uid for uid in self._asked if uid.startswith("node/") and uid not in asking)
        return {**dict.fromkeys(gone, False), **asking}

    def _view(self, now: int) -> ClusterView:
        for name in [name for name, until in self._nominated.items() if until <= now]:
            del self._nominated[name]
        return self._world.view(now, self._running, frozenset(self._nominated))

    def _provision(self, now: int) -> None:
        if not self._world.pools:
            return
        view = self._view(now)
        packed = view.provision()
        if packed is None:
            return
        self._nominate(packed, now)
        before = self._sizes()
        made = [name for each in packed.claims if (name := self._create(each, view))]
        unhelped = {key: {"karpenter": str(fault)} for key, fault in sorted(packed.faults.items())}
        if made:
            pods = [pod.key for claim in packed.claims for pod in claim.pods]
            count = len(made)
            why = f"{count} claim{'s' if count > 1 else ''} for {len(pods)} pods that wait"
            self._say(
                KarpenterDecided(
                    ordered=self._growth(before),
                    options=tuple(_option(claim, view) for claim in packed.claims),
                    triggered=tuple(pods),
                    unhelped=unhelped,
                    why=why,
                )
            )
        elif unhelped and unhelped != self._told_unhelped:
            self._say(KarpenterDecided(unhelped=unhelped, why="no pool helps"))
        self._told_unhelped = unhelped
        self._report(packed, view)

    def _report(self, packed: Packed, view: ClusterView) -> None:
        """Events of pods that found no place."""
        if not self._world.recorder.on:
            return
        for pod in view.pending:
            if pod.key in packed.faults:
                self._world.tell(
                    pod.object, "FailedScheduling", str(packed.faults[pod.key]), warns=True
                )

    def _nominate(self, packed: Packed, now: int) -> None:
        window = max(2 * self._flags.batch_max_duration, 10 * SECOND)
        for each in packed.existing:
            if each.pods:
                self._nominated[each.node.name] = now + window

    def _create(self, claim: OpenClaim, view: ClusterView) -> str:
        """The name of the new claim; empty if its pool has reached its limits or is gone."""
        world, pool = self._world, world_pool(self._world, claim)
        if pool is None or self._is_beyond(pool):
            return ""
        obj = claim.object(view.catalogue)
        obj["metadata"] |= {
            "generateName": f"{pool.name}-",
            "finalizers": [FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": NODE_POOL_KIND.api_version,
                    "kind": NODE_POOL_KIND.kind,
                    "name": pool.name,
                    "uid": pool.object["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
            ],
        }
        try:
            return world.create(obj)
        except ApiError as error:
            self._say(
                KarpenterDecided(error=f"a claim of {pool.name} was refused: {error.message}")
            )
            return ""

    def _is_beyond(self, pool: NodePool) -> bool:
        """Whether its claims use more than it may."""
        if not pool.limits:
            return False
        used = dict.fromkeys(pool.limits, 0)
        for claim in self._world.claims_of(pool.name):
            capacity = self._world.node(claim["metadata"]["name"]).capacity
            for name in used:
                used[name] += capacity.get(name, ONE if name == "nodes" else 0)
        return any(used[name] > most for name, most in pool.limits.items())

    # -- disruption ------------------------------------------------------------------------

    def _disrupt(self, now: int) -> None:
        if self._validating is not None:
            at, index, command = self._validating
            if now < at:
                return
            self._validating = None
            if valid := self._still_valid(command, now):
                self._start(valid, now)
                self._loop(0, now)
            else:
                self._loop(index + 1, now)
        elif now >= self._next_loop and self._world.claims:
            self._loop(0, now)

    def _loop(self, first: int, now: int) -> None:
        """The methods in order, from one on, until one acts or all have found nothing."""
        self._next_loop = now + POLL
        index = first
        while index < len(METHODS):
            method = METHODS[index]
            command = self._command(method, now)
            if command is None:
                index += 1
                continue
            if method in _DELAYED:
                self._validating = now + VALIDATED_AFTER, index, command
                return
            self._start(command, now)
            index = 0
        self._tell_stays()

    def _command(self, method: str, now: int) -> DisruptionCommand | None:
        known = self._settled.get(method)
        if known is not None and known[0] == self._world.state and now < known[1]:
            return None
        view = self._view(now)
        decided = Disruption(view, self._costs(view)).decide(method)
        self._stays = decided.stays if method == "empty" else {**self._stays, **decided.stays}
        if decided.commands:
            return decided.commands[0]
        if decided.is_final and not self._nominated:
            again = UNCONSOLIDATED_AFTER if self._depends_on_time(view) else LAST_INSTANT - now
            self._settled[method] = self._world.state, now + again
        return None

    def _depends_on_time(self, view: ClusterView) -> bool:
        """Whether the same cluster might be decided about otherwise later."""
        if self._world.offers.has_sold_out or any(each.has_schedules for each in view.pools):
            return True
        return any(pod.annotations.get(DO_NOT_DISRUPT, "true") != "true" for pod in view.pods)

    def _costs(self, view: ClusterView) -> dict[str, float]:
        """What all nodes of a pool cost in an hour."""
        costs: dict[str, float] = {}
        for node in view.nodes:
            kind = view.catalogue.by_name.get(
                node.labels.get("node.kubernetes.io/instance-type", "")
            )
            if kind is None or not node.pool:
                continue
            zone = node.labels.get("topology.kubernetes.io/zone", "")
            price = kind.price_of(zone, node.labels.get("karpenter.sh/capacity-type", ""))
            costs[node.pool] = costs.get(node.pool, 0.0) + (price or 0.0)
        return costs

    def _still_valid(self, command: DisruptionCommand, now: int) -> DisruptionCommand | None:
        """The command, as far as it would be given again."""
        view = self._view(now)
        again = Disruption(view, self._costs(view))
        found = {each.name: each for each in again.candidates(command.method)}
        allowed = view.allowed(command.reason)
        kept = []
        for each in command.candidates:
            it = found.get(each.name)
            if it is None or each.name in self._nominated or not allowed.get(each.pool.name):
                if command.method == "empty":
                    continue
                return None
            allowed[each.pool.name] -= 1
            kept.append(it)
        if not kept:
            return None
        if command.method == "empty":
            return DisruptionCommand("empty", kept)
        packed = view.without(kept, consolidates=True)
        if not view.all_placed(packed) or len(packed.claims) != len(command.replacements):
            return None
        if command.replacements:
            names = {each.name for each in packed.claims[0].types}
            if not {each.name for each in command.replacements[0].types} <= names:
                return None
        return command

    def _start(self, command: DisruptionCommand, now: int) -> None:
        """Taint the nodes, order what comes in their place; they go when that is there."""
        world = self._world
        view = self._view(now)
        before = self._sizes()
        for each in command.candidates:
            node = world.nodes.get(each.name)
            if node is not None:
                taints = (node.get("spec") or {}).get("taints") or ()
                body = {"spec": {"taints": [*taints, dict(DISRUPTED)]}}
                world.patch(ObjectRef(NODE, each.name), body)
            told = {"DisruptionReason": "True"}
            conditions = with_conditions(world.claims[each.name], told, now, command.reason)
            body = {"status": {"conditions": conditions}}
            world.patch(ObjectRef(NODE_CLAIM_KIND, each.name), body, status=True)
        running = _Running(command, now, [])
        for each in command.candidates:
            self._running[each.name] = running
        running.replacements += [self._create(each, view) for each in command.replacements]
        if command.packed is not None:
            self._nominate(command.packed, now)
        if not all(running.replacements):
            self._abandon(running, "a replacement could not be ordered")
            return
        sizes = self._sizes()
        self._say(
            KarpenterDecided(
                ordered=self._growth(before),
                removed=tuple(
                    NodeRemoved(
                        node=each.name,
                        group=each.pool.name,
                        evicted=tuple(pod.key for pod in each.reschedulable),
                        size=sizes.get(each.pool.name, 0),
                    )
                    for each in command.candidates
                ),
                options=tuple(_option(each, view) for each in command.replacements),
                triggered=tuple(pod.key for each in command.replacements for pod in each.pods),
                staying=self._changed_stays({each.name for each in command.candidates}),
                why=self._why(command, view),
            )
        )
        self._continue_commands(now)

    def _why(self, command: DisruptionCommand, view: ClusterView) -> str:
        saved = f"{command.savings(view.catalogue):.4g} less per hour"
        what = {"empty": "empty", "drift": "drifted"}.get(command.method, "others hold its pods")
        if command.method in ("multi", "single") and command.replacements:
            what = "a cheaper node holds its pods"
        return f"{command.reason}: {what}, {saved}"

    def _continue_commands(self, now: int) -> None:
        """Nodes go as soon as what comes in their place is ready."""
        seen = set[int]()
        for running in list(self._running.values()):
            if id(running) in seen:
                continue
            seen.add(id(running))
            self._continue(running, now)
        for name in [name for name in self._running if name not in self._world.claims]:
            del self._running[name]

    def _continue(self, running: _Running, now: int) -> None:
        world = self._world
        names = [each.name for each in running.command.candidates]
        if all(
            name not in world.claims or world.claims[name]["metadata"].get("deletionTimestamp")
            for name in names
        ):
            return
        claims = [world.claims.get(name) for name in running.replacements]
        if any(each is None for each in claims):
            self._abandon(running, "a replacement is gone")
        elif all(each is not None and condition(each, "Initialized") == "True" for each in claims):
            for name in names:
                world.delete(ObjectRef(NODE_CLAIM_KIND, name))
        elif now - running.since > COMMAND_TIMEOUT:
            self._abandon(running, "what should replace it was not ready in time")

    def _abandon(self, running: _Running, why: str) -> None:
        """They stay after all."""
        deleted = {}
        for each in running.command.candidates:
            self._running.pop(each.name, None)
            deleted[each.name] = f"abandoned: {why}"
            node = self._world.nodes.get(each.name)
            if node is not None:
                taints = (node.get("spec") or {}).get("taints") or ()
                left = [it for it in taints if it["key"] != DISRUPTED["key"]]
                self._world.patch(ObjectRef(NODE, each.name), {"spec": {"taints": left or None}})
            claim = self._world.claims.get(each.name)
            if claim is not None:
                conditions = with_conditions(claim, {"DisruptionReason": None}, 0)
                body = {"status": {"conditions": conditions}}
                self._world.patch(ObjectRef(NODE_CLAIM_KIND, each.name), body, status=True)
        self._say(KarpenterDecided(deleted=deleted, why=why))

    # -- what is told ----------------------------------------------------------------------

    def _say(self, fact: KarpenterDecided) -> None:
        self._context.tell(fact)

    def _changed_stays(self, leaving: set[str]) -> dict[str, str]:
        staying = {name: why for name, why in sorted(self._stays.items()) if name not in leaving}
        self._told_stays = dict(staying)
        return staying

    def _tell_stays(self) -> None:
        """Why nodes stay, when that is not what was told before."""
        staying = dict(sorted(self._stays.items()))
        if staying and staying != self._told_stays:
            self._told_stays = staying
            self._say(KarpenterDecided(staying=staying))

    def _sizes(self) -> dict[str, int]:
        return {
            name: sum(1 for _ in self._world.claims_of(name)) for name in sorted(self._world.pools)
        }

    def _growth(self, before: Mapping[str, int]) -> tuple[GroupGrown, ...]:
        return tuple(
            GroupGrown(group=name, before=before.get(name, 0), after=size)
            for name, size in self._sizes().items()
            if size > before.get(name, 0)
        )

    def _tell_pools(self, now: int) -> None:
        """Whether a pool makes sense, and how many nodes it has."""
        world = self._world
        for name, pool in sorted(world.pools.items()):
            fault, status = world.fault_of(pool), pool.object.get("status") or {}
            count = world.size_of(name)
            known = find_condition(pool.object, "Ready") or {}
            same = (known.get("status") == "False") == bool(fault) and known
            if same and known.get("message", "") == fault and status.get("nodes", 0) == count:
                continue
            conditions = with_conditions(
                pool.object, {"Ready": "False" if fault else "True"}, now, fault
            )
            body = {"status": {"conditions": conditions, "nodes": count}}
            world.patch(ObjectRef(NODE_POOL_KIND, name), body, status=True)


def world_pool(world: KarpenterWorld, claim: OpenClaim) -> NodePool | None:
    """The pool of a claim as it is now."""
    return world.pools.get(claim.pool.name)


def _option(claim: OpenClaim, view: ClusterView) -> GroupOption:
    """What a claim may become: the cheapest types, and their price."""
    types = view.catalogue.by_price(claim.types, claim.requirements)
    price = view.catalogue.price(types[0], claim.requirements)
    return GroupOption(
        group=claim.pool.name,
        nodes=1,
        pods=len(claim.pods),
        per_hour=None if price == INFINITE else f"{price:.6g}",
        similar=tuple(each.name for each in types[:5]),
        chosen=True,
    )


def _nothing() -> None:
    """The timer wakes; what is due is found then."""
