"""What would B's scheduler have done in A's cluster? For pods that merely seem to follow.

After two runs have parted, their clusters differ, and a pod may go elsewhere for that alone, or
because of the other scheduler, or for both. So run A is played again up to the moment before each
of these pods is bound, and B's scheduler is asked about it in a copy of that world. A's own
scheduler is asked as well: if it does not say what it did, the copy is not the same question, and
nothing is told.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from kubescene.cli.components import controllers_named, scheduler_with
from kubescene.cli.replaying import PlayedWith, scenario_of
from kubescene.cluster import ClusterWorld
from kubescene.remedies.search import scheduler_of
from kubescene.remedies.trials import Trials
from kubescene.results.comparison import Cause, Comparison, PlacedPod
from kubescene.runs.requests import RunRequest
from kubescene.runs.staging import cluster_options, stage
from kubescene.scenario.phases import StepPhase
from kubescene.scheduler import SchedulerOptions

MOST = 20
"""So many pods are asked about: each costs copies of the world."""


def with_opinions(found: Comparison, a: Path, b: Path, given: PlayedWith) -> Comparison:
    """A comparison that says of pods that follow what B's scheduler does with them in A."""
    asked = [each for each in found.placed if each.cause is Cause.CONSEQUENCE and each.node_in_a]
    if not asked:
        return found
    scheduler = schedulers_of(given)
    theirs = cluster_options(scenario_of(b), None, scheduler).scheduler
    request = RunRequest(
        scenario=scenario_of(a),
        scheduler=scheduler,
        reconcilers=controllers_named(given.controllers),
        folder=given.folder,
    )
    opinions = dict(ask(request, theirs, asked[:MOST]))
    placed = (
        msgspec.structs.replace(each, opinion=opinions.get((each.pod, each.step_in_a)))
        for each in found.placed
    )
    return msgspec.structs.replace(found, placed=tuple(placed))


def schedulers_of(given: PlayedWith) -> SchedulerOptions:
    """The default scheduler, with plugins at hand that a configuration may name."""
    options = scheduler_with(given.plugins, None, given.feature_gates)
    return replace(SchedulerOptions(feature_gates=options.feature_gates), plugins=options.plugins)


def ask(
    request: RunRequest, theirs: SchedulerOptions, pods: Iterable[PlacedPod]
) -> Iterator[tuple[tuple[str, str], str]]:
    """By pod and step, the node that the other scheduler takes; empty if it finds none."""
    wanted = {each.step_in_a: each for each in pods}
    run = stage(replace(request, shortcuts=request.shortcuts.one_by_one()))
    for moment in run.play():
        if moment.phase is not StepPhase.CONTROLLER_RUNNING:
            continue
        pod = wanted.get(str(moment.step.next_minor()))
        if pod is not None and (node := opinion(run.cluster, theirs, pod)) is not None:
            yield (pod.pod, pod.step_in_a), node


def opinion(cluster: ClusterWorld, theirs: SchedulerOptions, pod: PlacedPod) -> str | None:
    """What the other scheduler says now; None if A's own does not say what it did."""
    namespace, _, name = pod.pod.partition("/")
    world = cluster.fork()
    found = world.get("Pod", name, namespace)
    own = scheduler_of(world)
    start = own.start_index.index
    if Trials(own, found, 1).place() != pod.node_in_a:
        return None
    world.configure_scheduler(theirs)
    other = scheduler_of(world)
    other.start_index.index = start
    return Trials(other, found, 1).place()
