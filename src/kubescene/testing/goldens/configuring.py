"""The scheduler that a case asks for: from its configuration and feature gates to options."""

from dataclasses import replace

from kubescene.errors import ConfigurationError
from kubescene.scheduler import Profile, SchedulerOptions, default_profile
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject

_HEADER = frozenset({"apiVersion", "kind", "parallelism", "percentageOfNodesToScore", "profiles"})
_PROFILE = frozenset({"schedulerName", "percentageOfNodesToScore"})


class NotReplayedError(Exception):
    """A case needs what our scheduler does not have yet."""


def options_of(case: JsonObject) -> SchedulerOptions:
    """Raises `ConfigurationError` for a configuration that is refused."""
    if gates := case.get("featureGates"):
        raise NotReplayedError(f"feature gates {', '.join(sorted(gates))}")
    config = case.get("schedulerConfig")
    if config is None:
        return SchedulerOptions(explain=Explain.FULL)
    return SchedulerOptions(profiles=_profiles(config), explain=Explain.FULL)


def _profiles(config: JsonObject) -> tuple[Profile, ...]:
    """Until configurations can be read, those that set nothing but the percentage."""
    if others := config.keys() - _HEADER:
        raise NotReplayedError(f"configuration of {', '.join(sorted(others))}")
    percentage = config.get("percentageOfNodesToScore", 0)
    profiles = config.get("profiles") or [{}]
    for profile in profiles:
        if others := profile.keys() - _PROFILE:
            raise NotReplayedError(f"configuration of profiles: {', '.join(sorted(others))}")
    if len(profiles) != 1:
        raise ConfigurationError("several profiles cannot be read yet")
    default = default_profile(profiles[0].get("schedulerName", "default-scheduler"))
    own = profiles[0].get("percentageOfNodesToScore", percentage)
    return (replace(default, percentage_of_nodes_to_score=own),)
