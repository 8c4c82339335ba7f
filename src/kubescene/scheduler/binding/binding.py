"""From a decision to a bound pod: Reserve, Permit, PreBind, Bind, PostBind.

A `Binding` is a plain object that knows its stage. `Binding.run` goes as far as it can without
waiting; when a plugin says ``WAIT``, or an extender that binds has not answered yet, it stands
still until its scheduler calls it again. So one pod that waits holds up nobody, and a world can be
copied while pods wait.

What fails while a pod is being decided about, that is up to Permit, is between the pod and the
plugin. What fails later sets free what the pod had held in the meantime (`Binding.held_room`), and
that may help others.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from kubescene.clock import MINUTE, Scheduled
from kubescene.control.timers import Timers
from kubescene.durations import go_duration
from kubescene.errors import PluginError
from kubescene.scheduler.binding.waiting_pods import Waiting, WaitingRoom
from kubescene.scheduler.cycle.consultations import (
    begun_wait,
    consultation,
    waits_ended,
    waits_with,
)
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.extenders.extenders import (
    ExtenderCall,
    Extenders,
    ExtenderVerb,
    PendingCall,
)
from kubescene.scheduler.framework.extensions import Extension
from kubescene.scheduler.framework.interfaces import Awaited
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pods import PodInfo

LONGEST_PERMIT_WAIT = 15 * MINUTE
_NOBODY: Mapping[str, tuple[str, int]] = {}
ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


class BindingStage(IntEnum):
    """How far a binding has come."""

    RESERVE = 0
    PERMITTED = 1
    PRE_BIND = 2
    BIND = 3
    BOUND = 4


RESERVE, PERMITTED, PRE_BIND, BIND, BOUND = BindingStage
"""Names of their own: looking one up in its class takes ten times as long."""


class FailedBinding(NamedTuple):
    """Which plugin ended a binding, and with what words."""

    point: str
    plugin: str
    message: str


Annotating: TypeAlias = Callable[["Binding"], dict[str, str]]


class Binding:
    """One pod on its way onto its node."""

    failed: FailedBinding | None = None
    permits: Mapping[str, tuple[str, int]] = _NOBODY
    """What Permit plugins said, and how long they would have the pod wait."""
    binder = ""
    stage = RESERVE
    awaited: Sequence[Awaited] = ()
    """The objects that a PreBind plugin waits for, if it says so."""
    bound_by_extender = False
    _position = 0
    _waiting: Waiting | None = None
    _asked: PendingCall | None = None

    def __init__(
        self,
        entry: QueuedPod,
        decision: Decision,
        pod: PodInfo,
        framework: Framework,
        *,
        room: WaitingRoom,
        timers: Timers,
        extenders: Extenders,
        annotate: Annotating | None = None,
    ) -> None:
        self.entry = entry
        self.decision = decision
        self.pod = pod
        self.framework = framework
        # Who was not asked in PreFilter has nothing to reserve either.
        self._relevant = decision.state.relevant or framework.relevance.of(pod.signature)
        self._room = room
        self._timers = timers
        self._extenders = extenders
        self._annotate = annotate
        self._times: list[Scheduled] = []

    def is_waiting(self) -> bool:
        """Whether a plugin or an extender has to say something before `run` can go on."""
        if self._asked is not None:
            return not self._asked.answered
        return self._waiting is not None and self._waiting.outcome is None

    @property
    def awaits_extender(self) -> bool:
        return self._asked is not None

    @property
    def waits_for(self) -> str:
        """The PreBind plugin that is to be asked again when something happens that it waits for."""
        if self.stage is not PRE_BIND or not self.is_waiting():
            return ""
        return self._relevant.pre_bind[self._position].name

    @property
    def held_room(self) -> bool:
        """Whether others may have been turned away because of this pod."""
        return self.stage >= PERMITTED

    def run(self) -> Status | None:
        """Success, or what went wrong; None while the binding waits."""
        if self.stage is RESERVE and self._relevant.binds_at_once:
            return self._bind()
        if self._asked is not None:
            return self._take_extender()
        if self._waiting is not None:
            outcome = self._end_wait()
            if outcome is None or not outcome.ok:
                return outcome
        return _STEPS[self.stage](self)

    def rehearse(self) -> Status:
        """Reserve and Permit, for those who want to know how it would go; take back with `undo`.

        Success, ``WAIT`` if a plugin would have the pod wait, or what goes wrong.
        """
        status = self._reserve_all()
        if not status.ok:
            return status
        status, waits = self._permit_all()
        if not waits:
            return status
        return Status(Code.WAIT, (*status.reasons, ASKED_TO_WAIT))

    def prepare(self) -> Status:
        """Reserve and Permit, and no further; a pod that has to wait begins to do so."""
        status = self._reserve_all()
        if not status.ok:
            return status
        status, waits = self._permit_all()
        if not waits and not status.ok:
            return status
        self.stage = PERMITTED
        if waits:
            self._wait(waits, self._too_long_at_permit)
            self._note_wait(waits, "Permit")
        return SUCCESS

    def abandon(self, message: str) -> None:
        """The pod is gone: whatever it waits for, it need not wait any longer."""
        if self._waiting is not None:
            self._waiting.reject("", message)

    def ask_again(self, plugin: str) -> None:
        """Something happened that a PreBind plugin waits for."""
        if self._waiting is not None:
            self._waiting.allow(plugin)

    def undo(self) -> None:
        """Give back what was reserved, in reverse order, whoever raises in between."""
        failed: PluginError | None = None
        for extension in reversed(self._relevant.reserve):
            if extension.undo is not None:
                try:
                    extension.undo(self.decision.state, self.pod, self.pod.node)
                except PluginError as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    def post_bind(self) -> None:
        for extension in self._relevant.post_bind:
            extension.call(self.decision.state, self.pod, self.pod.node)

    # -- the stages: each goes on to the next ----------------------------------------------

    def _reserve(self) -> Status | None:
        status = self.prepare()
        if not status.ok:
            return status
        return None if self._waiting is not None else self._pre_bind()

    def _reserve_all(self) -> Status:
        for extension in self._relevant.reserve:
            status: Status = self._call(extension)
            if not status.ok:
                return self._end(status, extension, "Reserve")
        return SUCCESS

    def _permit_all(self) -> tuple[Status, dict[str, int | None]]:
        """All Permit plugins run; those that ask to wait do so together."""
        waits: dict[str, int | None] = {}
        last = SUCCESS
        for extension in self._relevant.permit:
            status, wait = self._call(extension)
            if self._annotate is not None:
                said = "wait" if status.code is Code.WAIT else status.message
                self.permits = {**self.permits, extension.name: (said or "success", wait)}
            if status.code is Code.WAIT:
                waits[extension.name] = min(wait, LONGEST_PERMIT_WAIT)
                last = status
            elif not status.ok:
                return self._end(status, extension, "Permit"), {}
        return last, waits

    def _pre_bind(self) -> Status | None:
        self.stage = PRE_BIND
        plugins = self._relevant.pre_bind
        while self._position < len(plugins):
            extension = plugins[self._position]
            answer = self._call(extension)
            status, wait = answer if isinstance(answer, tuple) else (answer, None)
            if status.code is Code.WAIT:
                self._wait({extension.name: wait}, self._overdue_in_pre_bind)
                self._note_wait({extension.name: wait}, "PreBind")
                self.awaited = () if extension.awaits is None else self._asking(extension)
                return None
            if status.code not in (Code.SUCCESS, Code.SKIP):
                return self._end(status, extension, "PreBind")
            self._position += 1
        return self._bind()

    def _bind(self) -> Status | None:
        self.stage = BIND
        for extender in self._extenders.interested(self.pod):
            if ExtenderVerb.BIND in extender.verbs:
                nodes = (self.pod.node,)
                call = ExtenderCall(extender, ExtenderVerb.BIND, self.pod, nodes)
                self._asked = self._extenders.ask(call)
                return self._take_extender()
        return self.bind_by_plugin()

    def bind_by_plugin(self) -> Status:
        """Let the first Bind plugin that wants to bind the pod."""
        for extension in self.framework.bind:
            self.binder = extension.name
            if self._annotate is not None:
                self.decision.state.annotations = self._annotate(self)
            status: Status = extension.call(self.decision.state, self.pod, self.pod.node)
            if status is SUCCESS or status.code is not Code.SKIP:
                self.stage = BOUND
                return status if status.ok else self._end(status, extension, "Bind")
        return Status.error("no Bind plugin took the pod")

    # -- waiting ---------------------------------------------------------------------------

    def _wait(self, waits: dict[str, int | None], overdue: Callable[[str, int], None]) -> None:
        self._waiting = self._room.admit(self.pod, self.pod.node, [*waits])
        for plugin, wait in waits.items():
            if wait is not None:
                name = f"{self.pod.key} waits for {plugin}"
                self._times.append(self._timers.after(wait, overdue, plugin, wait, name=name))

    def _note_wait(self, waits: dict[str, int | None], point: str) -> None:
        """Keep what the pod waits for."""
        now, node = self._timers.now(), self.decision.node
        for plugin, wait in waits.items():
            begun = begun_wait(plugin, point, node, now, wait)
            self.decision.waits = waits_with(self.decision.waits or [], begun)

    def _end_wait(self) -> Status | None:
        """What came of the wait; None if it goes on."""
        assert self._waiting is not None
        outcome = self._waiting.outcome
        if outcome is not None:
            self._waiting = None
            now, waits = self._timers.now(), self.decision.waits or []
            self.decision.waits = waits_ended(waits, now, outcome)
            for timer in self._times:
                timer.cancel()
            self._times.clear()
        return outcome

    def _take_extender(self) -> Status | None:
        """What became of a pod that an extender was to bind (X-10); None while it thinks."""
        assert self._asked is not None
        if not self._asked.answered:
            return None
        call, extender, answer = self._asked.call, self._asked.call.extender, self._asked.result()
        self._asked = None
        record = consultation(call, answer, answer.error)
        self.decision.extenders = [*(self.decision.extenders or ()), record]
        if not answer.error:
            self.stage = BOUND
            self.bound_by_extender = True
            return SUCCESS
        return self.bind_by_plugin() if extender.ignorable else Status.error(answer.error)

    def _too_long_at_permit(self, plugin: str, wait: int) -> None:
        if self._waiting is not None and plugin in self._waiting.pending_plugins:
            text = f"rejected due to timeout after waiting {go_duration(wait)} at plugin {plugin}"
            self._waiting.reject(plugin, text)

    def _overdue_in_pre_bind(self, plugin: str, wait: int) -> None:
        del wait
        self.ask_again(plugin)

    def _asking(self, extension: Extension) -> Sequence[Awaited]:
        assert extension.awaits is not None
        awaited: Sequence[Awaited] = extension.awaits(self.decision.state, self.pod, self.pod.node)
        return awaited

    def _end(self, status: Status, extension: Extension, point: str) -> Status:
        """A plugin ends the binding."""
        self.failed = FailedBinding(point, extension.name, status.message)
        return _named(status, extension, point)

    def _call(self, extension: Extension) -> Any:
        return extension.call(self.decision.state, self.pod, self.pod.node)


_STEPS: dict[BindingStage, Callable[[Binding], Status | None]] = {
    RESERVE: Binding._reserve,
    PERMITTED: Binding._pre_bind,
    PRE_BIND: Binding._pre_bind,
}
"""Where a binding begins, and where it goes on after a wait."""


def _named(status: Status, extension: Extension, point: str) -> Status:
    """A refusal by a plugin; an error carries the names of plugin and point in its text."""
    if status.code.is_rejection:
        return status.by(extension.name)
    return Status.error(f'running {point} plugin "{extension.name}": {status.message}')
