"""Which controllers exist, by name. The order of registration is the order of settling."""

from collections.abc import Iterator

from kubescene.control.loops import ControllerFactory
from kubescene.errors import ConfigurationError


class ControllerRegistrations:
    """Names and factories, in order."""

    def __init__(self) -> None:
        self._factories: dict[str, ControllerFactory] = {}
        self._schedulers: set[str] = set()

    def register(self, name: str, factory: ControllerFactory, *, schedules: bool = False) -> None:
        """Add a controller. ``schedules``: it makes scheduling attempts (see `Actor`)."""
        if name in self._factories:
            raise ConfigurationError(
                f"a controller named {name!r} is registered already: choose another name"
            )
        self._factories[name] = factory
        if schedules:
            self._schedulers.add(name)

    def schedules(self, name: str) -> bool:
        return name in self._schedulers

    def replace(self, name: str, factory: ControllerFactory) -> None:
        """Put another controller in the place of a registered one."""
        self.factory(name)
        self._factories[name] = factory

    def find(self, name: str) -> ControllerFactory | None:
        """The factory of that name, if there is one."""
        return self._factories.get(name)

    def factory(self, name: str) -> ControllerFactory:
        if name not in self._factories:
            known = ", ".join(self._factories)
            raise ConfigurationError(f"no controller is named {name!r}; registered are: {known}")
        return self._factories[name]

    def copy(self) -> "ControllerRegistrations":
        copy = ControllerRegistrations()
        copy._factories = dict(self._factories)
        copy._schedulers = set(self._schedulers)
        return copy

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)
