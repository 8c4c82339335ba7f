"""What a scheduler outside wants to have written, sorted into decisions.

It tells of a failed attempt in its scheduling loop, which waits for the answer; bindings, victims
and what plugins write come from threads of their own, in an order that nobody can know. So they
are held, and let in one decision after the other.
"""

from collections.abc import Iterable
from contextlib import suppress

import orjson

from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change
from kubescene.client import ObjectRef, Reader
from kubescene.outside.asking import DEVICE_CLAIMS
from kubescene.outside.programs import Held, Program
from kubescene.outside.turns.retries import Place, Retries
from kubescene.outside.turns.volumes import ChosenVolumes
from kubescene.types import JsonObject


class WantedWrites:
    """The writes of one scheduler that are held."""

    def __init__(self, program: Program, reader: Reader) -> None:
        self.chosen = ChosenVolumes(reader)
        self.given: dict[Place, int] = {}
        """The pods that it was given last, in their order."""
        self.failed: set[Place] = set()
        """Those at which it has failed since."""
        self._program = program
        self._retries = Retries(reader)
        self._reader = reader
        self._gives_devices = False

    def begin(self, given: Iterable[Change]) -> None:
        """It was given these pods."""
        records = [change.record for change in given]
        self.given = {(pod.namespace, pod.name): at for at, pod in enumerate(records)}
        self.failed = set()
        self._program.allowance = len(records)

    def let_failures_in(self) -> None:
        """Its loop waits for these: a failed attempt is told by the loop itself."""
        for held in self._program.writes:
            if self._is_attempt(held):
                place = place_of(held)
                self.failed.add(place)
                self._retries.failed(place)
                self.chosen.decided(*place)
                self._program.let_in(held)

    def deeds(self) -> list[Held]:
        """What its threads want to have written; what its loop says of failures is none."""
        return [held for held in self._program.writes if not self._is_attempt(held)]

    def covers_given(self) -> bool:
        """Whether each pod that was given has failed or is being bound."""
        written = self.failed.union(map(place_of, self._program.writes))
        return written.issuperset(self.given)

    def has_binding(self) -> bool:
        return any(held.asked.is_bind for held in self.deeds())

    def next_binding(self) -> Held | None:
        """Of several that of the pod which was given first: it was decided first.

        Those that were not given were tried again.
        """
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
        self.chosen.wrote(held.asked)
        self._program.let_in(held)

    def is_half_done(self) -> bool:
        """Nothing comes between the devices of a pod and its binding."""
        return self._gives_devices and bool(self.deeds())

    def _is_attempt(self, held: Held) -> bool:
        """Whether its loop says that it has failed at a pod, and waits for the answer.

        A victim is marked in its status as well, which may name all of its conditions. A pod that
        failed before and has the same to say is only nominated to another node.
        """
        body = held.asked.body
        if not held.asked.is_pod_status or b"DisruptionTarget" in body:
            return False
        if b"PodScheduled" in body:
            return True
        return nominated_in(body) and not self._binds_in_steps(*place_of(held))

    def _binds_in_steps(self, namespace: str, name: str) -> bool:
        pod = self._reader.find(ObjectRef(POD, name, namespace))
        return pod is not None and binds_in_steps(pod)

    def _order(self, held: Held) -> tuple[int, int, int]:
        place = place_of(held)
        given = self.given.get(place)
        return (len(self.given), *self._retries.rank(place)) if given is None else (given, 0, 0)


def binds_in_steps(pod: JsonObject) -> bool:
    """Whether more than the pod is written to bind it: its claims, or its volumes.

    kube-scheduler nominates such a pod to the node that it has found before it goes on.
    """
    spec = pod.get("spec") or {}
    volumes = [each for each in spec.get("volumes") or () if isinstance(each, dict)]
    claimed = any("persistentVolumeClaim" in each or "ephemeral" in each for each in volumes)
    return claimed or bool(spec.get("resourceClaims"))


def nominated_in(body: bytes) -> bool:
    """Whether a patch nominates a pod; the threads of a preemption take such words back."""
    if b"nominatedNodeName" not in body:
        return False
    with suppress(orjson.JSONDecodeError):
        patch = orjson.loads(body)
        return isinstance(patch, dict) and bool(nomination_of(patch))
    return False


def nomination_of(patch: JsonObject) -> str:
    """The node to which a patch of a status nominates the pod."""
    status = patch.get("status")
    node = status.get("nominatedNodeName") if isinstance(status, dict) else None
    return node if isinstance(node, str) else ""


def place_of(held: Held) -> Place:
    return held.asked.namespace, held.asked.name
