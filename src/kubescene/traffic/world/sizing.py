"""The size of replicas: what a recommendation does to them (who is replaced, who is resized), how
many requests fit into their memory, and how long one that was killed has to wait.
"""

from collections.abc import Sequence

from kubescene.autoscalers import RecommendedPodResources, VerticalRecommendationResponse
from kubescene.clock import MINUTE
from kubescene.flows.fields import MemoryModel
from kubescene.flows.kernels import NEVER
from kubescene.traffic.spec.fields import Replacement
from kubescene.traffic.world.decisions import resource
from kubescene.traffic.world.in_memory_replicas import InMemoryReplicas
from kubescene.traffic.world.replicas import Replica, ReplicaSize
from kubescene.traffic.world.worlds import Replaced

LONGEST_BACKOFF = 5 * MINUTE
BACKOFF_FORGOTTEN = 10 * MINUTE


class MemoryRules:
    """Of one run. Kills are counted by the numbers of replicas."""

    def __init__(self, model: MemoryModel | None) -> None:
        self._model = model
        self._kills: dict[int, int] = {}

    @property
    def request(self) -> int:
        return 0 if self._model is None else int(self._model.request)

    @property
    def modelled(self) -> bool:
        return self._model is not None

    @property
    def limited(self) -> bool:
        return self._model is not None and self._model.limit > 0

    def used(self, held: int) -> int:
        """Bytes that a replica uses with so many requests inside."""
        assert self._model is not None
        return self._model.base + self._model.per_request * held

    def room(self, request: int) -> int:
        """How many requests fit into a replica that requests so much; the limit goes with it."""
        model = self._model
        if model is None or not model.limit or not model.per_request:
            return NEVER
        limit = int(model.limit)
        if model.request:
            limit = limit * request // model.request
        return max(limit - model.base, 0) // model.per_request

    def backoff(self, replica: int, ran: int) -> int:
        """Count a kill after so long; how long the replica waits before it starts again."""
        assert self._model is not None
        if ran >= BACKOFF_FORGOTTEN:
            self._kills.pop(replica, None)
        kills = self._kills.get(replica, 0)
        self._kills[replica] = kills + 1
        if not kills:
            return 0
        return min(int(self._model.restart_backoff) << min(kills - 1, 32), LONGEST_BACKOFF)


class Sizing:
    """Sizes the replicas of a backend. Memory counts only where it is modelled."""

    def __init__(
        self, backend: InMemoryReplicas, memory: MemoryRules, replacement: Replacement
    ) -> None:
        self._backend = backend
        self._memory = memory
        self._replacement = replacement

    def replace(self, answer: VerticalRecommendationResponse) -> Replaced | None:
        """Do what a recommendation asks for; None if it asks for nothing."""
        size = self._target(answer)
        if size is None:
            return None
        backend = self._backend
        evicted, resized = self._misfits(answer), self._named(answer.resize)
        admitted = backend.source.size
        # Whoever is replaced gets the target in any case, others only if they are to.
        backend.admit(size)
        backend.evict(evicted, surge=self._surges(answer))
        backend.resize(resized, size)
        if not answer.admit:
            backend.admit(admitted)
        return Replaced(tuple(each.name for each in evicted), tuple(each.name for each in resized))

    def _surges(self, answer: VerticalRecommendationResponse) -> bool:
        if self._replacement is Replacement.AUTO:
            return answer.evict is None
        return self._replacement is Replacement.SURGE

    def _target(self, answer: VerticalRecommendationResponse) -> ReplicaSize | None:
        cpu, memory = resource(answer, "cpu"), self._memory_of(answer)
        if cpu is None and memory is None:
            return None
        now = self._backend.source.size
        return ReplicaSize(
            now.cpu if cpu is None else cpu.target,
            now.memory if memory is None else memory.target,
        )

    def _memory_of(self, answer: VerticalRecommendationResponse) -> RecommendedPodResources | None:
        return resource(answer, "memory") if self._memory.modelled else None

    def _misfits(self, answer: VerticalRecommendationResponse) -> list[Replica]:
        """Who is to be replaced: as the autoscaler says, or whoever is outside the bounds."""
        if answer.evict is not None:
            found = self._named(answer.evict)
        else:
            found = [each for each in self._backend.active if self._is_outside(each, answer)]
        return [each for each in found if not each.doomed and each.replacement is None]

    def _is_outside(self, replica: Replica, answer: VerticalRecommendationResponse) -> bool:
        cpu, memory = resource(answer, "cpu"), self._memory_of(answer)
        if cpu is not None and not cpu.lower_bound <= replica.size.cpu <= cpu.upper_bound:
            return True
        if memory is None:
            return False
        return not memory.lower_bound <= replica.size.memory <= memory.upper_bound

    def _named(self, names: Sequence[str]) -> list[Replica]:
        wanted = {name: place for place, name in enumerate(names)}
        found = [each for each in self._backend.active if each.name in wanted]
        return sorted(found, key=lambda each: wanted[each.name])
