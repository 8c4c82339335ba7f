"""Which autoscalers the objects of a cluster can choose from, and which type an object is of.

Built-in ones, those of installed packages, and those that whoever starts the program brings along:
never one that an object, a file or a request names.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.autoscalers.interfaces import AutoscalerPlugin
from kubescene.autoscalers.references import check_distinct, installed_autoscalers, made
from kubescene.durations import SECOND
from kubescene.types import Nanoseconds

PluginSource: TypeAlias = Callable[[], AutoscalerPlugin] | AutoscalerPlugin
"""A class, of which every world makes one, or one that is there already: another process."""
SHORT = {
    "HorizontalPodAutoscaler": "hpa",
    "VerticalPodAutoscaler": "vpa",
    "ConcurrencyAutoscaler": "concurrency",
}
SHARED_PARTITIONS = count(1)
"""Worlds and traffic runs that share a process need partitions of different names."""


def type_of(object: Mapping[str, Any]) -> str:
    """``hpa.v2.autoscaling.k8s.io`` of a HorizontalPodAutoscaler in autoscaling/v2, and so on."""
    short = SHORT.get(str(object.get("kind")))
    group, _, version = str(object.get("apiVersion", "")).rpartition("/")
    if short is None or not group or not version:
        return ""
    return f"{short}.{version}.{group if '.' in group else f'{group}.k8s.io'}"


class OwnOptions(NamedTuple):
    """Options of our own autoscalers, by their names."""

    horizontal: Mapping[str, Any] = {}
    recommender: Mapping[str, Any] = {}
    updater: Mapping[str, Any] = {}


NO_OPTIONS = OwnOptions()


def available_in_cluster(
    sources: Sequence[PluginSource], stat_window: Nanoseconds, options: OwnOptions = NO_OPTIONS
) -> Dispatcher:
    """A dispatcher for the objects of one world, where a stat speaks of so long a time."""
    # Imported when the first object wants one.
    from kubescene.autoscalers.concurrency import ConcurrencyPlugin
    from kubescene.autoscalers.horizontal import HorizontalOptions
    from kubescene.autoscalers.horizontal.plugin import HorizontalPlugin
    from kubescene.autoscalers.vertical.options import RecommenderOptions, UpdaterOptions
    from kubescene.autoscalers.vertical.plugin import VerticalPlugin

    own = [_one_of(each) for each in sources]
    check_distinct(own)
    shared = any(isinstance(each, AutoscalerPlugin) for each in sources)
    dispatcher = Dispatcher(
        [
            HorizontalPlugin(HorizontalOptions(**options.horizontal), stat_window=stat_window),
            VerticalPlugin(
                RecommenderOptions(**options.recommender),
                UpdaterOptions(**options.updater),
                any_container=False,
            ),
            ConcurrencyPlugin(),
            *installed_autoscalers(),
        ],
        partitions=SHARED_PARTITIONS if shared else None,
    )
    for plugin, source in zip(own, sources, strict=True):
        dispatcher.register(plugin, shared=plugin is source)
    return dispatcher


def types_in_cluster(sources: Sequence[PluginSource]) -> list[str]:
    """The types of objects that somebody takes."""
    dispatcher = available_in_cluster(sources, SECOND)
    try:
        return dispatcher.types
    finally:
        dispatcher.close()


def _one_of(source: PluginSource) -> AutoscalerPlugin:
    if isinstance(source, AutoscalerPlugin):
        return source
    return made(source, getattr(source, "__qualname__", repr(source)))
