"""Which controllers exist, by name. The order of registration is the order of settling."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubescene.actors import Actor, Role
from kubescene.control.loops import ControllerFactory
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject


class Registration(NamedTuple):
    """A controller that can be registered, with the CustomResourceDefinitions that it needs."""

    name: str
    factory: ControllerFactory
    definitions: Sequence[JsonObject] = ()


class ControllerRegistrations:
    """Names and factories, in order."""

    def __init__(self) -> None:
        self._factories: dict[str, ControllerFactory] = {}
        self._schedulers: set[str] = set()
        self._kubelets: set[str] = set()
        self._definitions: dict[str, tuple[JsonObject, ...]] = {}

    def register(
        self,
        name: str,
        factory: ControllerFactory,
        *,
        schedules: bool = False,
        is_kubelet: bool = False,
        definitions: Iterable[JsonObject] = (),
    ) -> None:
        """Add a controller. ``schedules``: it makes scheduling attempts; ``is_kubelet``: what it
        reports of pods is no news (see `Actor`).

        ``definitions``: CustomResourceDefinitions that a world with this controller has.
        """
        if name in self._factories:
            raise ConfigurationError(
                f"a controller named {name!r} is registered already: choose another name"
            )
        self._factories[name] = factory
        self._definitions[name] = tuple(definitions)
        if schedules:
            self._schedulers.add(name)
        if is_kubelet:
            self._kubelets.add(name)

    def add(self, controller: Registration) -> None:
        """Register a controller, or put it in the place of one of that name."""
        if controller.name in self._factories:
            self.replace(controller.name, controller.factory)
            self._definitions[controller.name] = tuple(controller.definitions)
        else:
            self.register(controller.name, controller.factory, definitions=controller.definitions)

    @property
    def definitions(self) -> list[JsonObject]:
        """What all controllers need to be defined, each once."""
        by_name = {
            definition["metadata"]["name"]: definition
            for definitions in self._definitions.values()
            for definition in definitions
        }
        return list(by_name.values())

    def actor(self, name: str, role: Role) -> Actor:
        """Who a controller is when it writes."""
        return Actor(
            name, role, schedules=name in self._schedulers, is_kubelet=name in self._kubelets
        )

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
        copy._kubelets = set(self._kubelets)
        copy._definitions = dict(self._definitions)
        return copy

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)
