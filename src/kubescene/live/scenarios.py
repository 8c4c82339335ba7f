"""Who plays and who waits.

The Scenarios of a served world are played one after the other, in the order in which they were
created. The engine thread asks for `moments` when it has nothing else to play and calls `look`
after every command; what has changed in between, a subscription tells. Subscribers must not write,
so it only takes notes.

A scenario owns the world from its first moment: the world is wiped, its time is virtual, others
may only read. When it is over the world is left as it is, nothing moves, until somebody
writes: then the world is everybody's again and its own controllers begin anew.
"""

import logging
from collections.abc import Iterator
from typing import Any

from kubescene.actors import ENGINE
from kubescene.api.gates import OpenGate
from kubescene.api.kinds import BOOKKEEPING, SCENARIO
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import Scheme
from kubescene.errors import BadRequestError, ConflictError, ForbiddenError
from kubescene.garbage import world_is_made
from kubescene.live.edits import ScenarioEdits, as_phase
from kubescene.live.finished import FinishedRuns
from kubescene.live.runs import LiveRun, RunFactory, StoreRunFactory
from kubescene.registry.bootstrap import survives_wipe
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.runs.catalogue import Runs
from kubescene.runs.worlds import LendableWorld
from kubescene.scenario.edits import UNDER_WAY
from kubescene.scenario.engine import EngineMoment
from kubescene.scenario.fields.definition import DEFINITION, SCENARIOS, scenario_definition
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase
from kubescene.scenario.world import Stage
from kubescene.types import JsonObject

RESTARTED = "the controller restarted while the Scenario was running"
IMPORTED = (
    "it came with other objects, which it would have wiped at its start: create it again to have "
    "it played"
)
DELETED = "the Scenario was deleted while it was played"
RECONFIGURED = (
    "the scheduler configuration was changed while the Scenario was under way: "
    "what happened before and after cannot be compared"
)
RUNS = "runs"
"""The note of a store that says which runs its Scenarios had."""
_log = logging.getLogger(__name__)


