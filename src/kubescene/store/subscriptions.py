"""Those who are told of every change, synchronously and in the order in which they subscribed.

Who hears of what is worked out once for each resource and combination of traits, and anew when
somebody comes or goes.
"""

from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from typing import Any, TypeAlias

from kubescene.api.records.changes import Change
from kubescene.api.records.traits import EVERYTHING, traits_of
from kubescene.api.scheme import GroupResource

Subscriber: TypeAlias = Callable[[Change], None]
Route: TypeAlias = tuple[Subscriber, ...]
"""Those who hear of one resource and combination of traits."""


def ignore(change: Change) -> None:
    """Nobody listens any more."""


class Subscription:
    """Hands changes of some resources to one callable, until cancelled."""

    __slots__ = ("_among", "goes_with_fork", "handler", "patient", "resources", "traits")

    def __init__(
        self,
        among: "Subscriptions",
        handler: Subscriber,
        resources: tuple[GroupResource, ...] | None,
        goes_with_fork: bool,
        patient: Collection[GroupResource] = (),
        traits: int = EVERYTHING,
    ) -> None:
        self._among = among
        self.handler = handler
        self.resources = resources
        self.goes_with_fork = goes_with_fork
        self.patient = patient
        self.traits = traits

    def follows(self, resource: GroupResource) -> bool:
        """Whether it wants every change of the resource, also one that could be deferred."""
        if self.resources is None:
            return resource not in self.patient
        return resource in self.resources

    def hears(self, resource: GroupResource, traits: int) -> bool:
        """Whether it is told of a change of the resource that has these traits."""
        follows = self.resources is None or resource in self.resources
        return follows and (self.traits == EVERYTHING or bool(self.traits & traits))

    def cancel(self) -> None:
        """Stop. Safe to call twice."""
        self._among.remove(self)
        # Whoever listened holds this, as a rule.
        self.handler = ignore

    def __deepcopy__(self, memo: dict[int, Any]) -> "Subscription":
        twin = memo[id(self)] = Subscription.__new__(Subscription)
        twin._among = deepcopy(self._among, memo)
        twin.handler = deepcopy(self.handler, memo)
        twin.resources = self.resources
        twin.goes_with_fork = True
        twin.patient = self.patient
        twin.traits = self.traits
        return twin


class Subscriptions:
    """All subscriptions of one store; `telling` is the change that they are being told of."""

    __slots__ = ("_all", "_followed", "_looks_for_traits", "_routes", "telling")

    def __init__(self) -> None:
        self._all: list[Subscription] = []
        self._routes: dict[tuple[GroupResource, int], Route] = {}
        self._followed: dict[GroupResource, bool] = {}
        self._looks_for_traits = False
        """Whether somebody is told only of changes with certain traits."""
        self.telling: Change | None = None

    def add(self, subscription: Subscription) -> None:
        self._all.append(subscription)
        self._reroute()

    def remove(self, subscription: Subscription) -> None:
        if subscription in self._all:
            self._all.remove(subscription)
            self._reroute()

    def follow(self, resource: GroupResource) -> bool:
        """Whether somebody wants to hear of every change of this resource."""
        followed = self._followed.get(resource)
        if followed is None:
            followed = any(each.follows(resource) for each in self._all)
            self._followed[resource] = followed
        return followed

    def tell(self, change: Change) -> None:
        """Tell everybody; if some fail, the others hear of it all the same, then it is raised."""
        failures: tuple[Exception, ...] = ()
        resource = change.record.resource
        traits = traits_of(change) if self._looks_for_traits else EVERYTHING
        route = self._routes.get((resource, traits)) or self._route(resource, traits)
        self.telling = change
        try:
            for handler in route:
                try:
                    handler(change)
                except Exception as error:
                    failures = (*failures, error)
        finally:
            self.telling = None
        if failures:
            first, *others = failures
            for other in others:
                first.add_note(f"another subscriber failed with {other!r}")
            raise first

    def route_of(self, change: Change) -> Route:
        """Those who would be told of a change, in order."""
        traits = traits_of(change) if self._looks_for_traits else EVERYTHING
        resource = change.record.resource
        return self._routes.get((resource, traits)) or self._route(resource, traits)

    def tell_some(self, change: Change, route: Route) -> None:
        """Tell these; whoever fails ends it."""
        self.telling = change
        try:
            for handler in route:
                handler(change)
        finally:
            self.telling = None

    def _route(self, resource: GroupResource, traits: int) -> Route:
        """Who is told of a change with these traits; there are few combinations."""
        route = self._routes[resource, traits] = tuple(
            each.handler for each in self._all if each.hears(resource, traits)
        )
        return route

    def _reroute(self) -> None:
        """Those who listen are others now."""
        self._routes.clear()
        self._followed.clear()
        self._looks_for_traits = any(it.traits != EVERYTHING for it in self._all)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Subscriptions":
        """For a fork of the world: those who say so come along."""
        twin = memo[id(self)] = Subscriptions()
        twin._all += [deepcopy(each, memo) for each in self._all if each.goes_with_fork]
        twin._reroute()
        return twin
