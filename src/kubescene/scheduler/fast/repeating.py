"""Failed attempts that need not be made again: the same kind of pod, and nothing has changed.

One deleted pod may bring back thousands that wait. If the first of them still fits nowhere, nor do
those that differ from it in nothing but their name, as long as no node, nomination or other object
has changed. So they get its answer: message, plugins and explanation, without another look.

That holds where all plugins that are asked about the pod say what their answers depend on (`Reads`,
``prepares_by_class``; a PostFilter plugin by the class attribute ``repeats_itself``).
"""

from collections.abc import Hashable

from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.interfaces import Reads
from kubescene.scheduler.framework.relevance import RelevantPlugins
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY


class RepeatedFailures:
    """Failures of one profile since the last change of anything."""

    def __init__(self, framework: Framework, nominations: Nominations) -> None:
        self._framework = framework
        self._nominations = nominations
        self._stamp: Hashable = None
        self.known: dict[PodSignature, tuple[RelevantPlugins, Decision]] = {}
        """Of whom pods have failed, perhaps with another stamp."""
        self._repeats = Memo(self._may_repeat)

    def find(self, pod: PodInfo, stamp: Hashable) -> Decision | None:
        """The failure of a pod like this one at the same stamp."""
        if stamp != self._stamp:
            self._stamp = stamp
            self.known.clear()
            return None
        known = self.known.get(pod.signature)
        if known is None or self._is_special(pod):
            return None
        relevant, decision = known
        return decision if self._framework.relevance.of(pod.signature) is relevant else None

    def keep(self, pod: PodInfo, decision: Decision, stamp: Hashable) -> None:
        """A pod has failed, and nobody is to make room for it."""
        if stamp != self._stamp or self._is_special(pod):
            return
        if self._repeats[decision.state.skipped_filters] and not decision.state.passing_codes:
            relevant = self._framework.relevance.of(pod.signature)
            if len(self.known) >= POLICY.failures_kept:
                del self.known[next(iter(self.known))]
            self.known[pod.signature] = (relevant, decision)

    def _is_special(self, pod: PodInfo) -> bool:
        """Whether it differs from its like: to those, it may be a rival on its nominated node."""
        nominated = pod.nominated_node or self._nominations.node_of(pod)
        return bool(nominated) or pod.is_resized

    def _may_repeat(self, skipped: frozenset[str]) -> bool:
        """Whether all plugins that have something to say about a pod repeat themselves."""
        framework = self._framework
        reads = {each.name: each.reads for each in framework.filters if each.name not in skipped}
        if Reads.CLUSTER in reads.values():
            return False
        prepare = [each.name for each in framework.pre_filter if each.name not in skipped]
        post = [each.name for each in framework.post_filter if each.name not in skipped]
        return all(
            reads.get(name) is Reads.DOMAIN or self._says(name, "prepares_by_class")
            for name in prepare
        ) and all(self._says(name, "repeats_itself") for name in post)

    def _says(self, plugin: str, attribute: str) -> bool:
        return bool(getattr(self._framework.plugins[plugin], attribute, False))
