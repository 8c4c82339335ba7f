"""The scheduler that a command line asks for.

``--plugin``, ``--scheduler-config`` and ``--feature-gates``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from kubescene.scheduler import FeatureGates, SchedulerOptions
from kubescene.scheduler.configuration.added_plugins import import_plugin, with_plugin
from kubescene.scheduler.configuration.sources import scheduler_options
from kubescene.scheduler.framework.guarded_calls import PluginErrors


def scheduler_with(
    plugins: Sequence[str],
    config: Path | None = None,
    gates: str = "",
    plugin_errors: PluginErrors = PluginErrors.FAIL,
) -> SchedulerOptions:
    """The default scheduler, or the configured one, and these plugins of the user's."""
    options = SchedulerOptions(feature_gates=FeatureGates.parse(gates), plugin_errors=plugin_errors)
    if plugins and "" not in sys.path:
        sys.path.insert(0, "")  # as with python -m: a plugin may lie in the current directory
    for reference in plugins:
        options = with_plugin(options, import_plugin(reference))
    return scheduler_options(config, options)
