"""Which plugins exist, by name. A plugin is registered with the factory that makes it."""

from collections.abc import Iterator, Mapping
from inspect import signature
from types import FunctionType
from typing import Any

from msgspec import Struct

from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.scheduler.framework.interfaces import Handle, Plugin, PluginFactory
from kubescene.scheduler.framework.points import points_of
from kubescene.scheduler.framework.profile import ExtensionPoint


class ClassFactory(Struct, frozen=True):
    """Makes plugins of one class: with arguments and handle, or with nothing if it takes nothing.

    Whoever has to know at which points a plugin can stand before it is made looks at the class.
    """

    plugin: type

    def __call__(self, arguments: Mapping[str, Any], handle: Handle) -> Plugin:
        takes = _takes_something(self.plugin)
        made: Plugin = self.plugin(arguments, handle) if takes else self.plugin()
        return made


class PluginRegistry:
    """Names and factories. Names are unique."""

    def __init__(self, factories: Mapping[str, PluginFactory] | None = None) -> None:
        self._factories: dict[str, PluginFactory] = {}
        self._classes: dict[str, type] = {}
        for name, factory in (factories or {}).items():
            self.register(name, factory)

    def register(self, name: str, factory: PluginFactory, plugin: type | None = None) -> None:
        """Add a plugin; its class is found out where the factory tells."""
        if name in self._factories:
            raise ConfigurationError(
                f"a scheduler plugin named {name!r} is registered already: choose another name"
            )
        self._factories[name] = factory
        if (known := plugin or class_of(factory)) is not None:
            self._classes[name] = known

    def make(self, name: str, arguments: Mapping[str, Any], handle: Handle) -> Plugin:
        """A new plugin object.

        A name that nobody registered is a `ConfigurationError`, and so is a plugin that cannot be
        made with these arguments.
        """
        factory = self._factories.get(name)
        if factory is None:
            known = ", ".join(self) or "none"
            raise ConfigurationError(
                f"scheduler plugin {name!r} does not exist; registered are: {known}"
            )
        try:
            return factory(arguments, handle)
        except KubesceneError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f'initializing plugin "{name}": {type(error).__name__}: {error}'
            ) from error

    def points_of(self, name: str) -> list[ExtensionPoint] | None:
        """The points that a plugin can stand at; None if nobody registered it."""
        if name not in self._factories:
            return None
        if name not in self._classes:
            raise ConfigurationError(
                f"scheduler plugin {name!r} is registered with a factory that does not tell what "
                "it makes: register its class, or a kubescene.scheduler.ClassFactory of it"
            )
        return points_of(self._classes[name])

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)


def class_of(factory: PluginFactory) -> type | None:
    """What a factory makes, if it can be seen."""
    if isinstance(factory, ClassFactory):
        return factory.plugin
    return factory if isinstance(factory, type) else None


def _takes_something(plugin: type) -> bool:
    """Whether the class has an ``__init__`` of its own with parameters, not just a protocol's."""
    for each in plugin.__mro__:
        init = vars(each).get("__init__")
        if isinstance(init, FunctionType) and init.__module__ != "typing":
            return len(signature(init).parameters) > 1
    return False
