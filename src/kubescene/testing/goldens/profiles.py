"""Profiles: the plugins of every extension point in order, and their weights."""

from typing import Any

from kubescene.scheduler.framework.profile import ExtensionPoint, Profile
from kubescene.scheduler.options import SchedulerOptions
from kubescene.testing.goldens.comparing import Aspect, Comparison
from kubescene.testing.goldens.recordings import Golden

POINTS = {
    "queueSort": ExtensionPoint.QUEUE_SORT,
    "preFilter": ExtensionPoint.PRE_FILTER,
    "filter": ExtensionPoint.FILTER,
    "postFilter": ExtensionPoint.POST_FILTER,
    "preScore": ExtensionPoint.PRE_SCORE,
    "score": ExtensionPoint.SCORE,
    "reserve": ExtensionPoint.RESERVE,
    "preBind": ExtensionPoint.PRE_BIND,
    "bind": ExtensionPoint.BIND,
}
"""The points that are recorded."""


def compare_profiles(golden: Golden, options: SchedulerOptions, comparison: Comparison) -> None:
    recorded = golden.result.get("profiles")
    if recorded is None:
        return
    ours = {profile.scheduler_name: profile for profile in options.profiles}
    comparison.equal(Aspect.PROFILES, sorted(ours), sorted(recorded))
    for name in sorted(ours.keys() & recorded.keys()):
        described, theirs = _described(ours[name]), recorded[name]
        keys = [f"{name} {part}" for part in described]
        values = [theirs.get(part) or type(value)() for part, value in described.items()]
        comparison.each_equal(Aspect.PROFILES, [*described.values()], values, keys)


def _described(profile: Profile) -> dict[str, Any]:
    points: dict[str, Any] = {
        name: [each.name for each in profile.at(point)] for name, point in POINTS.items()
    }
    points["weights"] = {each.name: each.weight for each in profile.at(ExtensionPoint.SCORE)}
    return points
