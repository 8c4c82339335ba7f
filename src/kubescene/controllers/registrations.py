"""Which controllers exist, by name. The order of registration is the order of settling."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubescene.actors import Actor, Role
from kubescene.control.loops import ControllerFactory
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject


class Registration(NamedTuple):
    """A controller that can be registered."""

    name: str
    factory: ControllerFactory
    definitions: Sequence[JsonObject] = ()
    """CustomResourceDefinitions that a world with this controller has."""
    schedules: bool = False
    """Whether it makes scheduling attempts (see `Actor`)."""
    is_kubelet: bool = False
    """Whether what it reports of pods is no news (see `Actor`)."""


class ControllerRegistrations:
    """Controllers by name, in order."""

    def __init__(self, controllers: Iterable[Registration] = ()) -> None:
        self._by_name: dict[str, Registration] = {}
        for each in controllers:
            self.register(*each)

    def register(
        self,
        name: str,
        factory: ControllerFactory,
        definitions: Iterable[JsonObject] = (),
        schedules: bool = False,
        is_kubelet: bool = False,
    ) -> None:
        """Add a controller; the parameters are those of a `Registration`."""
        if name in self._by_name:
            raise ConfigurationError(
                f"a controller named {name!r} is registered already: choose another name"
            )
        self._by_name[name] = Registration(name, factory, tuple(definitions), schedules, is_kubelet)

    def add(self, controller: Registration) -> None:
        """Register a controller, or put it in the place of one of that name."""
        known = self._by_name.get(controller.name)
        if known is None:
            self.register(*controller)
        else:
            self._by_name[known.name] = Registration(
                known.name,
                controller.factory,
                tuple(controller.definitions),
                schedules=known.schedules or controller.schedules,
                is_kubelet=known.is_kubelet or controller.is_kubelet,
            )

    @property
    def definitions(self) -> list[JsonObject]:
        """What all controllers need to be defined, each once."""
        by_name = {
            definition["metadata"]["name"]: definition
            for controller in self._by_name.values()
            for definition in controller.definitions
        }
        return list(by_name.values())

    def actor(self, name: str, role: Role) -> Actor:
        """Who a controller is when it writes."""
        known = self._known(name)
        return Actor(name, role, schedules=known.schedules, is_kubelet=known.is_kubelet)

    def replace(self, name: str, factory: ControllerFactory) -> None:
        """Put another controller in the place of a registered one."""
        self._by_name[name] = self._known(name)._replace(factory=factory)

    def find(self, name: str) -> ControllerFactory | None:
        """The factory of that name, if there is one."""
        known = self._by_name.get(name)
        return None if known is None else known.factory

    def factory(self, name: str) -> ControllerFactory:
        return self._known(name).factory

    def copy(self) -> "ControllerRegistrations":
        return ControllerRegistrations(self._by_name.values())

    def _known(self, name: str) -> Registration:
        if name not in self._by_name:
            known = ", ".join(self._by_name)
            raise ConfigurationError(f"no controller is named {name!r}; registered are: {known}")
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)
