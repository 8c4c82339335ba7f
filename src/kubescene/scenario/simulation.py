"""``spec.simulation``: our extensions to the KEP, and what is wrong with them in plain words."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import Struct

from kubescene.clock import parse_duration, parse_time
from kubescene.controllers.builtin.autoscaling.flags import DEFAULTS as AUTOSCALING
from kubescene.controllers.builtin.autoscaling.flags import (
    AutoscalingSettings,
    read_horizontal,
    read_vertical,
)
from kubescene.controllers.kubelet import NO_DELAYS, KubeletDelays
from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour, read_workload
from kubescene.errors import ConfigurationError, ScenarioError, SchedulerConfigurationError
from kubescene.karpenter.flags import KarpenterFlags, read_karpenter_flags
from kubescene.node_autoscaling.flags import AutoscalerSettings, read_settings
from kubescene.scheduler import SchedulerOptions, configuration
from kubescene.scheduler.framework.explain import Explain
from kubescene.types import ReadOnlyObject

MAX_MINOR_STEPS = 1_000_000
MAX_SETTLE_ROUNDS = 10_000
FIELDS = (
    "seed",
    "snapshot",
    "startTime",
    "explain",
    "annotations",
    "schedulerConfig",
    "kubelet",
    "workloads",
    "clusterAutoscaler",
    "karpenter",
    "horizontalPodAutoscaler",
    "verticalPodAutoscaler",
    "maxMinorSteps",
    "maxSettleRounds",
)
DELAYS = ("startDelay", "readyDelay", "terminateDelay")
SERIAL_PULLS = "serializeImagePulls"
KUBELET_FIELDS = (*DELAYS, SERIAL_PULLS)
WHERE = "spec.simulation"
SCHEDULER_CONFIG = f"{WHERE}.schedulerConfig"
FIELD = re.compile(r'(?:strict decoding error: )?(?:unknown field ")?([A-Za-z][\w.\[\]]*)(?:: |")')
"""The field with which a complaint begins."""
STEP = re.compile(r"[^.\[\]]+")
T = TypeVar("T")


class Simulation(Struct, frozen=True):
    """How a scenario is played; the defaults are those of a plain run."""

    seed: int = 0
    snapshot: str = ""
    """The file, beside the scenario, with the objects that are there when it begins."""
    start: int | None = None
    explain: Explain = Explain.AUTO
    max_minor_steps: int = MAX_MINOR_STEPS
    max_settle_rounds: int = MAX_SETTLE_ROUNDS
    kubelet: KubeletDelays = NO_DELAYS
    workloads: tuple[WorkloadBehaviour, ...] = ()
    autoscaler: AutoscalerSettings | None = None
    karpenter: KarpenterFlags | None = None
    autoscaling: AutoscalingSettings = AUTOSCALING
    annotations: bool = False
    scheduler_config: ReadOnlyObject | None = None
    """A KubeSchedulerConfiguration without faults of its own; which plugins exist is not asked."""

    def scheduler_options(self, base: SchedulerOptions) -> SchedulerOptions:
        """The scheduler that the scenario asks for, unless ``base`` is configured already."""
        if self.annotations:
            base = replace(base, annotations=True)
        if self.scheduler_config is None or base.configuration is not None:
            return base
        try:
            return configuration.read_configuration(
                self.scheduler_config, base, source=SCHEDULER_CONFIG
            )
        except SchedulerConfigurationError as error:
            raise _bad_config(error) from error


def parse_simulation(value: Any) -> Simulation:
    """Read ``spec.simulation``; unknown members are a fault, since they would do nothing."""
    given = check_members(value, FIELDS, WHERE)
    delays = check_members(given.get("kubelet"), KUBELET_FIELDS, f"{WHERE}.kubelet")
    start, ready, terminate = (_delay(delays, name) for name in DELAYS)
    return Simulation(
        seed=_whole(given, "seed", 0, least=None),
        snapshot=_text(given, "snapshot"),
        start=_start(given.get("startTime")),
        explain=_explain(given.get("explain", Explain.AUTO)),
        annotations=_flag(given, "annotations"),
        scheduler_config=_scheduler_config(given.get("schedulerConfig")),
        max_minor_steps=_whole(given, "maxMinorSteps", MAX_MINOR_STEPS, least=1),
        max_settle_rounds=_whole(given, "maxSettleRounds", MAX_SETTLE_ROUNDS, least=1),
        kubelet=KubeletDelays(
            start, ready, terminate, serial_pulls=_flag(delays, SERIAL_PULLS, "kubelet")
        ),
        workloads=_workloads(given.get("workloads")),
        autoscaler=_flags(given, "clusterAutoscaler", read_settings, None),
        karpenter=_flags(given, "karpenter", read_karpenter_flags, None),
        autoscaling=AutoscalingSettings(
            _flags(given, "horizontalPodAutoscaler", read_horizontal, AUTOSCALING.horizontal),
            _flags(given, "verticalPodAutoscaler", read_vertical, AUTOSCALING.vertical),
        ),
    )


def simulation_faults(value: Any) -> Iterator[ScenarioError]:
    """All that is wrong with ``spec.simulation``: each member is read by itself."""
    given = value if isinstance(value, Mapping) else {}
    delays = given.get("kubelet")
    parts: list[Any] = [{name: part} for name, part in given.items() if name != "kubelet"]
    if isinstance(delays, Mapping):
        parts += ({"kubelet": {name: delay}} for name, delay in delays.items())
    for part in parts:
        try:
            parse_simulation(part)
        except ScenarioError as error:
            yield error


def check_members(given: Any, allowed: Collection[str], where: str) -> Mapping[str, Any]:
    """An object that has no other members than these; a misspelt one is named."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ScenarioError("must be an object", where=where)
    if unknown := sorted(str(name) for name in given if name not in allowed):
        raise ScenarioError(
            f"unknown fields: {', '.join(unknown)}; known are: {', '.join(allowed)}", where=where
        )
    return {name: value for name, value in given.items() if value is not None}


