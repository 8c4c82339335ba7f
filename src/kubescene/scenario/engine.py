"""The phase machine: plays one scenario in one world, moment by moment.

A major step goes through the table of the Scenario API: operations, settle, then the simulation
controllers one loop at a time, each write followed by a settle, until all have nothing left to do.
Every change of phase is stored, and so visible to a watch, before its work starts. The engine is
also the world's `WriteGate`: it moves the minor step just before a simulation controller's
first write of a loop, and turns outsiders away while a scenario runs.

What is still to be done lies on a stack of tasks, bound methods with their data. A task does one
bounded piece of work (one object created, one round of a settle, one loop of a controller) and may
put others on the stack. So playing can be interrupted between any two of them, and a scenario in
the middle of its play is a value that can be copied.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.gates import OpenGate
from kubescene.api.options import OperationOrigin
from kubescene.api.scheme import ResourceType
from kubescene.clock import ScenarioStep, parse_duration
from kubescene.control import LivelockError, Patience, Slot
from kubescene.errors import KubesceneError, ScenarioError, ScenarioGoneError
from kubescene.scenario.controllers import check_controllers, refuse_outside
from kubescene.scenario.edits import ignored_operations, spec_of
from kubescene.scenario.expectations import Ending, Expectation, Hearing, Judge
from kubescene.scenario.kept import kept_objects
from kubescene.scenario.object_files import ScenarioFolder
from kubescene.scenario.operations import OperationRunner
from kubescene.scenario.outside import OutsideKind
from kubescene.scenario.outsiders import Frozen, refuse_outsider
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase, StepPhase
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec, parse_spec
from kubescene.scenario.world import LiveScenario, Stage, World
from kubescene.timeline import (
    ExpectationsEvaluated,
    KepView,
    NotSimulated,
    ObjectKept,
    OperationsIgnored,
    Outcome,
    StepPhaseChange,
    TimelineRecorder,
)
from kubescene.timeline.significance import is_significant
from kubescene.types import JsonObject

Examine: TypeAlias = Callable[[JsonObject, ScenarioSpec], Sequence[str]]
SIMULATION, PRESIMULATION, USER = Role.SIMULATION, Role.PRESIMULATION, Role.USER
NOTED_ONLY = (OperationKind.DONE, OperationKind.ADVANCE)
"""Operations that write nothing."""
CLEARED_AT_ONCE = 500
"""Objects: about ten milliseconds."""

Task = tuple[Callable[..., None], tuple[Any, ...]]


class Moment(NamedTuple):
    """Where a scenario stands between two pieces of work."""

    step: ScenarioStep
    phase: StepPhase | None
    waits: bool = False
    """Whether it is another program's turn: nothing happens here until that does something."""


