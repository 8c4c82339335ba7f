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
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.vertical.assessing import DEFAULT_OPTIONS as DEFAULT_UPDATER
from kubescene.autoscalers.vertical.options import RecommenderOptions, UpdaterOptions
from kubescene.autoscalers.vertical.partitions import Partition, Rule
from kubescene.autoscalers.vertical.recommender import DEFAULT_OPTIONS, Recommender
from kubescene.autoscalers.vertical.validation import read_vpa
from kubescene.errors import ConfigurationError


class VerticalPlugin(AutoscalerPlugin):
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
        self._options = options
        self._updater = updater
        self._rule: Rule = "seed" if faithful else rule
        self._faithful = faithful
        self._partitions: dict[str, Partition] = {}

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Autoscaler):
            self._autoscaler_event(request, request.object)
        else:
            self._partition(request.partition).pod_event(request, request.object)

    def stat(self, request: StatRequest) -> None:
        partition = self._partition(request.partition)
        for stat in request.stat:
            partition.stat(stat)

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        return self._partition(request.partition).recommend(request.time_nanos)

    def recommender(self, partition: str) -> Recommender:
        """The recommender of a run, to look at its history."""
        return self._partition(partition).recommender

    def _partition(self, name: str) -> Partition:
        try:
            return self._partitions[name]
        except KeyError:
            raise ConfigurationError(f"no autoscaler was created in partition {name!r}") from None

    def _autoscaler_event(self, request: EventRequest, autoscaler: Autoscaler) -> None:
        if request.type is EventType.DELETE:
            self._partition(request.partition)
            del self._partitions[request.partition]
            return
        vpa = read_vpa(autoscaler.yaml, in_place=self._updater.in_place)
        if request.type is EventType.UPDATE:
            self._partition(request.partition).recommender.vpa = vpa
            return
        if request.partition in self._partitions:
            raise ConfigurationError(f"partition {request.partition!r} has an autoscaler already")
        recommender = Recommender(vpa, self._options)
        self._partitions[request.partition] = Partition(
            recommender, self._updater, rule=self._rule, faithful=self._faithful
        )
