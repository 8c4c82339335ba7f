"""One more plugin in an otherwise unchanged scheduler: what ``--plugin module:Class`` does.

The class is imported by name, so names must come from whoever started the program, never from a
scenario or a request. Packages can offer plugins by entry points of the group `GROUP`; those go by
their short names, also in a ``KubeSchedulerConfiguration``.
"""

from dataclasses import replace
from importlib import import_module

from kubescene.errors import ConfigurationError
from kubescene.installed import offered
from kubescene.scheduler.framework.plugin_registry import ClassFactory
from kubescene.scheduler.framework.points import points_of
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.options import SchedulerOptions

GROUP = "kubescene.plugins"


def import_plugin(reference: str) -> type:
    """The class that ``package.module:Class`` names, or the name of an installed plugin."""
    module_name, colon, class_name = reference.partition(":")
    if not colon and (installed := installed_plugin(reference)) is not None:
        return installed
    if not module_name or not class_name:
        raise ConfigurationError(
            f"plugin {reference!r} must be written as module:Class, or be installed under that name"
        )
    try:
        module = import_module(module_name)
    except Exception as error:
        # Whatever the author's module does when it is imported.
        why = str(error) if isinstance(error, ImportError) else repr(error)
        raise ConfigurationError(f"plugin {reference!r} cannot be imported: {why}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ConfigurationError(f"plugin {reference!r}: {module_name} has no class {class_name}")
    return found


def installed_plugin(name: str) -> type | None:
    """The class that an installed package offers under a name; None if none does."""
    points = offered(GROUP, name)
    if not points:
        return None
    try:
        found = points[0].load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the entry point {name!r} of {GROUP} cannot be loaded: {error}"
        ) from error
    if not isinstance(found, type):
        raise ConfigurationError(f"the entry point {name!r} of {GROUP} is not a class")
    return found


def with_plugin(options: SchedulerOptions, plugin: type) -> SchedulerOptions:
    """The options with a plugin at the end of every point that it implements, in every profile.

    A configuration that is read on top of these options may place it elsewhere. It is made with its
    arguments and the handle, or with nothing if it takes nothing.
    """
    points, name = points_of(plugin), plugin_name(plugin)
    if not points:
        raise ConfigurationError(
            f"{plugin.__module__}:{plugin.__qualname__} has none of the methods of a scheduler "
            "plugin; see kubescene.scheduler.framework.interfaces"
        )
    return replace(
        options,
        profiles=tuple(_appended(profile, name, points) for profile in options.profiles),
        plugins={**options.plugins, name: ClassFactory(plugin)},
        added=(*options.added, name),
    )


def plugin_name(plugin: type) -> str:
    name = getattr(plugin, "name", None)
    return name if isinstance(name, str) else plugin.__name__


def _appended(profile: Profile, name: str, points: list[ExtensionPoint]) -> Profile:
    added = {point: (*profile.at(point), EnabledPlugin(name)) for point in points}
    return replace(profile, points={**profile.points, **added})