def _whole(given: Mapping[str, Any], name: str, default: int, *, least: int | None) -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or (least and value < least):
        bound = f" of at least {least}" if least else ""
        raise ScenarioError(f"{name} must be a whole number{bound}, not {value!r}", where=WHERE)
    return value


def _flag(given: Mapping[str, Any], name: str, of: str = "") -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        where = f"{WHERE}.{of}" if of else WHERE
        raise ScenarioError(f"{name} must be true or false, not {value!r}", where=where)
    return value


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise ScenarioError(f"{name} must be text, not {value!r}", where=WHERE)
    return value


def _start(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return parse_time(str(value))
    except ValueError as error:
        where = f"{WHERE}.startTime"
        raise ScenarioError(str(error), where=where, path=tuple(where.split("."))) from error


def _explain(value: Any) -> Explain:
    try:
        return Explain(value)
    except ValueError:
        choices = ", ".join(Explain)
        raise ScenarioError(
            f"explain must be one of {choices}, not {value!r}", where=WHERE
        ) from None


def _scheduler_config(value: Any) -> ReadOnlyObject | None:
    if value is None:
        return None
    try:
        configuration.check_configuration(value)
    except SchedulerConfigurationError as error:
        raise _bad_config(error) from error
    config: ReadOnlyObject = value
    return config


def _bad_config(error: SchedulerConfigurationError) -> ScenarioError:
    where = SCHEDULER_CONFIG
    text = str(error.of(where)).removeprefix(f"{where}: ")
    path = ("spec", "simulation", "schedulerConfig", *_steps_in(text))
    return ScenarioError(text, where=where, path=path)


def _steps_in(text: str) -> Iterator[str | int]:
    """The way inside a configuration that a complaint names: ``profiles[0].schedulerName: ...``."""
    named = FIELD.match(text)
    for step in STEP.findall(named[1] if named else ""):
        yield int(step) if step.isdecimal() else step


def _workloads(value: Any) -> tuple[WorkloadBehaviour, ...]:
    if value is None:
        return ()
    where = f"{WHERE}.workloads"
    if not isinstance(value, list | tuple):
        raise ScenarioError("must be a list", where=where, path=tuple(where.split(".")))
    return tuple(_workload(each, number) for number, each in enumerate(value))


def _flags(
    given: Mapping[str, Any],
    name: str,
    read: Callable[[Mapping[str, object], str], T],
    default: T | None,
) -> Any:
    """What flags of a program say, by their own names."""
    value, where = given.get(name), f"{WHERE}.{name}"
    if value is None:
        return default
    path = tuple(where.split("."))
    if not isinstance(value, Mapping):
        raise ScenarioError("must be an object: flags by their names", where=where, path=path)
    try:
        return read(value, where)
    except ConfigurationError as error:
        raise ScenarioError(str(error).removeprefix(f"{where}: "), where=where, path=path) from None


def _workload(value: Any, number: int) -> WorkloadBehaviour:
    try:
        return read_workload(value)
    except ValueError as error:
        path = ("spec", "simulation", "workloads", number, *_steps_in(str(error)))
        raise ScenarioError(str(error), where=f"{WHERE}.workloads[{number}]", path=path) from error


def _delay(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name, "0")
    try:
        return parse_duration(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        where = f"{WHERE}.kubelet.{name}"
        raise ScenarioError(str(error), where=where, path=tuple(where.split("."))) from error
