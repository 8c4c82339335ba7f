"""Scheduling cycles of one profile, and who begins them; `Deciding` is one of them."""

from kubescene.errors import ConfigurationError
from kubescene.scheduler.cycle.deciding import Deciding
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.profile_cycles import ProfileCycles
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.state.pods import PodInfo


class Cycle(ProfileCycles):
    """Cycles of one profile, from a pod to a decision each."""

    def decide(self, pod: PodInfo, *, explain: Explain | None = None) -> Decision:
        """Find a node for the pod, now; every extender must answer at once."""
        deciding = self.begin(pod, explain)
        if not deciding.run():
            raise ConfigurationError("an extender answers later: this decision cannot wait for it")
        return deciding.decision

    def begin(
        self, pod: PodInfo, explain: Explain | None = None, number: int | None = None
    ) -> Deciding:
        """A decision that may have to wait for extenders.

        ``number`` counts the cycles of the scheduler. Without it the decision is asked for by
        somebody else: no hint is taken from the cycle before, and none left to the next.
        """
        return Deciding(self, pod, explain, number)
