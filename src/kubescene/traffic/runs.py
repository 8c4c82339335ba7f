"""Running a TrafficRun: data in, data out.

`run` plays a world in slices of simulated time, so that somebody can watch it and stop it between
any two. A run that fails in the middle is a result too, with what was simulated so far.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubescene.autoscalers import Autoscaler, AutoscalerPlugin
from kubescene.autoscalers.dispatcher import Dispatcher, Partition
from kubescene.autoscalers.references import check_distinct, installed_autoscalers
from kubescene.clock import MINUTE, Streams
from kubescene.errors import AutoscalerError, ConfigurationError, KubesceneError, TrafficError
from kubescene.flows.arrivals import Arrivals
from kubescene.traffic.results import Phase, TrafficResult
from kubescene.traffic.spec.fields import Metadata, Mode, TrafficRun, TrafficSpec
from kubescene.traffic.spec.files import arrivals_of, fitting_memory, with_series
from kubescene.traffic.spec.loading import checked, load_run, run_of
from kubescene.traffic.spec.objects import autoscaler_of
from kubescene.traffic.world.environment import StoppedError
from kubescene.traffic.world.fixed import FixedWorld
from kubescene.traffic.world.worlds import TrafficWorld

SLICES = 200
"""Into so many slices, at least, a run is cut for those who watch it or may stop it."""


class TrafficProgress(NamedTuple):
    """How far a run is. Instants are in nanoseconds of simulated time."""

    now: int
    end: int
    requests: int
    active: int


Watcher = Callable[[TrafficProgress], object]
Cancelled = Callable[[], bool]
Source = TrafficRun | TrafficSpec | Mapping[str, Any] | str | Path


def run(
    source: Source,
    autoscalers: Sequence[AutoscalerPlugin] = (),
    *,
    folder: str | Path | None = None,
    watch: Watcher | None = None,
    cancelled: Cancelled | None = None,
    dispatcher: Dispatcher | None = None,
) -> TrafficResult:
    """Simulate a run: a file, a decoded object, a `TrafficRun` or its spec.

    ``autoscalers`` are used beside those that the spec has objects for: one that no object is
    meant for is created with an empty one. ``watch`` is told how far it is, and ``cancelled`` is
    asked whether to stop, with every movement and every batch of requests. Bad input raises
    `TrafficError` or `ConfigurationError` before anything is simulated; whatever fails later is
    in the result.
    """
    if folder is None and isinstance(source, str | Path):
        folder = Path(source).parent
    asked = with_series(as_run(source), None if folder is None else Path(folder))
    own = dispatcher is None
    dispatcher = available(asked.spec, autoscalers) if dispatcher is None else dispatcher
    try:
        arrivals = arrivals_of(asked.spec, None if folder is None else Path(folder))
        return simulated(asked, arrivals, dispatcher, autoscalers, watch=watch, cancelled=cancelled)
    finally:
        if own:
            dispatcher.close()


def simulated(
    asked: TrafficRun,
    arrivals: Arrivals,
    dispatcher: Dispatcher,
    autoscalers: Sequence[AutoscalerPlugin] = (),
    *,
    watch: Watcher | None = None,
    cancelled: Cancelled | None = None,
) -> TrafficResult:
    """The same for a run that has been checked, with its arrivals, which nobody has taken yet."""
    with fitting_memory():
        partition = partition_of(dispatcher, objects_of(asked.spec, autoscalers))
        world = world_of(asked.spec, partition, arrivals)
        try:
            return play(asked, world, watch=watch, cancelled=cancelled)
        finally:
            world.close()


def as_run(source: Source) -> TrafficRun:
    """Whatever describes a run, checked."""
    if isinstance(source, TrafficSpec):
        source = TrafficRun(metadata=Metadata(name="traffic"), spec=source)
    if isinstance(source, TrafficRun):
        return checked(source)
    return run_of(source) if isinstance(source, Mapping) else load_run(source)


def available(
    spec: TrafficSpec,
    autoscalers: Sequence[AutoscalerPlugin] = (),
    *,
    partitions: Iterator[int] | None = None,
) -> Dispatcher:
    """A dispatcher of the built-in autoscalers, those of installed packages, and these."""
    check_distinct(autoscalers)
    every = [*builtin_autoscalers(spec), *installed_autoscalers(), *autoscalers]
    return Dispatcher(every, partitions=partitions)


def builtin_autoscalers(spec: TrafficSpec) -> list[AutoscalerPlugin]:
    """HPA, VPA and the one by concurrency, as a run of this spec wants them."""
    # Imported when the first run needs them: reading and checking runs does not.
    from kubescene.autoscalers.concurrency import ConcurrencyPlugin
    from kubescene.autoscalers.horizontal.plugin import PLUGIN_OPTIONS, HorizontalPlugin
    from kubescene.autoscalers.vertical.options import UpdaterOptions
    from kubescene.autoscalers.vertical.plugin import VerticalPlugin

    gates = spec.feature_gates
    flags = spec.hpa_controller
    controller = replace(
        PLUGIN_OPTIONS,
        tolerance=flags.tolerance,
        downscale_stabilization=int(flags.downscale_stabilization),
        cpu_initialization_period=int(flags.cpu_initialization_period),
        initial_readiness_delay=int(flags.initial_readiness_delay),
        configurable_tolerance=gates.configurable_tolerance,
        scale_to_zero=gates.scale_to_zero,
    )
    updater = UpdaterOptions(in_place=gates.in_place)
    faithful = spec.mode is Mode.FAITHFUL
    # Faithful pods use 1 MiB; others have memory only where it is modelled.
    measured = ("cpu", "memory") if faithful or spec.replicas.memory is not None else ("cpu",)
    return [
        HorizontalPlugin(
            controller,
            faithful=faithful,
            stat_window=spec.stat_interval,
            resources=measured,
            external=[each.name for each in spec.metrics.external],
        ),
        VerticalPlugin(updater=updater, rule=spec.update_rule.value, faithful=faithful),
        ConcurrencyPlugin(rates=not faithful),
    ]


def objects_of(spec: TrafficSpec, autoscalers: Sequence[AutoscalerPlugin] = ()) -> list[Autoscaler]:
    """The objects of a run: those of its spec, and an empty one for each that has none."""
    objects = [autoscaler_of(each, index) for index, each in enumerate(spec.autoscalers)]
    taken = {each.type for each in objects}
    return objects + [
        Autoscaler(each.types[0])
        for each in autoscalers
        if each.types and not taken & set(each.types)
    ]


def partition_of(dispatcher: Dispatcher, objects: Sequence[Autoscaler]) -> Partition:
    try:
        return dispatcher.partition(objects)
    except ConfigurationError as error:
        raise TrafficError(str(error), path="spec.autoscalers") from error


def world_of(
    spec: TrafficSpec, partition: Partition, arrivals: Arrivals | None = None
) -> TrafficWorld:
    """A world that has not begun; its arrivals are those of the spec if none are given."""
    streams = Streams(spec.seed)
    arrivals = arrivals_of(spec) if arrivals is None else arrivals
    if spec.mode is Mode.FAITHFUL:
        from kubescene.traffic.faithful import FaithfulWorld  # the slower one, seldom asked for

        return FaithfulWorld(spec, partition, arrivals, streams)
    return FixedWorld(spec, partition, arrivals, streams)


def play(
    asked: TrafficRun,
    world: TrafficWorld,
    *,
    watch: Watcher | None = None,
    cancelled: Cancelled | None = None,
) -> TrafficResult:
    """Play a world to its end, or until it fails or is stopped."""
    halt = int(asked.spec.duration)
    phase, message, end = Phase.SUCCEEDED, "", halt
    if cancelled is not None:
        world.environment.stopped = cancelled
    try:
        with world.partition:
            try:
                begin(asked, world)
                for instant in slices(world, halt):
                    world.environment.check()
                    world.run_until(instant)
                    if watch is not None:
                        watch(progress_of(world))
            except StoppedError:
                phase, message, end = Phase.CANCELLED, "it was stopped from outside", world.stop()
            world.finish(end)
            world.partition.end(end)
    except AutoscalerError as error:
        phase, message, end = Phase.FAILED, str(error), world.now
        # What autoscalers say after one of them failed is no news.
        with suppress(AutoscalerError):
            world.finish(end)
    return TrafficResult(
        asked,
        phase=phase,
        message=message,
        end=end,
        requests=world.columns,
        replicas=world.replicas(),
        counts=world.counts,
        utilizations=world.utilizations,
        decisions=world.decisions,
        sizes=world.sizes,
        used=world.used,
        movements=world.log,
        cpu_used=world.cpu_used,
    )


def begin(asked: TrafficRun, world: TrafficWorld) -> None:
    """Begin; an object that its autoscaler refuses is bad input, not a run that failed."""
    try:
        world.begin()
    except AutoscalerError as error:
        if not isinstance(error.__cause__, KubesceneError):
            raise
        types = [autoscaler_of(each).type for each in asked.spec.autoscalers]
        path = "spec.autoscalers"
        if error.autoscaler in types:
            path += f"[{types.index(error.autoscaler)}]"
        raise TrafficError(str(error.__cause__), path=path) from error


def slices(world: TrafficWorld, halt: int) -> Iterator[int]:
    """Instants to pause at: at least every simulated minute in which something happens."""
    step = max(min(halt // SLICES, MINUTE), 1)
    while (due := world.peek()) is not None:
        yield -(-due // step) * step


def progress_of(world: TrafficWorld) -> TrafficProgress:
    active = world.counts[-1].active if world.counts else 0
    return TrafficProgress(
        min(world.now, world.spec.duration), world.spec.duration, world.columns.count, active
    )
