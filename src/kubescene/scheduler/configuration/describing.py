"""The KubeSchedulerConfiguration that is in force, for those who ask."""

from kubescene.scheduler.configuration.defaulting import with_defaults
from kubescene.scheduler.configuration.expansion import field_of
from kubescene.scheduler.configuration.plugin_sets import EVERY, as_written
from kubescene.scheduler.configuration.schema import MULTI_POINT
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.plugins.default_profile import default_plugins
from kubescene.types import JsonObject, ReadOnlyObject


def describe(options: SchedulerOptions) -> ReadOnlyObject:
    """A configuration that makes these options, complete.

    If they were put together by hand, every point lists its plugins.
    """
    if options.configuration is not None:
        return options.configuration
    written = {
        "podInitialBackoffSeconds": options.backoff.initial_s,
        "podMaxBackoffSeconds": options.backoff.maximum_s,
        "profiles": [_profile(each, options) for each in options.profiles],
    }
    return with_defaults(written, _defaults(options))


def _defaults(options: SchedulerOptions) -> list[EnabledPlugin]:
    return [*default_plugins(options.feature_gates), *map(EnabledPlugin, options.added)]


def _profile(profile: Profile, options: SchedulerOptions) -> JsonObject:
    written: JsonObject = {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
    }
    if profile.arguments:
        written["pluginConfig"] = [
            {"name": name, "args": {**args}} for name, args in profile.arguments.items()
        ]
    if not _is_default(profile, options):
        everything = {"disabled": [{"name": EVERY}]}
        written["plugins"] = {MULTI_POINT: everything} | {
            field_of(point): {"enabled": as_written(profile.at(point))}
            for point in ExtensionPoint
            if profile.at(point)
        }
    return written


def _is_default(profile: Profile, options: SchedulerOptions) -> bool:
    return profile.points == SchedulerOptions().profiles[0].points and not options.added
