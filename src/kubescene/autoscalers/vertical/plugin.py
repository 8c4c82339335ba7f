"""The VPA behind the autoscaler interface: events and stats in, recommendations out.

Of a world that knows pods and their usage it makes what the autoscaler sees: pods of one container
with equal labels, one controller that should have the pods it has, and samples. A resource is
recommended once it was measured: nothing is said before the first stat, and nothing of memory where
the world does not model it.

Two rules say which pods get the new size. ``updater``, the default, is that of the real updater
and its update modes: too few replicas, too young or too near to the target, and a pod stays.
``seed`` leaves it to the world, which replaces every pod outside of the bounds, unless the update
mode is Off or Initial.

``faithful`` repeats what Skenario's plugin did where that differs: the latest stat of each pod is
one sample at every request for a recommendation, memory is 1 MiB, and the update mode is ignored.
"""

from kubescene.autoscalers.interfaces import (
    VPA_TYPES,
    Autoscaler,
    Capability,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.partitioned import PartitionedPlugin
from kubescene.autoscalers.vertical.assessing import DEFAULT_OPTIONS as DEFAULT_UPDATER
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import RecommenderOptions, UpdaterOptions
from kubescene.autoscalers.vertical.partitions import Partition, Rule
from kubescene.autoscalers.vertical.recommender import DEFAULT_OPTIONS, Recommender
from kubescene.autoscalers.vertical.validation import read_vpa
from kubescene.errors import ConfigurationError

DEFAULT_RECOMMENDER = "default"


class VerticalPlugin(PartitionedPlugin[Partition]):
    """Any number of runs, each in its partition."""

    types = VPA_TYPES
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.VERTICAL_RECOMMENDATION}
    )

    def __init__(
        self,
        options: RecommenderOptions = DEFAULT_OPTIONS,
        updater: UpdaterOptions = DEFAULT_UPDATER,
        *,
        rule: Rule = "updater",
        faithful: bool = False,
    ) -> None:
        super().__init__()
        self._options = options
        self._updater = updater
        self._rule: Rule = "seed" if faithful else rule
        self._faithful = faithful

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        return self._partition(request.partition).recommend(request.time_nanos)

    def recommender(self, partition: str) -> Recommender:
        """The recommender of a run, to look at its history."""
        return self._partition(partition).recommender

    def _created(self, autoscaler: Autoscaler) -> Partition:
        recommender = Recommender(self._read(autoscaler), self._options)
        return Partition(recommender, self._updater, rule=self._rule, faithful=self._faithful)

    def _changed(self, partition: Partition, autoscaler: Autoscaler) -> None:
        partition.recommender.vpa = self._read(autoscaler)

    def _read(self, autoscaler: Autoscaler) -> VerticalPodAutoscaler:
        vpa = read_vpa(autoscaler.yaml, in_place=self._updater.in_place)
        for each in vpa.spec.recommenders or ():
            if each.name != DEFAULT_RECOMMENDER:
                raise ConfigurationError(
                    f"spec.recommenders[0].name: there is no recommender {each.name!r} here, only "
                    f"{DEFAULT_RECOMMENDER!r}; leave the field out, or take an autoscaler plugin"
                )
        return vpa
