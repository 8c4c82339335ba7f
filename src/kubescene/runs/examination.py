"""What is said of a scenario before it is played, and of its result in the end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import ScenarioError
from kubescene.scenario.expectations import Ending, Evaluation, Expectation
from kubescene.scenario.spec import ScenarioSpec
from kubescene.scenario.validation.faults import Fault, is_of_unknown_kind
from kubescene.scenario.validation.registered import check_schedulers
from kubescene.scenario.validation.scenarios import tolerated
from kubescene.scenario.validation.unsimulated import Players, undone, unsimulated
from kubescene.scheduler import SchedulerOptions
from kubescene.timeline import TimelineLog
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource
    from kubescene.results.measures.own import OwnFunction


@dataclass(slots=True, kw_only=True)
class Examination:
    """What the engine asks before anything is touched: who will be there, and how strict it is.

    ``own`` are measures that only a run of this process can have. ``restores`` says whether the
    world will hold the objects of a snapshot. With ``thorough``, objects that
    the API would refuse in any world are faults, too, instead of failures when their turn comes.
    """

    controllers: ControllerRegistrations
    scheduler: SchedulerOptions
    strict: bool = False
    thorough: bool = False
    restores: bool = False
    own: "Sequence[OwnFunction]" = ()
    autoscalers: "Sequence[PluginSource]" = ()

    def __call__(self, scenario: JsonObject, spec: ScenarioSpec) -> list[str]:
        """What a scenario says in vain, as warnings; raises `ScenarioError` if that is a fault.

        So are expectations that cannot be looked at in the end.
        """
        if spec.simulation.snapshot and not self.restores:
            raise ScenarioError(
                "a server reads no files that a scenario names: give it the cluster with "
                "`kubescene serve --from FILE`, or play the scenario with `kubescene run`",
                where="spec.simulation.snapshot",
                path=("spec", "simulation", "snapshot"),
            )
        controllers, scheduler = self.controllers, self.scheduler
        for fault in expectation_faults(spec.expectations, self.own):
            raise fault.error
        check_schedulers(spec, controllers, (each.scheduler_name for each in scheduler.profiles))
        if self.thorough:
            for fault in refused_objects(spec):
                raise fault.error
        if self.strict:
            players = Players.of(spec, controllers, scheduler, self.autoscalers)
            for each in unsimulated(spec, players):
                raise each.error
        return remarks(
            scenario,
            spec,
            controllers=controllers,
            scheduler=scheduler,
            autoscalers=self.autoscalers,
        )


def refused_objects(spec: ScenarioSpec) -> Iterator[Fault]:
    """Objects that would be refused whatever happens; a kind may still come that nobody knows."""
    from kubescene.scenario.validation.objects import object_faults

    for fault in object_faults(spec, is_whole=False):
        if not is_of_unknown_kind(fault):
            yield fault


def remarks(
    scenario: JsonObject,
    spec: ScenarioSpec,
    *,
    controllers: ControllerRegistrations,
    scheduler: SchedulerOptions,
    autoscalers: "Sequence[PluginSource]" = (),
) -> list[str]:
    """What a scenario says in vain, and what nobody does who was left out."""
    unknown = [str(fault.error) for fault in tolerated(scenario)]
    players = Players.of(spec, controllers, scheduler, autoscalers)
    missing = undone(name for name in controllers.left_out if not players.has(name))
    return [*unknown, *missing, *map(str, unsimulated(spec, players))]


def check_measures(own: "Sequence[OwnFunction]") -> None:
    """Raise `ConfigurationError` for what cannot be a measure, or has the name of one."""
    if own:
        from kubescene.results.expectations.variables import types_with

        types_with(own)


def expectation_faults(
    expectations: tuple[Expectation, ...], own: "Sequence[OwnFunction]" = ()
) -> list[Fault]:
    """What is wrong with expressions, found before a scenario is played."""
    if not expectations:
        return []
    # The expression language and the tables are loaded by those only who expect something.
    from kubescene.results.expectations import faults_of

    return list(faults_of(expectations, own))


def evaluation(
    expectations: tuple[Expectation, ...],
    log: TimelineLog,
    ending: Ending,
    own: "Sequence[OwnFunction]" = (),
) -> Evaluation:
    """The judge of the engine; ``own`` are measures that only a run of this process can have."""
    from kubescene.results.expectations import ResultEvaluation

    return ResultEvaluation(expectations, log, ending, own)
