"""The scheduler that a case asks for: from its configuration and feature gates to options."""

from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import read_configuration
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject


class NotReplayedError(Exception):
    """A case needs what our scheduler does not have yet."""


def options_of(case: JsonObject) -> SchedulerOptions:
    """Raises `ConfigurationError` for a configuration that is refused."""
    if gates := case.get("featureGates"):
        raise NotReplayedError(f"feature gates {', '.join(sorted(gates))}")
    base = SchedulerOptions(explain=Explain.FULL)
    config = case.get("schedulerConfig")
    return base if config is None else read_configuration(config, base)