class Engine:
    """Plays the scenario behind a live object."""

    def __init__(
        self,
        world: World,
        scenario: LiveScenario,
        recorder: TimelineRecorder,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        folder: ScenarioFolder | None = None,
        examine: Examine | None = None,
        judge: Judge | None = None,
        stage: Stage | None = None,
    ) -> None:
        """``examine`` says what is remarkable about a spec before it is played, or refuses it.

        ``judge`` looks at the end whether the spec's expectations hold; without one nobody does.
        ``stage`` is where programs outside have their turns; without one none can take part.
        """
        self.world = world
        self._folder = folder
        self._examine = examine
        self._judge = judge
        self._stage = stage
        self._heard: tuple[Expectation, ...] = ()
        self.failed_at: tuple[str | int, ...] = ()
        self.scenario = scenario
        self.bad_input = False
        self._results = results
        self._recorder = recorder
        self._view = KepView(recorder.log, len(recorder.log))
        self._spec = ScenarioSpec(())
        self._source: JsonObject = {}
        self._played: dict[str, Operation] = {}
        self._operations = OperationRunner(world.client(ENGINE), world.scheme)
        self._simulation: Sequence[Slot] = ()
        self._presimulation: Sequence[Slot] = ()
        self._beside: Sequence[Slot] = ()
        """Programs outside that are pre-simulation controllers."""
        self._outside: frozenset[str] = frozenset()
        self._waits = False
        self._roles: dict[str, Role] = {}
        self._done_at: dict[str, int] = {}
        self._loop_counted = False
        self._writes: Counter[str] | None = None
        self._tasks: list[Task] = [(self._read, ())]

    # -- turning -----------------------------------------------------------------------------

    def run(self) -> ScenarioPhase:
        """Play to the end. Never raises for what the scenario did wrong: that is ``Failed``."""
        while self._tasks:
            self._do(*self._tasks.pop())
        return self.scenario.phase

    def play(self) -> Iterator[Moment]:
        """Play on from where the scenario stands, one moment at a time.

        Whoever iterates may do anything between two moments, even leave and come back.
        """
        while self._tasks:
            self._waits = False
            self._do(*self._tasks.pop())
            yield Moment(self.scenario.step, self.scenario.step_phase, self._waits)

    def stop(self) -> None:
        """Give up between two moments: what was done stays, outsiders may write again."""
        self._tasks.clear()
        self._dismiss()
        self.world.guard(OpenGate())

    def resume(self) -> bool:
        """Go on with a paused scenario if its author has changed it; whether there is work.

        Operations that they added for steps that have passed are listed as ignored. Other
        expectations are looked at anew.
        """
        if not self._is_paused():
            return False
        ignored = self.scenario.ignored
        self._do(self._reread, ())
        if not self._is_paused():
            return False
        if self._spec.next_major(self.scenario.step.major) is not None:
            self._then(self._next_step)
            self._then(self._go_on)
        elif self._spec.expectations != self._heard:
            self._then(self._conclude, ScenarioPhase.PAUSED, None)
        elif self.scenario.ignored != ignored:
            self._then(self.scenario.write)
        return bool(self._tasks)

    def _is_paused(self) -> bool:
        return self.scenario.phase is ScenarioPhase.PAUSED

    def fail(self, message: str) -> None:
        """End a scenario that is under way between two moments: something made it worthless."""
        self._fail(message)

    @property
    def started(self) -> Mapping[str, Operation]:
        """The operations of all steps up to the current one that were played, by id."""
        return self._played

    @property
    def is_between_steps(self) -> bool:
        """Whether a major step is complete and the next has not begun."""
        at_end = bool(self._tasks) and self._tasks[-1][0] in (self._next_step, self._succeed)
        return at_end and self.scenario.step.major > 0

    def fork(self) -> "Engine":
        """A copy of the scenario in its world, between two moments; both can be played on."""
        return deepcopy(self)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to play."""
        return not self._tasks

    def _do(self, task: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            if self._stage is not None and self._outside:
                # Whoever has the turn: a program that is gone would be missed much later.
                self._stage.look()
            task(*arguments)
        except ScenarioGoneError:
            self.stop()
        except LivelockError as error:
            self._fail(f"step {self.scenario.step}: {error}")
        except KubesceneError as error:
            self.failed_at = error.path if isinstance(error, ScenarioError) else ()
            self._fail(str(error))
        except Exception as error:
            # A bug, not a fault of the scenario: told, and then shown in full.
            self._fail(f"internal error: {error!r}")
            raise

    def _then(self, task: Callable[..., None], *arguments: Any) -> None:
        """Put a task on the stack: the last one put there is the first to be done."""
        self._tasks.append((task, arguments))

    # -- the life of a scenario --------------------------------------------------------------

    def _read(self) -> None:
        try:
            self._parse(self.scenario.object)
            check_controllers(self._spec, self.world.registrations)
            examine = self._examine
            warnings = examine(self.scenario.object, self._spec) if examine else ()
            if self._stage is None:
                refuse_outside(self._spec)
            else:
                self._stage.check(self._spec.outside)
        except ScenarioError as error:
            self.bad_input = True
            self.failed_at = error.path
            self._end(ScenarioPhase.FAILED, str(error))
            return
        self._then(self._next_step)
        self._then(self._begin, tuple(warnings))
        self._then(self._clear)
        self._go_on()

    def _clear(self) -> None:
        """Take away some of what is there: a large world takes longer than others should wait."""
        if self.world.clear(CLEARED_AT_ONCE):
            self._then(self._clear)

    def _parse(self, scenario: JsonObject) -> None:
        self._spec = parse_spec(scenario, self._folder)
        self._source = spec_of(scenario)

    def _reread(self) -> None:
        """Take in what the author has changed since the last look."""
        scenario = self.scenario.object
        if spec_of(scenario) is self._source:
            return
        self._parse(scenario)
        major = self.scenario.step.major
        self.scenario.ignored = ignored_operations(self._spec, major, self._played)

    def _go_on(self) -> None:
        self.world.guard(self)
        self.scenario.phase = ScenarioPhase.RUNNING
        self.scenario.expectations = ()
        self.scenario.write()

    def _begin(self, warnings: tuple[str, ...]) -> None:
        world = self.world
        world.begin_anew()
        outside = [each.name for each in self._spec.outside]
        for kept in kept_objects(world.client(ENGINE)):
            self._recorder.record(ObjectKept, ENGINE, **kept)
        names = self._spec.presimulation_controllers(list(world.registrations))
        simulated = self._spec.simulation_controllers
        self._outside = frozenset(outside)
        self._roles = dict.fromkeys(names, Role.PRESIMULATION)
        self._roles |= dict.fromkeys(simulated, Role.SIMULATION)
        self._presimulation, self._beside = self._start(names, Role.PRESIMULATION)
        inside, beside = self._start(simulated, Role.SIMULATION)
        slots = {slot.name: slot for slot in chain(inside, beside)}
        self._simulation = [slots[name] for name in simulated]
        if warnings:
            self._recorder.record(NotSimulated, ENGINE, warnings=warnings)
        if self._stage is not None and outside:
            bags = [each.name for each in self._spec.outside if each.kind is OutsideKind.BAG]
            self._recorder.tell_net_of(bags)
            self._then(self._gather, self._stage)

    def _start(self, names: Sequence[str], role: Role) -> tuple[Sequence[Slot], Sequence[Slot]]:
        """Controllers of ours, made anew, and programs outside, which are there or will come."""
        inside = self.world.start([each for each in names if each not in self._outside], role)
        if self._stage is None:
            return inside, ()
        called = [each for each in self._spec.outside if each.name in names]
        return inside, [self._stage.enter(each, role) for each in called]

    def _gather(self, stage: Stage) -> None:
        """Nothing begins before all programs outside are there and know what exists."""
        if not stage.is_gathered():
            self._waits = True
            self._then(self._gather, stage)

    def _dismiss(self) -> None:
        """It is over: programs outside are answered whatever they still wait for.

        Also those that it did not call: who says that its loop is over waits for the end.
        """
        if self._stage is not None:
            self._stage.leave(self.scenario.name)

    def _fail(self, message: str) -> None:
        try:
            self._end(ScenarioPhase.FAILED, message)
        except ScenarioGoneError:
            self.stop()

    def _succeed(self) -> None:
        self._conclude(ScenarioPhase.SUCCEEDED, None)

    def _conclude(self, phase: ScenarioPhase, hearing: Hearing | None) -> None:
        """Look whether the expectations hold, piece by piece, then end.

        The author may change them meanwhile, or add to a scenario that is about to pause.
        """
        self._reread()
        if phase is ScenarioPhase.PAUSED and self._spec.next_major(self.scenario.step.major):
            self._then(self._next_step)
            return
        asked = self._spec.expectations
        if self._judge is not None and asked and (hearing is None or asked != self._heard):
            ending = Ending(str(phase), self.world.clock.now())
            hearing = self._judge(asked, self._recorder.log, ending)
        self._heard = asked
        if hearing is not None and hearing.go_on():
            self._then(self._conclude, phase, hearing)
            return
        self._tell_outcomes(() if hearing is None or not asked else hearing.outcomes)
        if phase is ScenarioPhase.SUCCEEDED:
            self._note_ignored()
        self._end(phase)

    def _tell_outcomes(self, outcomes: tuple[Outcome, ...]) -> None:
        self.scenario.expectations = outcomes
        if outcomes:
            self._recorder.record(ExpectationsEvaluated, ENGINE, outcomes=outcomes)

    def _note_ignored(self) -> None:
        """What stands after the done operation is never played, and its author shall know."""
        major = self.scenario.step.major
        ignored = ignored_operations(self._spec, major, self._played, is_over=True)
        if late := tuple(each.id for each in ignored):
            self._recorder.record(OperationsIgnored, ENGINE, operations=late)
        self.scenario.ignored = ignored

    def _end(self, phase: ScenarioPhase, message: str = "") -> None:
        self._tasks.clear()
        self.scenario.phase = phase
        if phase is ScenarioPhase.FAILED:
            self.scenario.expectations = ()
        self.scenario.message = message
        if self._stage is not None and self._outside:
            self.scenario.outside = self._stage.statuses()
        self._publish()
        self.scenario.write()
        self.world.guard(Frozen(self.scenario, self._outside))
        if phase.is_final:
            self._dismiss()
        for hook in self.world.instruments.run_ended:
            hook(str(phase), message)

    # -- one major step ------------------------------------------------------------------------

    def _next_step(self) -> None:
        self._reread()
        major = self._spec.next_major(self.scenario.step.major)
        if major is None:
            self._conclude(ScenarioPhase.PAUSED, None)
            return
        operations = self._spec.at(major)
        self._played.update((each.id, each) for each in operations)
        self._done_at.clear()
        self._writes = None
        self._then(self._finish_step, operations)
        for operation in reversed(operations):
            if operation.kind is OperationKind.ADVANCE:
                self._then(self._begin_advance, parse_duration(operation.body["duration"]))
        self._then(self._come_to_rest)
        self._then(self._operate, operations, 0, 0)
        self._enter(StepPhase.OPERATING, step=ScenarioStep(major, 0))
        for slot in self._slots():
            slot.begin_step()

    def _operate(self, operations: Sequence[Operation], index: int, instance: int) -> None:
        """Carry out one operation, of a counted create one instance."""
        if index == len(operations):
            return
        operation = operations[index]
        if operation.kind in NOTED_ONLY:
            self._note(operation)
        else:
            self._operations.run(operation, instance)
        if instance + 1 < operation.instances:
            self._then(self._operate, operations, index, instance + 1)
        else:
            self._then(self._operate, operations, index + 1, 0)

    def _note(self, operation: Operation) -> None:
        told = self._recorder
        tell = told.done if operation.kind is OperationKind.DONE else told.advanced
        tell(OperationOrigin.of(operation.id, operation.body))

    def _finish_step(self, operations: Sequence[Operation]) -> None:
        if any(operation.kind is OperationKind.DONE for operation in operations):
            self._then(self._succeed)
        else:
            self._then(self._next_step)
        if self.scenario.step_phase is not StepPhase.FINISHED:
            self._finish()
        for hook in self.world.instruments.step_finished:
            hook(self.scenario.step)

    def _finish(self) -> None:
        """Phase 8: what was recorded so far is shown."""
        self._publish()
        self._enter(StepPhase.FINISHED, controller="")

    # -- coming to rest --------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        """Phases 2 to 7: settle, then all simulation controllers until none has work left."""
        self._then(self._work, 0)
        self._then(self._settle, self._patience())

    def _patience(self) -> Patience:
        return self.world.crank.patience(self._spec.simulation.max_settle_rounds)

    def _settle(self, patience: Patience) -> None:
        """One round of the pre-simulation controllers, or what is due at this very instant."""
        if self._beside:
            self._settle_beside(patience)
        elif self.world.crank.round(self._presimulation, patience):
            self._then(self._settle, patience)

    def _settle_beside(self, patience: Patience) -> None:
        """The same beside programs outside, which have their turns when ours rest.

        While one is at it nobody else moves, so that what it finds does not depend on its pace.
        """
        busy = next((slot for slot in self._beside if slot.waits), None)
        if busy is None and self.world.crank.round(self._presimulation, patience):
            self._then(self._settle, patience)
            return
        slot = busy or next((slot for slot in self._beside if slot.awake), None)
        if slot is not None:
            self._then(self._settle, patience)
            progress = slot.turn()
            self._waits = progress.waits
            if not progress.waits:
                self._recorder.tell_net()
                patience.spend([slot.name], [slot.name] if progress.wrote else [])

    def _work(self, turns: int) -> None:
        """Give the first simulation controller that is not known to be done its turn."""
        slot = next(filter(self._may_have_work, self._simulation), None)
        if slot is None:
            return
        self._check_turns(turns + 1)
        self._then(self._work, turns + 1)
        self._then(self._loop, slot, None)
        self._enter(StepPhase.OPERATING_COMPLETED, controller=slot.name)
        self._enter(StepPhase.CONTROLLER_RUNNING)

    def _may_have_work(self, slot: Slot) -> bool:
        """Not known to be done: something it watches has changed since its last turn."""
        done_at = self._done_at.get(slot.name)
        return done_at is None or slot.awake or slot.changed_since(done_at)

    def _loop(self, slot: Slot, patience: Patience | None) -> None:
        """One loop of a simulation controller; None is patience that nobody has needed yet."""
        if not slot.waits:
            self._loop_counted = False
        progress = slot.turn()
        if progress.waits:
            self._waits = True
            self._then(self._loop, slot, patience)
        elif self._loop_counted:
            self._done_at.pop(slot.name, None)
            self._then(self._settle, self._patience())
        elif progress.more:
            patience = patience or self._patience()
            patience.spend([slot.name], [slot.name] if progress.wrote else [])
            self._then(self._loop, slot, patience)
        else:
            slot.awake = False
            self._done_at[slot.name] = self.world.revision
            # Conditions of failed attempts do not move the step, but others may want to react.
            self._then(self._enter, StepPhase.CONTROLLER_COMPLETED)
            self._then(self._settle, self._patience())

    def _check_turns(self, turns: int) -> None:
        """Failed attempts move no step: controllers could go on with their conditions forever."""
        limit = self._spec.simulation.max_minor_steps
        most = (limit + 1) * len(self._simulation)
        if self._writes is None and (turns > most // 2 or self.scenario.step.minor > limit // 2):
            # Who writes in the second half is who keeps writing.
            self._writes = Counter()
        if turns > most:
            raise ScenarioError(
                f"the controllers had {turns} turns, more than {limit} minor steps "
                f"(spec.simulation.maxMinorSteps) can cause; {self._busy_writers()}",
                where=f"step {self.scenario.step}",
            )

    def _busy_writers(self) -> str:
        writes = self._writes or Counter({self.scenario.controller: 1})
        return f"still writing: {', '.join(f'{name} ({n})' for name, n in writes.most_common())}"

    # -- letting time pass -------------------------------------------------------------------------

    def _begin_advance(self, duration: int) -> None:
        self._finish()
        self._advance(self.world.clock.now() + duration, self._patience())

    def _advance(self, deadline: int, patience: Patience) -> None:
        """Move to the next due instant, a small step of its own, minor steps continuing.

        ``patience`` is for the present instant: something may be due again and again.
        """
        queue = self.world.event_queue
        due = queue.peek()
        if due is None or due > deadline:
            self._move_time(deadline)
            return
        if due > self.world.clock.now():
            patience = self._patience()
        patience.spend((), ())
        self._then(self._advance, deadline, patience)
        self._move_time(due)
        revision = self.world.revision
        queue.run_due()
        if self.world.revision != revision or self._is_anybody_awake():
            self._then(self._finish)
            self._come_to_rest()
            self._enter(StepPhase.OPERATING, controller="")

    def _is_anybody_awake(self) -> bool:
        return any(slot.awake for slot in self._slots())

    def _slots(self) -> Iterator[Slot]:
        return chain(self._presimulation, self._beside, self._simulation)

    def _move_time(self, instant: int) -> None:
        self.world.clock.wait_until(instant)
        for hook in self.world.instruments.time_advanced:
            hook(instant)

    # -- telling -----------------------------------------------------------------------------------

    def _enter(
        self,
        phase: StepPhase,
        *,
        step: ScenarioStep | None = None,
        controller: str | None = None,
    ) -> None:
        scenario = self.scenario
        scenario.step_phase = phase
        if step is not None:
            scenario.step = step
        if controller is not None:
            scenario.controller = controller
        scenario.write()
        if hooks := self.world.instruments.phase_changed:
            change = StepPhaseChange(scenario.step, str(phase), scenario.controller)
            for hook in hooks:
                hook(change)

    def _publish(self) -> None:
        """Show what was recorded in ``status.scenarioResult``, if it is time for that."""
        if self._results.publishes(self.scenario.phase):
            self.scenario.timeline = self._view.until(len(self._recorder.log))

    # -- the gate ----------------------------------------------------------------------------------

    def role_of(self, actor: Actor) -> Role:
        if actor.role is USER and actor.name not in self._outside:
            # Somebody outside who calls himself like a controller of ours is not that one.
            return USER
        return self._roles.get(actor.name, actor.role)

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        role = self.role_of(actor)
        if self._writes is not None and role in (SIMULATION, PRESIMULATION):
            self._writes[actor.name] += 1
        if role is SIMULATION:
            if not self._loop_counted and is_significant(actor, resource_type.gvk, subresource):
                self._pause()
        elif role is USER:
            refuse_outsider(self.scenario, actor, resource_type, name)

    def _pause(self) -> None:
        self._loop_counted = True
        step = self.scenario.step.next_minor()
        limit = self._spec.simulation.max_minor_steps
        if step.minor > limit:
            raise ScenarioError(
                f"more than {limit} minor steps; {self._busy_writers()}; "
                "raise spec.simulation.maxMinorSteps if that is meant",
                where=f"step {step}",
            )
        self._enter(StepPhase.CONTROLLER_PAUSED, step=step)
