"""The scheduler that a case asks for: from its configuration and feature gates to options."""

from importlib import import_module
from importlib.util import find_spec

from kubescene.scheduler import SchedulerOptions
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
    if config is None:
        return base
    if find_spec("kubescene.scheduler.configuration") is None:
        raise NotReplayedError("configurations cannot be read")
    configuration = import_module("kubescene.scheduler.configuration")
    options: SchedulerOptions = configuration.read_configuration(config, base)
    return options
