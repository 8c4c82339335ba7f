"""The steps of a cycle that found no node: PostFilter plugins may make room, and say for whom."""

from collections.abc import Hashable

from kubescene.errors import ConfigurationError
from kubescene.scheduler.cycle.decisions import UNSCHEDULABLE
from kubescene.scheduler.cycle.explanations import explain_attempt
from kubescene.scheduler.cycle.extender_steps import ExtenderSteps
from kubescene.scheduler.extenders.extenders import ExtenderCall
from kubescene.scheduler.framework.interfaces import PostFilterResult
from kubescene.scheduler.framework.status import Code


class PostFilterSteps(ExtenderSteps):
    """The part of a cycle that comes after Filter. What is said here is made by the others."""

    __slots__ = ("_post_filter", "_reasons", "_stamp")

    _post_filter: int
    _reasons: list[str]
    _stamp: Hashable

    def _give_up(self) -> None:
        if self._cycle.framework.post_filter:
            self.decision.state.explains = self._explains(failed=True)
            self._reasons: list[str] = []
            self._run_post_filter()
        else:
            self._refuse("")

    def _run_post_filter(self) -> None:
        """Run PostFilter until one plugin succeeds, fails or says it is hopeless. [M-3, M-5]"""
        extension = self._cycle.framework.post_filter[self._post_filter]
        state = self.decision.state
        self._take_post_filter(extension.call(state, self._pod, self._diagnosis))

    def _post_filter_answered(self) -> None:
        extension = self._cycle.framework.post_filter[self._post_filter]
        asked, answer = self._asked, self._answer()
        assert asked is not None
        self._note(asked.call, answer, answer.error)
        if extension.answered is None:
            raise ConfigurationError(
                f'plugin "{extension.name}" asks an extender but has no method post_filter_answered'
            )
        state = self.decision.state
        self._take_post_filter(extension.answered(state, self._pod, self._diagnosis, answer))

    def _take_post_filter(self, result: PostFilterResult | ExtenderCall) -> None:
        if isinstance(result, ExtenderCall):
            self._asked = self._cycle.extenders.ask(result)
            self._next = self._post_filter_answered
            return
        decision, status = self.decision, result.status
        decision.post_filtered = self._cycle.framework.post_filter[self._post_filter].name
        if result.victims:
            decision.victims = result.victims
        if result.preemption is not None:
            decision.preemption = result.preemption
        if result.effect is not None:
            decision.effect = result.effect
        if status.ok or status.code is Code.UNRESOLVABLE or not status.code.is_rejection:
            self._diagnosis.post_filter_message = status.message
            failed = not (status.ok or status.code.is_rejection)
            self._refuse(None if failed else result.nominated)
            return
        self._reasons.extend(status.reasons)
        if result.nominated is not None:
            decision.nominated = result.nominated
        self._post_filter += 1
        if self._post_filter < len(self._cycle.framework.post_filter):
            self._run_post_filter()
            return
        self._diagnosis.post_filter_message = ", ".join(self._reasons)
        self._refuse(decision.nominated)

    def _refuse(self, nominated: str | None) -> None:
        decision, diagnosis = self.decision, self._diagnosis
        names = self._cycle.nodes.names
        decision.plugins = diagnosis.plugins
        decision.pending_plugins = diagnosis.pending_plugins
        decision.fail(diagnosis.message(), UNSCHEDULABLE, nominated=nominated)
        if self._explains(failed=True):
            decision.explanation = explain_attempt(names, diagnosis)
        # An extender may say something else the next time.
        asked = bool(self._cycle.extenders.interested(self._pod))
        same = not asked and self._stamp == self._cycle.stamp()
        if same and not (decision.victims or decision.effect or nominated):
            self._cycle.failures.keep(self._pod, decision, self._stamp)
