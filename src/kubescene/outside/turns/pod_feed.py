"""What a scheduler outside is shown: all that has happened, and pods in their turn.

The last thing that it is shown is a park pod (`kubescene.outside.park_pods`), in whose status
write it then stands still.
"""

from kubescene.api.records.changes import Change, ChangeType
from kubescene.clock import format_time
from kubescene.outside.asking import PODS
from kubescene.outside.park_pods import ordinal_of, park_pod, park_pod_name, park_record, park_reply
from kubescene.outside.programs import Program, Reply
from kubescene.outside.turns.turn import Surroundings
from kubescene.outside.turns.waiting_pods import WaitingPods
from kubescene.scenario.outside import Feed, OutsideController
from kubescene.types import JsonObject


class PodFeed:
    """The watches of one scheduler."""

    def __init__(self, program: Program, declared: OutsideController, world: Surroundings) -> None:
        self.is_parked = False
        """Whether it stands still in its park pod."""
        self._program = program
        self._declared = declared
        self._world = world
        self._waiting = WaitingPods(declared.scheduler_names, world.decoder)
        self._ordinal = 0

    @property
    def is_open(self) -> bool:
        """Whether it watches pods at all."""
        return any(self._program.feeds_of(PODS))

    def deliver(self, *, parks: bool) -> list[Change]:
        """Send all that has happened, the next pods, and the park pod that takes over."""
        revision = self._world.revision
        self.tell()
        at_once = self._declared.feed is Feed.ALL_PODS
        given = self._waiting.take(everything=at_once) if parks else []
        self._send(given + self._parking(revision, parks=parks))
        return given

    def tell(self) -> None:
        """Send what has happened, but no pod that it would try."""
        for feed in self._program.feeds:
            changes = feed.pull()
            feed.release(self._waiting.sift(changes) if feed.resource == PODS else changes)

    def reveal(self) -> None:
        """It has seen a pod that does not exist, and not all that do: make that good."""
        self.tell()
        events = self._waiting.take(everything=True)
        if self._ordinal:
            events.append(self._event(ChangeType.DELETED, self._world.revision))
        self._send(events)
        self.answer()

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
            held.resolve(Reply(park_reply(pod, self._world.revision)))

    def _parking(self, revision: int, *, parks: bool) -> list[Change]:
        gone = [self._event(ChangeType.DELETED, revision)] if self.is_parked else []
        return gone + (self._next(revision) if parks else [])

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
