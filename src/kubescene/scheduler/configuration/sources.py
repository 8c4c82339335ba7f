"""Scheduler options from whatever people have in their hands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kubescene.scheduler import configuration
from kubescene.scheduler.options import SchedulerOptions

SchedulerSource: TypeAlias = SchedulerOptions | str | Path | Mapping[str, Any]
"""Options as they are, a file, or a configuration as an object."""


def scheduler_options(
    source: SchedulerSource | None, base: SchedulerOptions | None = None
) -> SchedulerOptions:
    """The options that somebody means."""
    if source is None:
        return base or SchedulerOptions()
    if isinstance(source, SchedulerOptions):
        return source
    if isinstance(source, Mapping):
        return configuration.read_configuration(source, base)
    return configuration.load_configuration(source, base)
