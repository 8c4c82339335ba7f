"""The memory of replicas: how many requests fit, and how long one that was killed has to wait."""

from kubescene.clock import MINUTE
from kubescene.flows.fields import MemoryModel
from kubescene.flows.kernels import NEVER

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
