"""Which plugins exist, by name. A plugin is registered with the factory that makes it."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.scheduler.interfaces import Handle, Plugin, PluginFactory


class PluginRegistry:
    """Names and factories. Names are unique."""

    def __init__(self, factories: Mapping[str, PluginFactory] | None = None) -> None:
        self._factories: dict[str, PluginFactory] = {}
        for name, factory in (factories or {}).items():
            self.register(name, factory)

    def register(self, name: str, factory: PluginFactory) -> None:
        if name in self._factories:
            raise ConfigurationError(
                f"a scheduler plugin named {name!r} is registered already: choose another name"
            )
        self._factories[name] = factory

    def make(self, name: str, arguments: Mapping[str, Any], handle: Handle) -> Plugin:
        """A new plugin object; a name nobody registered is a `ConfigurationError`."""
        factory = self._factories.get(name)
        if factory is None:
            known = ", ".join(self) or "none"
            raise ConfigurationError(
                f"scheduler plugin {name!r} does not exist; registered are: {known}"
            )
        return factory(arguments, handle)

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)


def default_registry() -> PluginRegistry:
    """The built-in plugins."""
    # Late, so that a plugin module may import from this package without a cycle.
    from kubescene.scheduler.plugins import BUILT_IN

    return PluginRegistry({name: each.make for name, each in BUILT_IN.items()})
