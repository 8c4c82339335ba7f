"""What a scheduler outside wants to have written, sorted into decisions.

It tells of a failed attempt in its scheduling loop, which waits for the answer; bindings, victims
and what plugins write come from threads of their own, in an order that nobody can know. So they
are held, and let in one decision after the other.

It also chooses volumes: it writes its choice on a claim or a volume, and then looks once in a while
whether the controller of volumes has made the two one. A program that waits for that looks like one
that is done. So what it has chosen is remembered (`ChosenVolumes`): once the claims of a pod are
bound, the binding of the pod must come.
"""

from collections.abc import Iterable, Iterator

from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.volumes.claims import is_bound
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.builtin.storage.storage_protection import CLAIM, VOLUME, claims_of
from kubescene.outside.programs import Held, OutsideProgram
from kubescene.outside.requests import DEVICE_CLAIMS, OutsideRequest
from kubescene.outside.turns.waiting_pods import Place, UnplacedPods
from kubescene.types import JsonObject

CLAIMS = GroupResource("", "persistentvolumeclaims")
VOLUMES = GroupResource("", "persistentvolumes")


class WantedWrites:
    """The writes of one scheduler that are held."""

    def __init__(self, program: OutsideProgram, reader: Reader, waiting: UnplacedPods) -> None:
        self.chosen = ChosenVolumes(reader)
        self.given: dict[Place, int] = {}
        """The pods that it was given last, in their order."""
        self.failed: set[Place] = set()
        """Those at which it has failed since."""
        self.has_preempted = False
        self._program = program
        self._waiting = waiting
        self._gives_devices = False

    def begin(self, given: Iterable[Change]) -> None:
        """It was given these pods."""
        records = [change.record for change in given]
        self.given = {(pod.namespace, pod.name): at for at, pod in enumerate(records)}
        self.failed = set()
        self._program.allowance = len(records)

    def let_failures_in(self) -> None:
        """Its loop waits for these: a failed attempt is told by the loop itself."""
        for held in self.attempts():
            place = place_of(held)
            self.failed.add(place)
            self._waiting.failed(place)
            self.chosen.decided(*place)
            self._program.let_in(held)

    def attempts(self) -> list[Held]:
        """What its loop says of failures."""
        return [held for held in self._program.writes if is_attempt(held.asked)]

    def deeds(self) -> list[Held]:
        """What its threads want to have written; what its loop says of failures is none."""
        return [held for held in self._program.writes if not is_attempt(held.asked)]

    def covers_given(self) -> bool:
        """Whether each pod that was given has failed or is being bound."""
        written = self.failed.union(map(place_of, self._program.writes))
        return written.issuperset(self.given)

    def next_binding(self) -> Held | None:
        """Of several that of the pod which was given first: it was decided first."""
        bindings = [held for held in self.deeds() if held.asked.is_bind]
        if not bindings:
            return None
        first = min(bindings, key=self._order)
        self.chosen.decided(*place_of(first))
        return first

    def others(self) -> list[Held]:
        """Deeds that bind nothing: what one preemption removes, say."""
        return [held for held in self.deeds() if not held.asked.is_bind]

    def let_in(self, held: Held) -> None:
        self._gives_devices = held.asked.resource == DEVICE_CLAIMS
        self.has_preempted |= held.asked.deletes_a_pod
        self.chosen.wrote(held.asked)
        self._program.let_in(held)

    def is_half_done(self) -> bool:
        """Nothing comes between the devices of a pod and its binding."""
        return self._gives_devices and bool(self.deeds())

    def _order(self, held: Held) -> int:
        return self.given.get(place_of(held), len(self.given))


def is_attempt(asked: OutsideRequest) -> bool:
    """Whether its loop says that it has failed at a pod, and waits for the answer.

    A victim is marked in its status as well, which may name all of its conditions. A nomination
    alone is none: so does a pod begin that is bound in steps, when its node is found.
    """
    body = asked.body
    return asked.is_pod_status and b"PodScheduled" in body and b"DisruptionTarget" not in body


def place_of(held: Held) -> Place:
    return held.asked.namespace, held.asked.name


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
