"""The phase machine: plays one scenario on one cluster.

A major step goes through the table of the Scenario API: operations, settle, then the simulation
controllers one loop at a time, each write followed by a settle, until all have nothing left to do.
Every change of phase is stored, and so visible to a watch, before its work starts. The engine is
also the registry's `WriteGate`: it moves the minor step just before a simulation controller's
first write of a loop, and turns outsiders away while a scenario runs.
"""

from collections.abc import Sequence

import orjson

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.kinds import SCENARIO
from kubescene.api.options import OperationOrigin
from kubescene.api.records import Record
from kubescene.api.scheme import ResourceType
from kubescene.clock import ScenarioStep, parse_duration
from kubescene.cluster import Cluster
from kubescene.control.loops import Controller, begin_step
from kubescene.control.settling import LivelockError, settle
from kubescene.errors import ForbiddenError, KubesceneError, ScenarioError
from kubescene.scenario.checking import check_controllers
from kubescene.scenario.operations import OperationRunner
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase, StepPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec, parse_spec
from kubescene.timeline import StepPhaseChange, TimelineRecorder
from kubescene.timeline.significance import is_significant
from kubescene.types import JsonObject


class Engine:
    """Plays the scenario behind a stored record."""

    def __init__(
        self,
        cluster: Cluster,
        record: Record,
        recorder: TimelineRecorder,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
    ) -> None:
        self._results = results
        self.cluster = cluster
        self._recorder = recorder
        self.resource = ScenarioResource(cluster.store, record)
        self._scenario = cluster.store.decoded(record)
        self._spec = ScenarioSpec(())
        self._operations = OperationRunner(cluster.client(ENGINE), cluster.scheme)
        self._simulation: Sequence[Controller] = ()
        self._presimulation: Sequence[Controller] = ()
        self._roles: dict[str, Role] = {}
        self._loop_counted = False
        self.bad_input = False

    # -- the life of a scenario ------------------------------------------------------------

    def run(self) -> ScenarioPhase:
        """Play to the end. Never raises for what the scenario did wrong: that is ``Failed``."""
        try:
            self._spec = parse_spec(self._scenario)
            check_controllers(self._spec, self.cluster.registrations)
        except ScenarioError as error:
            self.bad_input = True
            return self._end(ScenarioPhase.FAILED, str(error))
        self._begin()
        try:
            for major in self._spec.majors():
                if self._play_step(major):
                    return self._end(ScenarioPhase.SUCCEEDED)
        except KubesceneError as error:
            return self._end(ScenarioPhase.FAILED, str(error))
        except Exception as error:
            # A bug, not a fault of the scenario: told, and then shown in full.
            self._end(ScenarioPhase.FAILED, f"internal error: {error!r}")
            raise
        finally:
            self.cluster.registry.gate = _Frozen(self.resource)
        return self._end(ScenarioPhase.PAUSED)

    def result(self) -> JsonObject:
        """The Scenario with its status, free of anything that differs between equal runs."""
        obj: JsonObject = orjson.loads(self.resource.data)
        return obj

    def _begin(self) -> None:
        cluster = self.cluster
        cluster.begin_anew()
        cluster.registry.gate = self
        names = self._spec.presimulation_controllers(list(cluster.registrations))
        simulated = self._spec.simulation_controllers
        self._roles = dict.fromkeys(names, Role.PRESIMULATION)
        self._roles |= dict.fromkeys(simulated, Role.SIMULATION)
        self._presimulation = cluster.start(names, Role.PRESIMULATION)
        self._simulation = cluster.start(simulated, Role.SIMULATION)
        self.resource.phase = ScenarioPhase.RUNNING
        self.resource.write()

    def _end(self, phase: ScenarioPhase, message: str = "") -> ScenarioPhase:
        self.resource.phase = phase
        self.resource.message = message
        self._publish()
        self.resource.write()
        for hook in self.cluster.instruments.run_ended:
            hook(str(phase), message)
        return phase

    # -- one major step --------------------------------------------------------------------

    def _play_step(self, major: int) -> bool:
        """Returns whether the step held a done operation."""
        self._enter(StepPhase.OPERATING, step=ScenarioStep(major, 0))
        begin_step((*self._presimulation, *self._simulation))
        operations = self._spec.at(major)
        for operation in operations:
            self._operate(operation)
        self._settle()
        self._work()
        for operation in operations:
            if operation.kind is OperationKind.ADVANCE:
                self._advance(operation)
        self._publish()
        self._enter(StepPhase.FINISHED, controller="")
        for hook in self.cluster.instruments.step_finished:
            hook(self.resource.step)
        return any(operation.kind is OperationKind.DONE for operation in operations)

    def _operate(self, operation: Operation) -> None:
        if operation.kind in (OperationKind.DONE, OperationKind.ADVANCE):
            self._recorder.record(
                operation.kind.value,
                {"operation": operation.body},
                actor=ENGINE,
                origin=OperationOrigin(operation.id, operation.body),
            )
        else:
            self._operations.run(operation)

    def _advance(self, operation: Operation) -> None:
        """Let time pass: every due instant is a small step of its own, minor steps continuing."""
        clock, events = self.cluster.clock, self.cluster.event_queue
        deadline = clock.now() + parse_duration(operation.body["duration"])
        while (due := events.peek()) is not None and due <= deadline:
            self._move_time(due)
            self._enter(StepPhase.OPERATING, controller="")
            events.run_due()
            self._settle()
            self._work()
        self._move_time(deadline)

    def _move_time(self, instant: int) -> None:
        self.cluster.clock.wait_until(instant)
        for hook in self.cluster.instruments.time_advanced:
            hook(instant)

    def _work(self) -> None:
        """Phases 3 to 7: until every simulation controller has nothing left to do."""
        turn = turns = 0
        while turn < len(self._simulation):
            controller = self._simulation[turn]
            self._check_turns(turns := turns + 1)
            self._enter(StepPhase.OPERATING_COMPLETED, controller=controller.name)
            self._enter(StepPhase.CONTROLLER_RUNNING)
            turn = 0 if self._run_controller(controller) else turn + 1

    def _check_turns(self, turns: int) -> None:
        """Failed attempts move no step: controllers could go on with their conditions forever."""
        limit = self._spec.simulation.max_minor_steps
        if turns > (limit + 1) * len(self._simulation):
            raise ScenarioError(
                f"the controllers had {turns} turns, more than {limit} minor steps can cause: "
                f"{self.resource.controller} and those that react to it keep writing",
                where=f"step {self.resource.step}",
            )

    def _run_controller(self, controller: Controller) -> bool:
        """One turn. True if it (or the settling it caused) wrote: then all may have work again."""
        self._loop_counted = False
        revision = self.cluster.store.revision
        while True:
            progress = controller.run_once()
            if self._loop_counted:
                self._settle()
                return True
            if not progress.more:
                break
        # Conditions of failed attempts do not move the step, but others may want to react.
        if self.cluster.store.revision != revision and self._settle():
            return True
        self._enter(StepPhase.CONTROLLER_COMPLETED)
        return False

    def _settle(self) -> bool:
        """Run the pre-simulation controllers to rest, with what falls due at this very instant."""
        limit = self._spec.simulation.max_settle_rounds
        wrote = self._settle_once(limit)
        passes = 0
        while self.cluster.event_queue.run_due():
            passes += 1
            if passes > limit:
                raise LivelockError(f"something is due again and again after {limit} passes")
            wrote = self._settle_once(limit) or wrote
        return wrote

    def _settle_once(self, limit: int) -> bool:
        return settle(self._presimulation, limit, objects=lambda: self.cluster.object_count)

    def _enter(
        self,
        phase: StepPhase,
        *,
        step: ScenarioStep | None = None,
        controller: str | None = None,
    ) -> None:
        resource = self.resource
        resource.step_phase = phase
        if step is not None:
            resource.step = step
        if controller is not None:
            resource.controller = controller
        resource.write()
        for hook in self.cluster.instruments.phase_changed:
            hook(StepPhaseChange(resource.step, str(phase), resource.controller))

    def _publish(self) -> None:
        """Move what was recorded into ``status.scenarioResult``, if it is time for that."""
        if self._results.publishes(self.resource.phase):
            for major, events in self._recorder.take():
                self.resource.add_result(major, events)

    # -- the gate --------------------------------------------------------------------------

    def role_of(self, actor: Actor) -> Role:
        return self._roles.get(actor.name, actor.role)

    def before_write(self, actor: Actor, resource_type: ResourceType, subresource: str) -> None:
        role = self.role_of(actor)
        if role is Role.SIMULATION:
            if not self._loop_counted and is_significant(actor, resource_type.gvk, subresource):
                self._pause()
        elif role is Role.USER:
            refuse_outsider(self.resource, actor, resource_type)

    def _pause(self) -> None:
        self._loop_counted = True
        step = self.resource.step.next_minor()
        limit = self._spec.simulation.max_minor_steps
        if step.minor > limit:
            raise ScenarioError(
                f"more than {limit} minor steps: {self.resource.controller} keeps writing; "
                "raise spec.simulation.maxMinorSteps if that is meant",
                where=f"step {step}",
            )
        self._enter(StepPhase.CONTROLLER_PAUSED, step=step)


class _Frozen:
    """The gate after a run: a paused scenario still keeps outsiders away."""

    def __init__(self, resource: ScenarioResource) -> None:
        self._resource = resource

    def role_of(self, actor: Actor) -> Role:
        return actor.role

    def before_write(self, actor: Actor, resource_type: ResourceType, subresource: str) -> None:
        del subresource
        if actor.role is Role.USER and self._resource.phase is ScenarioPhase.PAUSED:
            refuse_outsider(self._resource, actor, resource_type)


def refuse_outsider(resource: ScenarioResource, actor: Actor, resource_type: ResourceType) -> None:
    """While a scenario runs only Scenarios themselves may be written by anybody else."""
    if resource_type.gvk == SCENARIO:
        return
    raise ForbiddenError(
        f'{resource_type.named_resource} is forbidden: scenario "{resource.name}" is '
        f"{resource.phase}, and {actor.name} is not one of its controllers; "
        "wait until it ends or delete it",
        group=resource_type.gvk.group,
        kind=resource_type.plural,
    )
