"""What a scheduler outside is shown: all that has happened, and pods in their turn.

The last thing that it is shown is a park pod (`kubescene.outside.park_pods`), in whose status
write it then stands still.
"""

import orjson

from kubescene.api.kinds import POD
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.client import ObjectRef
from kubescene.clock import format_time
from kubescene.outside.park_pods import ordinal_of, park_pod, park_pod_name, park_record, park_reply
from kubescene.outside.programs import GateReply, Held, OutsideProgram
from kubescene.outside.requests import PODS
from kubescene.outside.turns.roll_call import called
from kubescene.outside.turns.turn import TurnSurroundings
from kubescene.outside.turns.waiting_pods import UnplacedPods
from kubescene.scenario.outside import OutsideController, ShownPods
from kubescene.types import JsonObject


class PodFeed:
    """The watches of one scheduler."""

    def __init__(
        self, program: OutsideProgram, declared: OutsideController, world: TurnSurroundings
    ) -> None:
        self.is_parked = False
        """Whether it stands still in its park pod."""
        self.has_news = True
        """Whether anything has happened since it was asked last whom it would try again."""
        self._program = program
        self._declared = declared
        self._world = world
        self.waiting = UnplacedPods(declared.scheduler_names, world.decoder, world.clock.now)
        self._ordinal = 0

    @property
    def is_open(self) -> bool:
        """Whether it watches pods at all."""
        return any(self._program.feeds_of(PODS))

    def deliver(self) -> list[Change]:
        """Send the next pods, and the park pod that takes over; those pods."""
        taken = self.waiting.take(everything=self._declared.feed is ShownPods.ALL_PODS)
        revision = self._world.revision
        self._send([*taken, *self._leaving(revision), *self._next(revision)])
        return [change for change in taken if change.type is ChangeType.ADDED]

    def tell(self) -> None:
        """Send what has happened, but no pod that it would try."""
        for feed in self._program.feeds:
            changes = feed.pull()
            self.has_news = self.has_news or bool(changes)
            feed.release(self.waiting.sift(changes) if feed.resource == PODS else changes)

    def reveal(self) -> None:
        """It has seen a pod that does not exist, and not all that do: make that good."""
        self.tell()
        events = self.waiting.take(everything=True)
        if self._ordinal:
            events.append(self._event(ChangeType.DELETED, self._world.revision))
        self._send(events)
        self.answer()

    # -- whom it would try again -------------------------------------------------------------------

    def call(self) -> None:
        """Show all that wait as pods that fit nowhere; no park pod holds it when it goes on."""
        pods = map(self._world.decoder.decoded, self.waiting.unplaced)
        events = [self._modified(called(pod)) for pod in pods]
        self.has_news = False
        self._send([*events, *self._leaving(self._world.revision)])

    def heard(self, held: Held) -> None:
        """It has taken one of those: that is all it was to say."""
        place = held.asked.namespace, held.asked.name
        self.waiting.wants_again(place)
        self._program.drop(held)
        held.resolve(GateReply(orjson.dumps(self._world.reader.get(ObjectRef(POD, *place[::-1])))))

    def restore(self) -> None:
        """Show them as they are."""
        self._send(list(map(self._modified, self.waiting.unplaced)))

    def _modified(self, record: Record) -> Change:
        return Change(ChangeType.MODIFIED, record, None, self._world.decoder)

    # -- the park pod ------------------------------------------------------------------------------

    def park(self) -> None:
        """Send one more park pod, and nothing else."""
        self._send(self._next(self._world.revision))

    def has_come(self) -> bool:
        """Whether it has failed at the newest park pod, as it should, and says so."""
        wanted = park_pod_name(self._ordinal)
        parkings = (held.asked for held in self._program.parkings)
        return any(asked.name == wanted and asked.is_pod_status for asked in parkings)

    def answer(self) -> None:
        """Let its loop go on."""
        self.is_parked = False
        for held in list(self._program.parkings):
            self._program.drop(held)
            pod = self._pod(ordinal_of(held.asked.name))
            held.resolve(GateReply(park_reply(pod, self._world.revision)))

    def _leaving(self, revision: int) -> list[Change]:
        return [self._event(ChangeType.DELETED, revision)] if self.is_parked else []

    def _next(self, revision: int) -> list[Change]:
        self._ordinal += 1
        return [self._event(ChangeType.ADDED, revision)]

    def _event(self, kind: ChangeType, revision: int) -> Change:
        pod = park_record(self._pod(self._ordinal), revision)
        return Change(kind, pod, None, self._world.decoder)

    def _pod(self, ordinal: int) -> JsonObject:
        created = format_time(self._world.clock.now())
        return park_pod(ordinal, self._declared.scheduler_names[0], created)

    def _send(self, events: list[Change]) -> None:
        for feed in self._program.feeds_of(PODS):
            feed.release(events)
