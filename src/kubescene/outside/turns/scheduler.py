"""A scheduler, pod by pod, held by park pods (see `kubescene.outside.park_pods`).

It stands still in the status write of a park pod. A turn lets it see all that has happened, one
more of the pods that wait, and the next park pod; then the write is answered. It works until it
stands still in the next one. What it wanted to write meanwhile was held, and is carried out one
decision after the other, with the world coming to rest in between. When no pod is left it may run
with no park pod at all, so that it takes pods from its backoff queue; if nothing comes, it is done.
A pod whose volumes it has chosen is bound when they are (see `kubescene.outside.turns.volumes`).
"""

from kubescene.api.changes import Change, ChangeType
from kubescene.clock import SECOND
from kubescene.control import IDLE, WAITING, Progress
from kubescene.errors import ScenarioError
from kubescene.outside.asking import DEVICE_CLAIMS, PODS
from kubescene.outside.idleness import ONE_WORKER, Idleness
from kubescene.outside.park_pods import ordinal_of, park_pod, park_pod_name, park_record, park_reply
from kubescene.outside.programs import Held, Reply
from kubescene.outside.turns.retries import Place, Retries
from kubescene.outside.turns.turn import Turn
from kubescene.outside.turns.volumes import ChosenVolumes
from kubescene.outside.turns.waiting_pods import WaitingPods
from kubescene.scenario.outside import Feed

BIND_WITHIN = SECOND
"""A decision is written by a thread of its own: it is on its way when the next pod's turn comes."""
LOOKS_WITHIN = 10 * SECOND
"""kube-scheduler looks once a second whether the volumes of a pod are bound."""


