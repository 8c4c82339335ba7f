"""What the recorder remembers of a pod between its attempts."""

from typing import Any, Self

import msgspec

from kubescene.api.kinds import POD
from kubescene.clock import ScenarioStep
from kubescene.instruments import ObjectWrite
from kubescene.timeline.pod_facts import PodAttempt


class PodHistory(msgspec.Struct, frozen=True, gc=False):
    """``waiting`` is the last attempt, as long as none has bound the pod."""

    created_at: ScenarioStep
    bound_at: ScenarioStep | None = None
    attempts: int = 0
    waiting: PodAttempt | None = None


class PodHistories:
    """Histories by uid; values are replaced, never changed, so that a fork copies one dict."""

    def __init__(self) -> None:
        self.by_uid: dict[str, PodHistory] = {}

    def observe(self, write: ObjectWrite, step: ScenarioStep) -> None:
        if write.gvk != POD:
            return
        uid = write.record.uid
        if write.verb == "create" and not write.subresource:
            self.by_uid[uid] = PodHistory(step)
        elif write.verb == "bind":
            old = self.of(uid, step)
            self.by_uid[uid] = PodHistory(old.created_at, step, old.attempts, old.waiting)
        elif write.verb == "delete" and not write.record.node:
            self.by_uid.pop(uid, None)

    def of(self, uid: str, step: ScenarioStep) -> PodHistory:
        """What is known; a pod that was never seen is taken to have been created now."""
        return self.by_uid.get(uid) or PodHistory(step)

    def attempted(self, fact: PodAttempt) -> None:
        """An attempt is over."""
        waiting = None if fact.node else fact
        self.by_uid[fact.uid] = PodHistory(fact.created_at, fact.bound_at, fact.attempt, waiting)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = type(self)()
        copy.by_uid = dict(self.by_uid)
        return copy
