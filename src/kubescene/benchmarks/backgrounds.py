"""What goes on beside the operations: churn, and deletions one after the other."""

from collections.abc import Sequence

from kubescene.api.copies import own_copy
from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record
from kubescene.benchmarks.stage import ReplayStage
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MILLISECOND, SECOND
from kubescene.errors import NotFoundError, WorkloadError
from kubescene.types import JsonObject

CREATE, RECREATE = "create", "recreate"


class Churn:
    """Creates one object of each template per tick. In mode ``recreate`` it does so for ``number``
    ticks and takes them away again in as many.
    """

    def __init__(
        self,
        stage: ReplayStage,
        templates: Sequence[JsonObject],
        *,
        mode: str,
        number: int,
        interval_ms: int,
        namespace: str,
    ) -> None:
        if mode not in (CREATE, RECREATE):
            raise WorkloadError(f"the mode of churn is create or recreate, not {mode!r}")
        if mode == RECREATE and not number:
            raise WorkloadError("churn in mode recreate needs a number")
        self._stage = stage
        self._templates = templates
        self._recreates = mode == RECREATE
        self._number = number
        self._interval = interval_ms * MILLISECOND
        self._namespace = namespace
        self._ticks = 0
        self._slots: dict[tuple[int, int], ObjectRef] = {}
        self.due = stage.now + self._interval

    def act(self) -> bool:
        for at, template in enumerate(self._templates):
            slot = (at, self._ticks % self._number if self._recreates else self._ticks)
            if (held := self._slots.pop(slot, None)) is not None:
                self._delete(held)
            else:
                created = self._create(template)
                if self._recreates:
                    self._slots[slot] = created
        self._ticks += 1
        self.due += self._interval
        return self._recreates or not self._number or self._ticks < self._number

    def _create(self, template: JsonObject) -> ObjectRef:
        obj: JsonObject = own_copy(template)
        metadata = obj.setdefault("metadata", {})
        scheme = self._stage.cluster.scheme
        if scheme.of_kind(obj["apiVersion"], obj["kind"]).namespaced:
            metadata["namespace"] = self._namespace
        kind = f"{str(obj['kind']).lower()}-"
        metadata["name"] = self._stage.name_for(metadata, f"churn-{kind}", self._namespace)
        spec = obj.get("spec") or {}
        if obj["kind"] == "Pod" and spec.get("priority") and not spec.get("priorityClassName"):
            spec["priorityClassName"] = self._stage.priority_class(spec["priority"])
        self._stage.create(obj)
        return ObjectRef.to(obj)

    def _delete(self, ref: ObjectRef) -> None:
        try:
            self._stage.client.delete(ref, options=DeleteOptions())
        except NotFoundError:
            return


class Deletions:
    """Deletes pods at a rate."""

    def __init__(self, stage: ReplayStage, pods: Sequence[Record], per_second: int) -> None:
        self._stage = stage
        self._pods = list(reversed(pods))
        self._interval = SECOND // per_second
        self.due = stage.now + self._interval

    def act(self) -> bool:
        if self._pods:
            self._stage.delete_pod(self._pods.pop())
        self.due += self._interval
        return bool(self._pods)
