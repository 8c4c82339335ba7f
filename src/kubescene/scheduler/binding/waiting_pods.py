"""Pods that have a node and wait for a plugin's word: at Permit, or in PreBind.

`Waiting` is what plugins see of such a pod. When its outcome is known the binding it belongs to
becomes *ready*, and the scheduler resumes it in a loop of its own.
"""

from collections import deque
from collections.abc import Callable, Iterator

from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.pods import PodInfo


class Waiting:
    """A pod and the plugins that have yet to allow it."""

    __slots__ = ("_pending", "_room", "node", "outcome", "pod")

    def __init__(self, room: "WaitingRoom", pod: PodInfo, node: str, plugins: list[str]) -> None:
        self._room = room
        self._pending = plugins
        self.pod = pod
        self.node = node
        self.outcome: Status | None = None

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        if self.outcome is None and plugin in self._pending:
            self._pending.remove(plugin)
            if not self._pending:
                self._end(SUCCESS)

    def reject(self, plugin: str, message: str) -> None:
        if self.outcome is None:
            self._end(Status.unschedulable(message).by(plugin))

    def preempt(self) -> None:
        """Somebody more important takes the node: an error, so that the pod is tried again."""
        if self.outcome is None:
            self._end(Status.error("waiting on permit for pod: preempted"))

    def _end(self, outcome: Status) -> None:
        self.outcome = outcome
        self._room.ended(self)


class WaitingRoom:
    """All pods that wait, by uid."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waiting: dict[str, Waiting] = {}
        self._ready: deque[str] = deque()

    def get(self, uid: str) -> Waiting | None:
        return self._waiting.get(uid)

    def __iter__(self) -> Iterator[Waiting]:
        return iter([*self._waiting.values()])

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, pod: PodInfo, node: str, plugins: list[str]) -> Waiting:
        """A pod begins to wait for some plugins."""
        waiting = self._waiting[pod.uid] = Waiting(self, pod, node, plugins)
        return waiting

    def ended(self, waiting: Waiting) -> None:
        """The outcome of a wait is known."""
        del self._waiting[waiting.pod.uid]
        self.make_ready(waiting.pod.uid)

    def make_ready(self, uid: str) -> None:
        """A binding that waits can go on."""
        self._ready.append(uid)
        self._wake()

    def withdraw(self, uid: str) -> None:
        """A binding goes on by itself, ready or not."""
        if uid in self._ready:
            self._ready.remove(uid)

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    def next_ready(self) -> str:
        """The uid of the pod whose wait ended first."""
        return self._ready.popleft()