class LiveScenarios:
    """Plays the Scenarios of one cluster. All but the constructor is for the engine thread."""

    def __init__(
        self,
        cluster: LendableWorld,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        *,
        allow_extenders: bool = False,
        factory: RunFactory | None = None,
        catalogue: Runs | None = None,
        stage: Stage | None = None,
    ) -> None:
        self._cluster = cluster
        self._factory = factory or StoreRunFactory(cluster, results, stage)
        self._allow_extenders = allow_extenders
        self._tracks_fields = False
        self._current: LiveRun | None = None
        self.finished = FinishedRuns(catalogue)
        self._changed = True
        self._told = False
        self._is_gone = False
        self._is_held = False
        self._is_writing = False
        self._left_at = 0

    # -- the life of the server ----------------------------------------------------------------

    def begin(self) -> None:
        """Offer the kind, and end what another server has left under way."""
        cluster, registry = self._cluster, self._cluster.registry
        self._tracks_fields = registry.track_fields
        if registry.track_fields:
            registry.always_tracked = frozenset({SCENARIO})  # also while one of them is played
        if registry.custom.of(SCENARIO) is None and SCENARIO in cluster.scheme:
            cluster.scheme.unregister(SCENARIO)
        cluster.store.subscribe(self._heard, (SCENARIOS,), goes_with_fork=False)
        registry.admission.add(ScenarioEdits(self.playing))
        self.define()
        self.finished.recall(cluster.store.notes.get(RUNS, b""))
        self._look_whether_set_back()
        self._left_at = cluster.revision
        self.look()

    def define(self) -> None:
        """Make the definition of Scenarios, if there is none."""
        if self._cluster.store.get(DEFINITIONS, "", DEFINITION) is None:
            self._cluster.registry.create(ENGINE, scenario_definition())

    def look(self) -> bool:
        """After a command: tell those who wait that they do; whether the world is free again."""
        if not self._told:
            self._tell_waiting()
        if self._current is None and self._cluster.lending.is_lent and self._has_changed():
            self.free_world()
            return True
        return False

    @property
    def holds_world(self) -> bool:
        """Whether the world belongs to a scenario, or is as one has left it: nothing moves."""
        return self._current is not None or self._cluster.lending.is_lent

    def free_world(self) -> None:
        """Give a world that a scenario has left back to everybody; 403 if one is under way."""
        if self._current is not None:
            scenario = self._current.scenario
            raise ForbiddenError(
                f'the world belongs to scenario "{scenario.name}", which is {scenario.phase}: '
                "wait until it ends or delete it"
            )
        if self._cluster.lending.is_lent:
            self._cluster.take_back()
            self._cluster.guard(OpenGate())

    def check_import(self, document: JsonObject) -> None:
        """Refuse a list (403) that would put another Scenario in the place of the one under way.

        What is imported goes past admission: neither its spec nor its status would be that of the
        scenario which is played. One that waits and comes with a world is not played: it would
        begin by wiping what it came with.
        """
        run, items = self._current, document.get("items")
        if not isinstance(items, list):
            return
        if run is not None and any(is_scenario(each, run.name) for each in items):
            raise ForbiddenError(
                f'scenario "{run.name}" is {run.phase} and cannot be replaced by an import: '
                "wait until it ends or delete it"
            )

        hold_back(items, self._cluster.registry.scheme)

    # -- playing -------------------------------------------------------------------------------

    def moments(self) -> Iterator[EngineMoment] | None:
        """What is to be played now, if anything is."""
        if not self._changed:
            return None
        self._changed = False
        if self._current is not None and (going_on := self._resumed(self._current)) is not None:
            return going_on
        self._tell_waiting()
        self._changed = False
        if self._current is not None or (record := next(self._waiting(), None)) is None:
            return None
        run = self._current = self._factory.run(record)
        self.finished.begin(run)
        self._is_gone = self._is_held = False
        return self._play(run)

    def hold(self, name: str, *, is_held: bool) -> None:
        """Stand still between two moments, or go on; 409 unless that scenario is played now.

        Nothing of it is told: what happens is the same, whenever that is.
        """
        run = self._current
        if run is None or run.name != name or run.phase is not ScenarioPhase.RUNNING:
            raise ConflictError(f'scenario "{name}" is not being played now')
        self._is_held = is_held

    def is_held(self, run: LiveRun) -> bool:
        return self._is_held and run is self._current

    def fail_current(self, message: str = RECONFIGURED) -> None:
        """End the scenario that is under way, if one is, as ``Failed``.

        For whoever changes what it stands on, such as the scheduler's configuration.
        """
        run = self._current
        if run is not None:
            run.engine.fail(message)
            self._end(run)

    def _resumed(self, run: LiveRun) -> Iterator[EngineMoment] | None:
        """Moments of a paused scenario whose author has added something, or let it go."""
        if self._is_gone:
            self._stop(run)
            self._end(run)
        elif run.engine.resume():
            return self._moments_of(run)
        elif run.phase is not ScenarioPhase.PAUSED:
            self._end(run)
        return None

    def _play(self, run: LiveRun) -> Iterator[EngineMoment]:
        try:
            run.attach(allow_extenders=self._allow_extenders)
        except Exception as error:
            # A bug, not a fault of the scenario; but nobody else shall wait for it for ever.
            run.engine.fail(f"internal error: {error!r}")
            self._end(run)
            raise
        self._cluster.registry.track_fields = False
        yield from self._moments_of(run)

    def _moments_of(self, run: LiveRun) -> Iterator[EngineMoment]:
        try:
            for moment in run.play():
                yield moment
                while self._is_held and not self._is_gone:
                    yield moment._replace(is_held=True)
                if self._is_gone:
                    self._stop(run)
        finally:
            world_is_made()
            is_over = run.phase is not ScenarioPhase.PAUSED or self._is_gone
            if is_over and self._current is run:
                self._end(run)

    def _stop(self, run: LiveRun) -> None:
        """End a scenario whose object was deleted, or waits for its finalizers."""
        if run.scenario.exists:
            run.engine.fail(DELETED)
        run.engine.stop()

    def _end(self, run: LiveRun) -> None:
        try:
            run.detach()
        except Exception:
            # A full disk, say. The world is free all the same, or nobody could play any more.
            _log.exception("what scenario %s did could not be kept whole", run.name)
        self.finished.end(run)
        if run.scenario.exists:
            self.finished.add(run)
            self._look_whether_set_back()
        else:
            self.finished.drop_records(run)
        self._cluster.store.note(RUNS, self.finished.known())
        self._cluster.registry.track_fields = self._tracks_fields
        if self._cluster.lending.is_lent:  # otherwise it failed before it touched anything
            self._cluster.lending.note_lasting()
        self._current = None
        self._left_at = self._cluster.revision
        self._news()

    def close(self) -> None:
        """The server ends; returns when all that has ended is kept."""
        self.finished.close(self._current)

    def is_playing(self) -> bool:
        """Whether a scenario is under way, be it paused."""
        return self._current is not None

    # -- who is there --------------------------------------------------------------------------

    @property
    def current(self) -> LiveRun | None:
        """The run that is under way, be it paused. Any thread may ask."""
        return self._current

    def playing(self, uid: str) -> LiveRun | None:
        """The run of a scenario that is under way."""
        run = self._current
        return run if run is not None and run.uid == uid else None

    def run_named(self, name: str) -> LiveRun | None:
        """The run of the scenario of that name, under way or over; 410 if it was dropped."""
        current = self._current
        if current is not None and current.name == name and current.scenario.exists:
            return current
        return self.finished.named(name)

    def _waiting(self) -> Iterator[Record]:
        """Scenarios that have not been played, the oldest first."""
        for record in self._cluster.store.in_order_of_creation(SCENARIOS):
            if not self._is_known(record) and not record.deleting:
                yield record

    def _is_known(self, record: Record) -> bool:
        is_played = self._current is not None and self._current.uid == record.uid
        return is_played or record.uid in self.finished or as_phase(record.phase).is_final

    def _tell_waiting(self) -> None:
        first = self._current
        before = "" if first is None else first.name
        self._told = True
        for record in self._waiting():
            if as_phase(record.phase) in UNDER_WAY:
                self._write(record, ScenarioPhase.FAILED, RESTARTED)
                continue
            if before:
                why = f'scenario "{before}" comes first'
                self._write(record, ScenarioPhase.PENDING, why)
            elif not record.phase:
                self._write(record, ScenarioPhase.PENDING, "")
            before = before or record.name

    def _write(self, record: Record, phase: ScenarioPhase, message: str) -> None:
        """Set the status of a scenario that is not played, unless it says so already."""
        status = self._cluster.store.decoded(record).get("status") or {}
        if (status.get("phase"), status.get("message", "")) != (phase, message):
            resource = self._factory.waiting(record)
            resource.phase, resource.message = phase, message
            resource.recall(status)
            self._is_writing = True
            try:
                resource.write()
            finally:
                self._is_writing = False

    def _has_changed(self) -> bool:
        """Whether anybody has written since the world was left: bookkeeping does not count."""
        store = self._cluster.store
        resources = (each for each in store.known_resources() if each not in BOOKKEEPING)
        return any(store.newest(resource) > self._left_at for resource in resources)

    def _heard(self, change: Change) -> None:
        record, run = change.record, self._current
        is_gone = change.type is ChangeType.DELETED
        if is_gone:
            self.finished.forget(record.uid)
        else:
            self._look_whether_set_back(record)
        if run is None or run.name != record.name:
            self._news(is_told=self._is_writing)
        elif is_gone or record.deleting or record.uid != run.uid:
            self._is_gone = True
            self._news()
        elif not run.scenario.is_mine(record):
            self._news()

    def _look_whether_set_back(self, *changed: Record) -> None:
        """An import, say, may bring back the status that a Scenario had before it was over.

        Nothing that we have played is in that state: it is treated as one that is new to us.
        """
        for record in changed or self._cluster.store.in_order_of_creation(SCENARIOS):
            if self.finished.is_set_back(record.uid, is_over=as_phase(record.phase).is_final):
                self.finished.forget(record.uid)

    def _news(self, *, is_told: bool = False) -> None:
        """Something has changed: look again who plays, and tell those who wait."""
        self._changed = True
        self._told = self._told and is_told


