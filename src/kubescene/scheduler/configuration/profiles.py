"""From a complete configuration to the profiles that a scheduler is made with (K-7, K-8, K-14)."""

from collections.abc import Mapping
from typing import Any

from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.argument_checks import check_fit
from kubescene.scheduler.configuration.argument_schema import ARGUMENTS
from kubescene.scheduler.configuration.expansion import Expansion, PointsOf
from kubescene.scheduler.configuration.field_faults import aggregated
from kubescene.scheduler.configuration.plugin_sets import names_of
from kubescene.scheduler.configuration.schema import TYPE_META
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kubescene.types import JsonObject

FIT = "NodeResourcesFit"
_FAILED = "initializing profiles: "


def make_profiles(configuration: JsonObject, points_of: PointsOf) -> tuple[Profile, ...]:
    """One profile per entry of ``profiles``; all of them sort the queue alike."""
    whole = configuration["percentageOfNodesToScore"]
    profiles: list[Profile] = []
    for index, given in enumerate(configuration["profiles"]):
        path, name = f"profiles[{index}]", given["schedulerName"]
        try:
            made = _make_profile(given, path, points_of, whole)
        except SchedulerConfigurationError as error:
            text = f"{_FAILED}creating profile for scheduler name {name}: {error.text}"
            raise SchedulerConfigurationError(text, error.path) from error
        profiles.append(made)
        _compare_queue_sorts(profiles[0], made, path)
    return tuple(profiles)


def _make_profile(given: JsonObject, path: str, points_of: PointsOf, percentage: int) -> Profile:
    arguments = _arguments(given["pluginConfig"])
    if FIT in names_of(given["plugins"]):
        _check_fit(given["pluginConfig"], arguments[FIT], path)
    points = Expansion(given["plugins"], points_of, f"{path}.plugins").points()
    _check_counts(points, given["schedulerName"], path)
    return Profile(
        given["schedulerName"],
        points,
        arguments,
        given.get("percentageOfNodesToScore", percentage),
    )


def _arguments(config: list[JsonObject]) -> Mapping[str, Mapping[str, Any]]:
    """What the factories are given: what the arguments are called is no argument."""
    return {
        each["name"]: {key: value for key, value in each["args"].items() if key not in TYPE_META}
        if each["name"] in ARGUMENTS
        else each["args"]
        for each in config
        if each.get("args") is not None
    }


def _check_fit(config: list[JsonObject], args: Mapping[str, Any], path: str) -> None:
    """Only the plugin itself looks at its arguments (K-13)."""
    if errors := check_fit({**args}):
        at = next(index for index, each in enumerate(config) if each["name"] == FIT)
        text = f'initializing plugin "{FIT}": {aggregated(errors)}'
        place = f"{path}.pluginConfig[{at}].args.{errors[0].field}"
        raise SchedulerConfigurationError(text, place)


def _check_counts(
    points: Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]], name: str, path: str
) -> None:
    if (count := len(points[ExtensionPoint.QUEUE_SORT])) != 1:
        raise SchedulerConfigurationError(
            f'only one queue sort plugin required for profile with scheduler name "{name}", '
            f"but got {count}",
            f"{path}.plugins.queueSort",
        )
    if not points[ExtensionPoint.BIND]:
        raise SchedulerConfigurationError(
            f'at least one bind plugin is needed for profile with scheduler name "{name}"',
            f"{path}.plugins.bind",
        )


def _compare_queue_sorts(first: Profile, other: Profile, path: str) -> None:
    sorts = [profile.at(ExtensionPoint.QUEUE_SORT)[0].name for profile in (first, other)]
    if sorts[0] == sorts[1]:
        return
    raise SchedulerConfigurationError(
        f"{_FAILED}different queue sort plugins for profile "
        f'"{other.scheduler_name}": "{sorts[1]}", first: "{sorts[0]}"',
        f"{path}.plugins.queueSort",
    )
