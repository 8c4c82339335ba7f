"""``KubeSchedulerConfiguration`` v1: from what people write to what a scheduler is made with.

`read_configuration` does it for an object, `load_configuration` for a file. `schema` has the
fields, `decoding` is strict about them, `defaulting` fills in what is open, `checks` finds what is
wrong, `plugin_sets` and `expansion` work out which plugin runs where, and `profiles` puts the
result together.
"""

from kubescene.scheduler.configuration.describing import describe
from kubescene.scheduler.configuration.loading import (
    SchedulerSource,
    load_configuration,
    parse_configuration,
    scheduler_options,
)
from kubescene.scheduler.configuration.reading import check_configuration, read_configuration

__all__ = [
    "SchedulerSource",
    "check_configuration",
    "describe",
    "load_configuration",
    "parse_configuration",
    "read_configuration",
    "scheduler_options",
]
