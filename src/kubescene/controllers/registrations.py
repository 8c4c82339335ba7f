"""Which controllers exist, by name. The order of registration is the order of settling."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from kubescene.actors import Actor, Component
from kubescene.control.loops import ControllerFactory
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject


class OfferedDefinition(NamedTuple):
    """A CustomResourceDefinition that a world gets as soon as somebody names its kind.

    Who brings the same definition himself is not in its way.
    """

    group: str
    kind: str
    load: Callable[[], JsonObject]


class Registration(NamedTuple):
    """A controller that can be registered."""

    name: str
    factory: ControllerFactory
    definitions: Sequence[JsonObject] = ()
    """CustomResourceDefinitions that a world with this controller has."""
    component: Component = Component.CONTROLLER
    """What part of a cluster it is; decides how its writes are told."""
    offers: Sequence[OfferedDefinition] = ()
    """Definitions that a world with this controller has once somebody needs them."""


class ControllerRegistrations:
    """Controllers by name, in order."""

    def __init__(self, controllers: Iterable[Registration] = ()) -> None:
        self._by_name: dict[str, Registration] = {}
        self._left_out: dict[str, Registration] = {}
        for each in controllers:
            self.register(*each)

    @property
    def left_out(self) -> Collection[str]:
        """Those that the world could have and does not."""
        return self._left_out.keys()

    def leave_out(self, names: Iterable[str]) -> None:
        """Do without controllers; what they define is defined all the same."""
        for name in names:
            if name not in self._by_name and name not in self._left_out:
                meant = get_close_matches(name, self._by_name, 1)
                hint = f"did you mean {meant[0]}? " if meant else ""
                known = ", ".join(self._by_name)
                raise ConfigurationError(
                    f"no controller is named {name!r}, so it cannot be left out: {hint}"
                    f"there are {known}"
                )
            if name in self._by_name:
                self._left_out[name] = self._by_name.pop(name)

    def register(
        self,
        name: str,
        factory: ControllerFactory,
        definitions: Iterable[JsonObject] = (),
        component: Component = Component.CONTROLLER,
        offers: Iterable[OfferedDefinition] = (),
    ) -> None:
        """Add a controller; the parameters are those of a `Registration`."""
        if name in self._by_name:
            raise ConfigurationError(
                f"a controller named {name!r} is registered already: choose another name"
            )
        given = tuple(definitions), component, tuple(offers)
        self._by_name[name] = Registration(name, factory, *given)

    def add(self, controller: Registration) -> None:
        """Register a controller, or put it in the place of one of that name."""
        known = self._by_name.get(controller.name)
        if known is None:
            self._left_out.pop(controller.name, None)
            self.register(*controller)
        else:
            self._by_name[known.name] = Registration(
                known.name,
                controller.factory,
                tuple(controller.definitions),
                known.component
                if controller.component is Component.CONTROLLER
                else controller.component,
                tuple(controller.offers) or known.offers,
            )

    @property
    def definitions(self) -> list[JsonObject]:
        """What all controllers need to be defined, each once."""
        by_name = {
            definition["metadata"]["name"]: definition
            for controller in (*self._by_name.values(), *self._left_out.values())
            for definition in controller.definitions
        }
        return list(by_name.values())

    @property
    def offers(self) -> list[OfferedDefinition]:
        """What controllers define where it is needed, also those that are left out."""
        every = (*self._by_name.values(), *self._left_out.values())
        return [offer for controller in every for offer in controller.offers]

    def offers_of(self, group: str, kind: str) -> Sequence[OfferedDefinition]:
        """All that the controller offers which offers this kind: it may make the others itself."""
        for controller in (*self._by_name.values(), *self._left_out.values()):
            if any((each.group, each.kind) == (group, kind) for each in controller.offers):
                return controller.offers
        return ()

    def actor(self, name: str) -> Actor:
        """Who a controller is when it writes."""
        return Actor(name, self._known(name).component, inside=True)

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
        twin = ControllerRegistrations(self._by_name.values())
        twin._left_out.update(self._left_out)
        return twin

    def _known(self, name: str) -> Registration:
        if name not in self._by_name:
            known = ", ".join(self._by_name)
            raise ConfigurationError(f"no controller is named {name!r}; registered are: {known}")
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)
