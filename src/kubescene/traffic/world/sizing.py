"""What a recommendation of a size does to replicas: who is replaced, and who is resized."""

from collections.abc import Sequence

from kubescene.autoscalers import RecommendedPodResources, VerticalRecommendationResponse
from kubescene.flows.memory import MemoryRules
from kubescene.traffic.spec.fields import Replacement
from kubescene.traffic.world.decisions import resource
from kubescene.traffic.world.in_memory_replicas import InMemoryReplicas
from kubescene.traffic.world.replicas import Replica, ReplicaSize
from kubescene.traffic.world.worlds import Replaced


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