class SchedulerTurn(Turn):
    """Moves one scheduler."""

    _idle: Idleness | None = None
    _ordinal = 0
    _is_parked = False
    _waiting: WaitingPods | None = None
    _late = 0
    _gives_devices = False

    @property
    def judged_by(self) -> tuple[str, ...]:
        return ("park-pod",) if self._idle is None else ("park-pod", self._idle.judged_by)

    def end(self) -> None:
        """It has seen a pod that does not exist, and not all that do."""
        if self._waiting is None:
            return
        self._tell(self._waiting)
        events = self._waiting.take(everything=True)
        if self._ordinal:
            events.append(self._event(ChangeType.DELETED, self._ordinal, self._world.revision))
        for feed in self._program.feeds_of(PODS):
            feed.release(events)
        self._answer_parked()

    def run_once(self) -> Progress:
        if any(held.asked.lists_pods for held in self._program.held):
            raise ScenarioError(
                "it wants to list all pods in the middle of the scenario (its watch was broken "
                "off): from then on it would see them all at once",
                where=f"controller {self.name}",
            )
        return super().run_once()

    # -- giving -----------------------------------------------------------------------------------

    def _begin(self) -> Progress:
        """Parked, or never parked yet: give it the next pod."""
        if self._idle is None:
            self._idle = Idleness(self._program, self._world.real_clock, ONE_WORKER)
            self._waiting = WaitingPods(self._declared.scheduler_names, self._world.decoder)
            self._chosen = ChosenVolumes(self._world.reader)
            self._retries = Retries(self._world.reader)
            self._program.sees_pods_in_turn = True
        self._program.unpark()
        self._program.let_read()
        return self._give(parks=True)

    def _give(self, *, parks: bool) -> Progress:
        waiting, idle = self._waiting, self._idle
        assert waiting is not None
        assert idle is not None
        if not any(self._program.feeds_of(PODS)):
            return self._come_back()
        given = self._deliver(waiting, parks=parks)
        records = [change.record for change in given]
        self._given = {(pod.namespace, pod.name): at for at, pod in enumerate(records)}
        self._failed: set[Place] = set()
        self._program.allowance = len(given)
        self._is_draining = not parks
        idle.begin()
        return self._go(self._consuming, "what it was sent was not read")

    def _deliver(self, waiting: WaitingPods, *, parks: bool) -> list[Change]:
        """Send all that has happened, the next pods, and the park pod that takes over."""
        revision = self._world.revision
        self._tell(waiting)
        given = waiting.take(everything=self._declared.feed is Feed.ALL_PODS) if parks else []
        events = given + self._parking(revision, parks=parks)
        for feed in self._program.feeds_of(PODS):
            feed.release(events)
        return given

    def _tell(self, waiting: WaitingPods) -> None:
        """Send what has happened, but no pod that it would try."""
        for feed in self._program.feeds:
            changes = feed.pull()
            feed.release(waiting.sift(changes) if feed.resource == PODS else changes)

    def _parking(self, revision: int, *, parks: bool) -> list[Change]:
        events = []
        if self._is_parked:
            events.append(self._event(ChangeType.DELETED, self._ordinal, revision))
        if parks:
            self._ordinal += 1
            events.append(self._event(ChangeType.ADDED, self._ordinal, revision))
        return events

    def _event(self, kind: ChangeType, ordinal: int, revision: int) -> Change:
        return Change(kind, park_record(self._pod(ordinal), revision), None, self._world.decoder)

    def _pod(self, ordinal: int) -> "dict[str, object]":
        return park_pod(ordinal, self._declared.scheduler_names[0], self._now())

    def _consuming(self) -> Progress:
        assert self._idle is not None
        if not self._idle.is_reached():
            return WAITING
        if self._is_parked:
            self._answer_parked()
        self._idle.begin()
        if self._is_draining:
            self._worked, self._told = False, 0
            return self._drain()
        return self._run()

    def _answer_parked(self) -> None:
        """Let its loop go on."""
        self._is_parked = False
        for held in list(self._program.parkings):
            self._program.drop(held)
            pod = self._pod(ordinal_of(held.asked.name))
            held.resolve(Reply(park_reply(pod, self._world.revision)))

    # -- working --------------------------------------------------------------------------------

    def _run(self) -> Progress:
        assert self._idle is not None
        self._idle.begin()
        return self._go(self._running, "it had not come to a stand: it did not try its park pod")

    def _running(self) -> Progress:
        """Until it stands still in the next park pod's status."""
        self._let_failures_in()
        self._program.unpark()
        if self._program.passed or not self._has_parked():
            return self._release() if self._is_stuck() else WAITING
        self._is_parked = True
        self._late = self._world.real_clock.now() + BIND_WITHIN
        return self._go(self._collecting, "its decisions did not arrive")

    def _is_stuck(self) -> bool:
        """Whether its loop waits for a write: one that binds before it takes the next pod does."""
        assert self._idle is not None
        return bool(self._program.writes) and self._idle.is_reached()

    def _has_parked(self) -> bool:
        wanted = park_pod_name(self._ordinal)
        parkings = (held.asked for held in self._program.parkings)
        return any(asked.name == wanted and asked.is_pod_status for asked in parkings)

    def _let_failures_in(self) -> None:
        """Its loop waits for these: a failed attempt is told by the loop itself."""
        for held in self._program.writes:
            if self._is_attempt(held):
                self._failed.add(place_of(held))
                self._retries.failed(place_of(held))
                self._chosen.decided(*place_of(held))
                self._program.let_in(held)

    def _is_attempt(self, held: Held) -> bool:
        """A victim is marked in its status as well, which may name all of its conditions."""
        body = held.asked.body
        says = b"PodScheduled" in body and b"DisruptionTarget" not in body
        return says and held.asked.is_pod_status

    def _deeds(self) -> list[Held]:
        """What its threads want to have written; what its loop says of failures is none."""
        return [held for held in self._program.writes if not self._is_attempt(held)]

    def _collecting(self) -> Progress:
        """Decisions are written by threads of their own: wait for those that must come."""
        self._let_failures_in()
        if self._program.passed:
            return WAITING
        if not self._is_complete() and self._world.real_clock.now() < self._late:
            return WAITING
        return self._decide()

    def _is_complete(self) -> bool:
        """Whether each pod that was given has failed or is being bound, and the rest is still."""
        assert self._idle is not None
        written = self._failed.union(map(place_of, self._program.writes))
        return written.issuperset(self._given) and self._idle.is_reached()

    def _decide(self) -> Progress:
        """What it wants to have written is carried out, or it is given the next pod."""
        if self._program.writes:
            return self._release()
        if self._given or self._failed:
            self._state = self._begin
            return Progress(wrote=bool(self._failed), more=True)
        return self._give(parks=False)

    # -- carrying out ------------------------------------------------------------------------------

    def _release(self) -> Progress:
        """One decision: a binding, or all that one preemption removes.

        Of several bindings that of the pod which was given first: it was decided first. Those that
        were not given were tried again.
        """
        deeds = self._deeds()
        bindings = [held for held in deeds if held.asked.is_bind]
        self._batch = [min(bindings, key=self._place)] if bindings else deeds
        for held in self._batch if bindings else ():
            self._chosen.decided(*place_of(held))
        self._is_preempting = not bindings
        return self._go(self._carrying_out, "its writes were not answered")

    def _place(self, held: Held) -> tuple[int, int, int]:
        place = place_of(held)
        given = self._given.get(place)
        return (len(self._given), *self._retries.rank(place)) if given is None else (given, 0, 0)

    def _carrying_out(self) -> Progress:
        if self._program.passed:
            return WAITING
        if self._batch:
            self._let_in(self._batch.pop(0))
            return WAITING
        if self._is_preempting and not self._has_come_to_rest():
            return WAITING
        if self._gives_devices and self._deeds():
            # Nothing comes between the devices of a pod and its binding.
            return self._release()
        self._state = self._decided
        return Progress(wrote=True, more=True)

    def _let_in(self, held: Held) -> None:
        self._gives_devices = held.asked.resource == DEVICE_CLAIMS
        self._chosen.wrote(held.asked)
        self._program.let_in(held)

    def _has_come_to_rest(self) -> bool:
        """A victim is marked first and deleted then: both belong to one decision."""
        assert self._idle is not None
        if not self._idle.is_reached():
            return False
        self._batch = [held for held in self._deeds() if not held.asked.is_bind]
        if self._batch:
            self._idle.begin()
        return not self._batch

    def _decided(self) -> Progress:
        """The world has come to rest: the next decision, or the next pod."""
        if self._is_draining and not self._is_parked:
            return self._drain()
        self._let_failures_in()
        if self._program.passed:
            return WAITING
        if self._chosen.is_due():
            return self._await_binding()
        if not self._is_parked:
            return self._run()
        if self._program.writes:
            return self._release()
        return self._begin()

    # -- volumes -----------------------------------------------------------------------------------

    def _await_binding(self) -> Progress:
        """The volumes of a pod are bound: let it see that, and it binds the pod."""
        assert self._waiting is not None
        self._tell(self._waiting)
        self._late = self._world.real_clock.now() + LOOKS_WITHIN
        return self._go(self._awaiting, "a pod was not bound though its volumes are")

    def _awaiting(self) -> Progress:
        if self._is_late():
            return WAITING
        if self._program.writes:
            return self._release()
        self._state = self._decided
        return Progress(wrote=False, more=True)

    def _is_late(self) -> bool:
        """Whether a binding that is due has still to come; not for ever."""
        self._let_failures_in()
        if self._program.passed:
            return True
        if self._program.writes or not self._chosen.is_due():
            return False
        if self._world.real_clock.now() < self._late:
            return True
        self._chosen.give_up()
        return False

    # -- draining ----------------------------------------------------------------------------------

    def _drain(self) -> Progress:
        """No pod is left to give: it may take those that back off, until it is still."""
        self._late = self._world.real_clock.now() + LOOKS_WITHIN
        return self._go(self._draining, "it was still busy")

    def _draining(self) -> Progress:
        assert self._idle is not None
        if self._program.passed or not self._idle.is_reached():
            return WAITING
        if self._has_decided():
            # Before it came to the failure at which its loop may stand now.
            self._worked, self._told = True, 0
            return self._release()
        if self._is_late() or self._program.passed:
            self._told = len(self._failed)
            return WAITING
        self._worked = self._worked or bool(self._program.writes or self._failed)
        if not self._worked and not self._is_content():
            return WAITING
        self._ordinal += 1
        revision = self._world.revision
        event = self._event(ChangeType.ADDED, self._ordinal, revision)
        for feed in self._program.feeds_of(PODS):
            feed.release([event])
        return self._go(self._parking_again, "it had not come to a stand (its park pod)")

    def _has_decided(self) -> bool:
        """A binding comes before what its loop says next, a victim after what it has said."""
        deeds = self._deeds()
        return any(held.asked.is_bind for held in deeds) or bool(deeds and self._told)

    def _parking_again(self) -> Progress:
        self._let_failures_in()
        if self._program.passed or not self._has_parked():
            return WAITING
        self._is_parked = True
        if self._program.writes:
            return self._release()
        self._state = self._begin
        if self._worked:
            return Progress(wrote=True, more=True)
        self._program.may_read = False
        return IDLE


def place_of(held: Held) -> Place:
    return held.asked.namespace, held.asked.name