def hold_back(items: list[Any], scheme: Scheme) -> None:
    """Scenarios of a list that would begin by wiping the rest of it become ``Failed``."""
    waiting = [each for each in items if is_scenario(each) and is_to_be_played(each)]
    if waiting and any(would_be_wiped(each, scheme) for each in items):
        for each in waiting:
            status = each.get("status")
            said = {"phase": str(ScenarioPhase.FAILED), "message": IMPORTED}
            each["status"] = {**status, **said} if isinstance(status, dict) else said


def is_scenario(obj: Any, name: str = "") -> bool:
    """Whether an object, whatever is wrong with it, is a Scenario, perhaps that of a name."""
    if not isinstance(obj, dict):
        return False
    kind, metadata = (obj.get("apiVersion"), obj.get("kind")), obj.get("metadata")
    is_named = not name or (isinstance(metadata, dict) and metadata.get("name") == name)
    return is_named and kind == (SCENARIO.api_version, SCENARIO.kind)


def is_to_be_played(scenario: JsonObject) -> bool:
    """Whether it has not begun yet."""
    status = scenario.get("status")
    phase = as_phase(str(status.get("phase") or "")) if isinstance(status, dict) else None
    return phase is None or not (phase.is_final or phase in UNDER_WAY)


def would_be_wiped(obj: Any, scheme: Scheme) -> bool:
    """Whether a scenario that begins would remove it; what cannot be read is not imported."""
    try:
        found = scheme.of_kind(obj["apiVersion"], obj["kind"])
        return not survives_wipe(found.group_resource, obj)
    except BadRequestError:
        return True  # a custom resource whose definition comes with it
    except (AttributeError, KeyError, TypeError):
        return False
