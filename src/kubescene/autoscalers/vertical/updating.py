"""Which pods are replaced or resized now: the updater's loop, and the rule of the founding text.

`update` is the real updater: priority, age, eviction requirements, budget, update mode. `seed_rule`
replaces every pod whose requests are outside of the recommended bounds, whatever the mode.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kubescene.autoscalers.vertical.assessing import DEFAULT_OPTIONS
from kubescene.autoscalers.vertical.attempts import Attempts
from kubescene.autoscalers.vertical.capping import Capped
from kubescene.autoscalers.vertical.disruption import groups, is_managed
from kubescene.autoscalers.vertical.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from kubescene.autoscalers.vertical.objects import IN_PLACE, UPDATING_MODES, VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.autoscalers.vertical.priorities import priority
from kubescene.autoscalers.vertical.update_loops import Update, UpdateLoop, World
from kubescene.types import JsonObject


def update(
    vpa: VerticalPodAutoscaler,
    live: Sequence[JsonObject],
    replicas: Mapping[str, int],
    now: int,
    options: UpdaterOptions = DEFAULT_OPTIONS,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    attempts: Attempts | None = None,
    refused: Collection[str] = (),
) -> Update:
    """One loop over the pods of a VPA, with the recommendation of its status.

    ``live`` are the pods that the VPA selects: scheduled, not ended, in listing order; those being
    deleted and those without a controller are left out here. ``replicas`` is how many pods each
    controller should have. ``attempts`` remembers resizes from loop to loop; ``refused`` names the
    pods whose resize the API refuses, if it does.
    """
    gated = vpa.update_mode == IN_PLACE and not options.in_place
    if vpa.update_mode not in UPDATING_MODES or gated:
        return Update()
    left = [pod for pod in live if is_managed(pod)]
    known = Attempts() if attempts is None else attempts
    known.keep_only(pod for pod in live if not pod["metadata"].get("deletionTimestamp"))
    by_pod = groups(left, replicas, vpa, options)
    return UpdateLoop(World(vpa, by_pod, now, options, ranges, known, refused)).run(left)


def seed_rule(vpa: VerticalPodAutoscaler, live: Iterable[JsonObject]) -> Update:
    """Replace every pod with a request below the lower or above the upper bound."""
    outside = [
        pod["metadata"]["name"]
        for pod in live
        if priority(pod, Capped(tuple(vpa.recommendations or ()), {})).is_outside
    ]
    reason = "its requests are outside of the recommended range"
    return Update(evicted=tuple(outside), reasons=dict.fromkeys(outside, reason))
