"""The scheduler that a case asks for: from its configuration and feature gates to options."""

from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import read_configuration
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.feature_gates import FeatureGates
from kubescene.types import JsonObject


def options_of(case: JsonObject) -> SchedulerOptions:
    """Raises `ConfigurationError` for a configuration that is refused."""
    gates = FeatureGates.of(case.get("featureGates") or {})
    base = SchedulerOptions(explain=Explain.FULL, feature_gates=gates)
    config = case.get("schedulerConfig")
    return base if config is None else read_configuration(config, base)
