"""The world in which a case of workload controllers is played: ours, or one that is recorded."""

from collections.abc import Iterator
from typing import Any, Protocol

from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions
from kubescene.api.scheme import GroupResource
from kubescene.client import ObjectRef
from kubescene.clock import SECOND
from kubescene.cluster.options import ClusterOptions
from kubescene.cluster.world import ClusterWorld
from kubescene.controllers.builtin import table
from kubescene.controllers.builtin.namespaces.namespace import USUAL_DELAY
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.shortcuts import ALL, PLAIN
from kubescene.types import JsonObject

CASE_USER = Actor("user")
OFF = (
    "kubelet",
    "pod-garbage-collector",
    "node-lifecycle",
    "taint-eviction",
    "persistentvolume-binder",
    "event-expiry",
)
"""Controllers that took no part in the recordings: their work is an input of the cases."""


class CaseWorld(Protocol):
    """What a case is played in. Objects are those of the case's ``namespace``, and that itself."""

    namespace: str

    def now(self) -> int: ...

    def rest(self, until: int) -> None:
        """Until controllers are quiet; no later than this instant, if it is known."""

    def wait(self, until: int) -> None:
        """Let time pass, if it is not over yet."""

    def objects(self, kind: str) -> Iterator[JsonObject]:
        """Those of a kind, in order of creation; none if there is no such kind."""

    def get(self, kind: str, name: str) -> JsonObject:
        """An object; NotFoundError if it is not there."""

    def create(self, obj: JsonObject) -> None: ...

    def patch(
        self, kind: str, name: str, body: Any, patch_type: str, subresource: str = ""
    ) -> None: ...

    def delete(self, kind: str, name: str, options: DeleteOptions) -> None: ...

    def evict(self, pod: str) -> None: ...

    def bind(self, pod: str, node: str) -> None: ...


class OwnCaseWorld:
    """Ours. Between two actions time passes as it did in the recorder, which waited to see."""

    def __init__(
        self, start: int, namespace: str, gates: frozenset[str], quiet: int, *, plain: bool
    ) -> None:
        self.namespace = namespace
        self._quiet = quiet
        options = ClusterOptions(
            events=True, start=start, shortcuts=PLAIN if plain else ALL, gates=gates
        )
        every = table(events=True, gates=gates, namespace_delay=USUAL_DELAY)
        registered = [each for each in every if each.name not in OFF]
        self._world = ClusterWorld(options, controllers=ControllerRegistrations(registered))
        self._client = self._world.client(CASE_USER)

    def now(self) -> int:
        return self._world.clock.now()

    def rest(self, until: int) -> None:
        """Until nothing has been written for as long as the recorder waited."""
        world = self._world
        world.settle()
        while (left := until - world.clock.now()) > 0:
            revision = world.revision
            world.advance(min(self._quiet, left) / SECOND)
            if world.revision == revision:
                return

    def wait(self, until: int) -> None:
        self._world.settle()
        if (left := until - self.now()) > 0:
            self._world.advance(left / SECOND)

    def objects(self, kind: str) -> Iterator[JsonObject]:
        if kind not in {each.kind for each in self._world.scheme}:
            return
        if kind == "Event":
            for record in self._world.store.list(GroupResource("", "events"), self.namespace):
                yield record.decode()
            return
        resource = self._world.scheme.resolve(kind).group_resource
        for record in self._world.store.in_order_of_creation(resource):
            if self.namespace == (record.name if kind == "Namespace" else record.namespace):
                yield record.decode()

    def get(self, kind: str, name: str) -> JsonObject:
        return self._world.get(kind, name, self.namespace)

    def create(self, obj: JsonObject) -> None:
        self._world.create(obj)

    def patch(
        self, kind: str, name: str, body: Any, patch_type: str, subresource: str = ""
    ) -> None:
        self._world.patch(
            kind, name, body, self.namespace, subresource=subresource, patch_type=patch_type
        )

    def delete(self, kind: str, name: str, options: DeleteOptions) -> None:
        resource_type = self._world.scheme.resolve(kind)
        namespace = self.namespace if resource_type.namespaced else ""
        self._world.registry.delete(CASE_USER, resource_type, namespace, name, options=options)

    def evict(self, pod: str) -> None:
        self._world.evict(pod, self.namespace)

    def bind(self, pod: str, node: str) -> None:
        self._client.bind(ObjectRef(POD, pod, self.namespace), node)
