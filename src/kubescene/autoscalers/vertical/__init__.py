"""The vertical pod autoscaler of release 1.7.1 as a function of what it is told.

`Recommender` takes pods, samples and kills and makes recommendations, each with an explanation;
`update` says which pods are replaced or resized to get them, `pod_patches` what a new pod gets, and
`controlling` which of several objects has the say over a pod.
`back_test` runs a series of samples through the recommender, and `VerticalPlugin` is all of it
behind the autoscaler interface. Nothing here reads a clock, and no state is kept but in the values
that a caller holds.
"""

from kubescene.autoscalers.vertical.admission import pod_patches
from kubescene.autoscalers.vertical.back_tests import VerticalBackTest, back_test
from kubescene.autoscalers.vertical.controlling import (
    Candidate,
    controlled_pods,
    controlling,
)
from kubescene.autoscalers.vertical.evictions import ResizeAttempts
from kubescene.autoscalers.vertical.histories import (
    CheckpointError,
    SampleError,
    UsageSample,
    checkpoint_object,
)
from kubescene.autoscalers.vertical.kills import OomKill, kills, kills_of_eviction
from kubescene.autoscalers.vertical.limits import limit_ranges
from kubescene.autoscalers.vertical.objects import (
    VerticalPodAutoscaler,
    VerticalPodAutoscalerError,
    read_vpa,
)
from kubescene.autoscalers.vertical.options import (
    RecommenderOptions,
    UpdaterOptions,
    recommender_options,
    updater_options,
)
from kubescene.autoscalers.vertical.plugin import VerticalPlugin
from kubescene.autoscalers.vertical.recommendations import Recommendation
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.autoscalers.vertical.updater import seed_rule, update

__all__ = [
    "Candidate",
    "CheckpointError",
    "OomKill",
    "Recommendation",
    "Recommender",
    "RecommenderOptions",
    "ResizeAttempts",
    "SampleError",
    "UpdaterOptions",
    "UsageSample",
    "VerticalBackTest",
    "VerticalPlugin",
    "VerticalPodAutoscaler",
    "VerticalPodAutoscalerError",
    "back_test",
    "checkpoint_object",
    "controlled_pods",
    "controlling",
    "kills",
    "kills_of_eviction",
    "limit_ranges",
    "pod_patches",
    "read_vpa",
    "recommender_options",
    "seed_rule",
    "update",
    "updater_options",
]
