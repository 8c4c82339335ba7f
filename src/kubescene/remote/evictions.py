"""Evictions by a real API server, told as in an embedded world."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubescene.actors import Actor
from kubescene.api.disruption_budgets import BUDGET, BUDGETS, budget_selector
from kubescene.api.kinds import POD
from kubescene.api.options import PLAIN_DELETE, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.clock import format_time
from kubescene.registry.objects import set_condition
from kubescene.registry.subresources.eviction import (
    API_SERVER,
    DISRUPTION_TARGET,
    Evictions,
    is_unguarded,
)
from kubescene.registry.writes import WriteRequest

if TYPE_CHECKING:
    from kubescene.remote.registry import RemoteRegistry


class RemoteEvictions(Evictions):
    """Evicts by the server's own subresource.

    What the server writes on the way, to the budget and to the pod, is told as in an embedded
    world.
    """

    _registry: "RemoteRegistry"

    def evict(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        return self._registry.evict(actor, namespace, name, options=options, origin=origin)

    def budgets_of(self, pod: Record | None) -> Sequence[Record]:
        """The budgets that have to allow an eviction, as they are before it."""
        if pod is None or is_unguarded(pod):
            return ()
        store = self._registry.store
        budgets = store.list(BUDGETS, pod.namespace)
        return [it for it in budgets if budget_selector(store.decoded(it)).matches(pod.labels)]

    def tell(self, actor: Actor, pod: Record, budgets: Sequence[Record]) -> None:
        """What was written beside the deletion of a pod; ``pod`` and budgets are as before."""
        registry, options = self._registry, WriteOptions(field_manager=API_SERVER)
        for before in budgets:
            after = registry.store.get(before.resource, *before.key)
            if after is not None and after is not before:
                kind = registry.type_of(BUDGET)
                registry.tell(WriteRequest(actor, "update", kind, "status", options), after, before)
        status = registry.store.decoded(pod).get("status") or {}
        now = format_time(registry.clock.now())
        conditions = set_condition(status.get("conditions") or [], DISRUPTION_TARGET, now)
        body, merge = {"status": {"conditions": conditions}}, PatchType.MERGE
        pods = registry.type_of(POD)
        noted = WriteRequest(actor, "patch", pods, "status", options, body, merge)
        registry.tell(noted, registry.store.get(pod.resource, *pod.key) or pod, pod)
