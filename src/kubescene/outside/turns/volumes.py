"""Volumes that a scheduler outside has chosen, and waits for before it binds their pod.

It writes its choice on a claim or a volume, and then looks once in a while whether the controller
of volumes has made the two one. A program that waits for that looks like one that is done. So what
it has chosen is remembered: once the claims of a pod are bound, the binding of the pod must come.
"""

from collections.abc import Iterator
from typing import TypeAlias

from kubescene.api.kinds import POD
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.volumes.claims import is_bound
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.builtin.storage.storage_protection import CLAIM, VOLUME, claims_of
from kubescene.outside.requests import OutsideRequest
from kubescene.types import JsonObject

Place: TypeAlias = tuple[str, str]
"""Namespace and name."""
CLAIMS = GroupResource("", "persistentvolumeclaims")
VOLUMES = GroupResource("", "persistentvolumes")


class ChosenVolumes:
    """What one scheduler has chosen for pods that it has neither bound nor failed at since."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._claims: dict[Place, None] = {}
        self._volumes: dict[str, None] = {}

    def wrote(self, asked: OutsideRequest) -> None:
        """It was allowed to write something, perhaps its choice."""
        if asked.resource == CLAIMS:
            self._claims[asked.namespace, asked.name] = None
        elif asked.resource == VOLUMES:
            self._volumes[asked.name] = None

    def decided(self, namespace: str, name: str) -> None:
        """It binds a pod, or has failed at it: for that one it waits no longer."""
        pod = self._find(POD, namespace, name)
        if pod is not None and (self._claims or self._volumes):
            self._forget(pod)

    def is_due(self) -> bool:
        """Whether a pod has all that it waited for."""
        return next(self._complete(), None) is not None

    def give_up(self) -> None:
        """What is due does not come."""
        for pod in list(self._complete()):
            self._forget(pod)

    # -- inside ------------------------------------------------------------------------------------

    def _complete(self) -> Iterator[JsonObject]:
        self._name_claims()
        if not self._claims:
            return
        for pod in self._reader.list(POD):
            places = places_of(pod)
            waits = not pod["spec"].get("nodeName") and not self._claims.keys().isdisjoint(places)
            if waits and all(map(self._is_bound, places)):
                yield pod

    def _name_claims(self) -> None:
        """A volume is chosen for the claim that it names."""
        for name in list(self._volumes):
            volume = self._find(VOLUME, "", name)
            del self._volumes[name]
            if volume is not None and (claim := volume["spec"].get("claimRef")):
                self._claims[claim.get("namespace") or "", claim.get("name") or ""] = None

    def _is_bound(self, place: Place) -> bool:
        claim = self._find(CLAIM, *place)
        return claim is not None and is_bound(claim)

    def _find(self, gvk: GroupVersionKind, namespace: str, name: str) -> JsonObject | None:
        return self._reader.find(ObjectRef(gvk, name, namespace))

    def _forget(self, pod: JsonObject) -> None:
        self._name_claims()
        for place in places_of(pod):
            self._claims.pop(place, None)


def places_of(pod: JsonObject) -> list[Place]:
    namespace = pod["metadata"]["namespace"]
    return [(namespace, claim) for claim in claims_of(pod)]
