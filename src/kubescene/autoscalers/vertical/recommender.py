"""The recommender of one VerticalPodAutoscaler.

A `Recommender` is a value: what was told to it, and nothing else. It reads no clock; every method
is told the time. Copy it with `copy.deepcopy` to go on in two ways. The order of calls of one round
is upstream's: pods, samples, kills, `recommend`, `collect_garbage`.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kubescene.api.selectors.label_selectors import EVERYTHING, LabelSelector
from kubescene.autoscalers.vertical.amounts import RESOURCES
from kubescene.autoscalers.vertical.histories import (
    Aggregate,
    AggregateKey,
    PodUsage,
    Usage,
    align,
    load_checkpoint,
    save_checkpoint,
)
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.autoscalers.vertical.recommendations import (
    Bound,
    ContainerEstimates,
    Recommendation,
    UsageEstimate,
    VerticalCondition,
    as_quantities,
    estimate,
    minimums,
    post_process,
)
from kubescene.types import JsonObject

NO_PODS = VerticalCondition("NoPodsMatched", True, "NoPodsMatched", "No pods match this VPA object")
DEFAULT_OPTIONS = RecommenderOptions()


class Recommender:
    """Samples in, recommendations out.

    ``vpa`` may be replaced at any time by another version of the same object. ``usage`` takes
    pods, samples and kills; recommenders of one namespace may share it. ``selector`` picks the
    pods of the VPA's target by their labels.
    """

    def __init__(
        self,
        vpa: VerticalPodAutoscaler,
        options: RecommenderOptions = DEFAULT_OPTIONS,
        selector: LabelSelector = EVERYTHING,
        usage: Usage | None = None,
    ) -> None:
        self.vpa = vpa
        self.options = options
        self.selector = selector
        self.usage = Usage(options) if usage is None else usage
        self.conditions: dict[str, VerticalCondition] = {}
        self._loaded: dict[str, Aggregate] = {}

    def recommend(self, now: int) -> Recommendation:
        """What the containers should have, by all that is known."""
        histories = self._recommended_histories(now)
        least = minimums(self.options, len(histories)) if histories else {}
        containers, recommended = [], []
        for name in sorted(histories):
            estimates = tuple(self._estimates(name, histories[name], least))
            stored, explained = self._stored(name, estimates, histories[name])
            containers.append(explained)
            recommended.append(stored)
        self._update_conditions(bool(recommended), now)
        return Recommendation(
            now,
            tuple(containers),
            tuple(recommended),
            tuple(self.conditions[name] for name in sorted(self.conditions)),
            self.vpa.metadata.generation,
        )

    def histories(self, now: int) -> dict[str, Aggregate]:
        """All histories by container name: of the pods that match, and what was loaded."""
        merged: dict[str, Aggregate] = {}
        for name, aggregates in self._by_container().items():
            align(aggregates)
            for aggregate in aggregates:
                self._merge(merged, name, aggregate, now)
        for name, aggregate in self._loaded.items():
            self._merge(merged, name, aggregate, now)
        return merged

    def checkpoints(self, now: int) -> dict[str, JsonObject]:
        """The status of a checkpoint for each container.

        The peak of an interval that still runs is left out: it may yet grow, and the recommender
        that loads this will see it again.
        """
        histories = self.histories(now)
        for pod in self.usage.pods.values():
            for name, container in pod.containers.items():
                end = container.window_end
                if end is not None and now < end and self._is_used(name, pod):
                    histories[name].subtract_peak(container.highest, end)
        return {name: save_checkpoint(histories[name], now) for name in sorted(histories)}

    def load(self, saved: Mapping[str, JsonObject], now: int) -> None:
        """Go on from checkpoints, by container name; raises `CheckpointError` where one is bad."""
        loaded = {
            name: load_checkpoint(status, self.options, now) for name, status in saved.items()
        }
        self._loaded |= loaded

    def collect_garbage(self, now: int, *, has_controller: bool = False) -> None:
        """Forget what is too old; at most hourly, so it may be called every round."""
        self.usage.collect_garbage(now, has_controller=has_controller)

    def _by_container(self) -> dict[str, list[Aggregate]]:
        found: dict[str, list[Aggregate]] = {}
        for key, aggregate in self.usage.matching(self.selector):
            found.setdefault(key.container, []).append(aggregate)
        return found

    def _is_used(self, container: str, pod: PodUsage) -> bool:
        key = AggregateKey(container, pod.labels_text)
        return key in self.usage.aggregates and self.selector.matches(pod.labels)

    def _merge(
        self, merged: dict[str, Aggregate], name: str, aggregate: Aggregate, now: int
    ) -> None:
        if name not in merged:
            merged[name] = Aggregate(self.options, now)
        merged[name].merge(aggregate)

    def _recommended_histories(self, now: int) -> dict[str, Aggregate]:
        return {
            name: history
            for name, history in self.histories(now).items()
            if not (self.vpa.policy_of(name) or NO_POLICY).is_off
        }

    def _estimates(
        self, name: str, history: Aggregate, least: Mapping[str, int]
    ) -> Iterator[UsageEstimate]:
        for resource in self._controlled(name):
            for bound in Bound:
                yield estimate(history, resource, bound, self.options, least[resource])

    def _controlled(self, name: str) -> Iterable[str]:
        controlled = (self.vpa.policy_of(name) or NO_POLICY).controlled_resources
        wanted = RESOURCES if controlled is None else controlled
        return [resource for resource in RESOURCES if resource in wanted]

    def _stored(
        self, name: str, estimates: tuple[UsageEstimate, ...], history: Aggregate
    ) -> tuple[ContainerRecommendation, ContainerEstimates]:
        explained = ContainerEstimates(name, estimates, history.first, history.last, history.count)
        target, lower, upper = (
            as_quantities(explained.amounts(bound), self.options)
            for bound in (Bound.TARGET, Bound.LOWER, Bound.UPPER)
        )
        stored = ContainerRecommendation(name, target, lower, upper, ResourceList(target))
        changes = post_process(stored, self.vpa, self.options)
        return stored, msgspec.structs.replace(explained, capped=changes)

    def _update_conditions(self, has_recommendation: bool, now: int) -> None:
        reason = message = ""
        if self.usage.count_pods(self.selector):
            self.conditions.pop(NO_PODS.type, None)
        else:
            reason, message = NO_PODS.reason, NO_PODS.message
            self.set_condition(NO_PODS, now)
        if has_recommendation:
            reason = message = ""
        self.set_condition(
            VerticalCondition("RecommendationProvided", has_recommendation, reason, message), now
        )

    def set_condition(self, condition: VerticalCondition, now: int) -> None:
        """Say something; it is as old as it was, if its status is the same."""
        old = self.conditions.get(condition.type)
        since = old.since if old and old.status == condition.status else now
        self.conditions[condition.type] = msgspec.structs.replace(condition, since=since)
