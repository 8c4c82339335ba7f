"""PostFilter: plugins that may make room for a pod which fits nowhere, and say for whom."""

from kubescene.errors import ConfigurationError
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.explanations import Diagnosis
from kubescene.scheduler.cycle.extender_rounds import note
from kubescene.scheduler.cycle.profile_cycles import ProfileCycles
from kubescene.scheduler.extenders.extenders import ExtenderCall, PendingCall
from kubescene.scheduler.framework.interfaces import PostFilterResult
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.state.pods import PodInfo


class PostFilterRun:
    """Asks one plugin after the other until one succeeds, fails or says it is hopeless. [M-3, M-5]

    What they ask for stands in the decision afterwards, ``nominated`` apart.
    """

    def __init__(
        self,
        cycle: ProfileCycles,
        pod: PodInfo,
        decision: Decision,
        diagnosis: Diagnosis,
        *,
        explains: bool,
    ) -> None:
        self.nominated: str | None = None
        decision.state.explains = explains
        self._cycle = cycle
        self._pod = pod
        self._decision = decision
        self._diagnosis = diagnosis
        self._explains = explains
        self._position = 0
        self._reasons: list[str] = []
        self._asked: PendingCall | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether an extender has to answer first."""
        return self._asked is not None and not self._asked.answered

    def run(self) -> bool:
        """Go on as far as possible; False as long as an extender has to answer first."""
        plugins = self._cycle.framework.post_filter
        while self._position < len(plugins):
            result = self._answered() if self._asked is not None else self._call()
            if isinstance(result, ExtenderCall):
                self._asked = self._cycle.extenders.ask(result)
                if not self._asked.answered:
                    return False
            elif self._take(result):
                return True
        self._diagnosis.post_filter_message = ", ".join(self._reasons)
        self.nominated = self._decision.nominated
        return True

    def _call(self) -> PostFilterResult | ExtenderCall:
        extension = self._cycle.framework.post_filter[self._position]
        result: PostFilterResult | ExtenderCall = extension.call(
            self._decision.state, self._pod, self._diagnosis
        )
        return result

    def _answered(self) -> PostFilterResult | ExtenderCall:
        extension = self._cycle.framework.post_filter[self._position]
        assert self._asked is not None
        call, answer = self._asked.call, self._asked.result()
        self._asked = None
        if self._explains:
            note(self._decision, call, answer, answer.error)
        if extension.answered is None:
            raise ConfigurationError(
                f'plugin "{extension.name}" asks an extender but has no method post_filter_answered'
            )
        result: PostFilterResult | ExtenderCall = extension.answered(
            self._decision.state, self._pod, self._diagnosis, answer
        )
        return result

    def _take(self, result: PostFilterResult) -> bool:
        """Take what a plugin says; returns whether it was the last word."""
        decision, status = self._decision, result.status
        decision.post_filtered = self._cycle.framework.post_filter[self._position].name
        if result.victims:
            decision.victims = result.victims
        if result.preemption is not None:
            decision.preemption = result.preemption
        if result.effect is not None:
            decision.effect = result.effect
        if status.ok or status.code is Code.UNRESOLVABLE or not status.code.is_rejection:
            self._diagnosis.post_filter_message = status.message
            failed = not (status.ok or status.code.is_rejection)
            self.nominated = None if failed else result.nominated
            return True
        self._reasons.extend(status.reasons)
        if result.nominated is not None:
            decision.nominated = result.nominated
        self._position += 1
        return False
