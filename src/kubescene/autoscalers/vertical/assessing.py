"""How the updater looks at one pod: what fits it, how urgent it is, whether it is replaced."""

from collections.abc import Iterable
from typing import NamedTuple

from kubescene.autoscalers.vertical import pods
from kubescene.autoscalers.vertical.capping import Capped, capped
from kubescene.autoscalers.vertical.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.autoscalers.vertical.priorities import Priority, Verdict, priority, verdict
from kubescene.types import JsonObject

DEFAULT_OPTIONS = UpdaterOptions()


class Assessment(NamedTuple):
    """One pod: what fits it, how urgent it is, whether it would be replaced."""

    pod: JsonObject
    fitted: Capped | None
    priority: Priority
    verdict: Verdict

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


def assess(
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    now: int,
    options: UpdaterOptions = DEFAULT_OPTIONS,
    ranges: LimitRanges = NO_LIMIT_RANGES,
) -> Assessment:
    """One pod on its own, eviction requirements and budget aside."""
    return Assessor(vpa, now, options, ranges).assess(pod)


def in_order(assessed: Iterable[Assessment]) -> list[Assessment]:
    """Pods that grow come first, then those that differ more; equals stay as they were."""
    return sorted(
        assessed, key=lambda each: (not each.priority.scales_up, -each.priority.difference)
    )


class Assessor:
    """Looks at pods; those that share their spec and have the same to say of it are one."""

    def __init__(
        self, vpa: VerticalPodAutoscaler, now: int, options: UpdaterOptions, ranges: LimitRanges
    ) -> None:
        self._vpa = vpa
        self._now = now
        self._options = options
        self._ranges = ranges
        self._known: dict[object, tuple[Capped | None, Priority, JsonObject]] = {}

    def assess(self, pod: JsonObject) -> Assessment:
        fitted, ranked = self._ranked(pod)
        found = verdict(pod, ranked, self._vpa, self._now, self._options)
        return Assessment(pod, fitted, ranked, found)

    def _ranked(self, pod: JsonObject) -> tuple[Capped | None, Priority]:
        if pods.statuses(pod):
            return self._computed(pod)
        # The spec is kept beside what is known of it, so that its identity stays its own.
        key = (id(pod["spec"]), pods.observed_containers(pod))
        if key not in self._known:
            self._known[key] = (*self._computed(pod), pod["spec"])
        return self._known[key][:2]

    def _computed(self, pod: JsonObject) -> tuple[Capped | None, Priority]:
        fitted = capped(self._vpa, pod, self._ranges)
        return fitted, priority(pod, fitted)
