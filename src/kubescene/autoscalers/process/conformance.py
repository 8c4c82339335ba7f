"""A small conversation with a plugin, to see whether it keeps to what hosts expect of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.autoscalers.interfaces import (
    HPA_TYPES,
    VPA_TYPES,
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    MetricType,
    Pod,
    PodState,
    Stat,
    StatRequest,
    VerticalRecommendationRequest,
)
from kubescene.autoscalers.process.host import ProcessAutoscaler
from kubescene.clock import SECOND
from kubescene.errors import KubesceneError

_PODS = ("web-0", "web-1")
_TARGET = {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"}
_CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}


class Check(NamedTuple):
    """One thing that was looked at. ``passed`` is None where it does not apply."""

    name: str
    passed: bool | None
    told: str = ""


class Conversation:
    """Everything that is looked at, in this order; what fails does not stop the rest."""

    def __init__(self, plugin: ProcessAutoscaler, yaml: str = "") -> None:
        self._plugin = plugin
        self._object = Autoscaler(plugin.types[0], yaml or sample(plugin.types[0]))
        self._checks: list[Check] = []

    def play(self) -> list[Check]:
        self._describe()
        answers = [self._run("check-1"), self._run("check-2")]
        self._note(
            "two runs that are told the same get the same",
            lambda: expect(answers[0] == answers[1], f"{answers[0]} and {answers[1]}"),
        )
        self._note("a run that is over is forgotten", lambda: self._begin_and_end("check-1"))
        self._note("it ends when it is told to", self._end)
        return self._checks

    def _describe(self) -> None:
        address = self._plugin.connection.child.address
        self._note("handshake", lambda: f"{address.network} {address.address}" if address else "")
        self._note(
            "health of service 'plugin'",
            lambda: expect(self._plugin.connection.has_health(), "no grpc.health.v1.Health"),
        )
        self._note("type", lambda: ", ".join(self._plugin.types))
        able = sorted(self._plugin.capabilities)
        self._note("capabilities", lambda: ", ".join(each.name for each in able))

    def _run(self, partition: str) -> list[Any]:
        """The answers of one run."""
        self._event(partition, 0, EventType.CREATE, self._object)
        for name in _PODS:
            self._event(partition, 0, EventType.CREATE, pod(name, PodState.LAUNCHING, 0))
            self._event(partition, 5, EventType.UPDATE, pod(name, PodState.ACTIVE, 5))
        stats = tuple(
            Stat(300 * SECOND, name, metric, value)
            for name in _PODS
            for metric, value in (
                (MetricType.CPU_MILLIS, 900),
                (MetricType.CONCURRENT_REQUESTS_MILLIS, 4000),
            )
        )
        plugin, now = self._plugin, 305 * SECOND
        self._can(Capability.STAT, "Stat", lambda: plugin.stat(StatRequest(partition, stats)))
        answers = [
            self._can(
                Capability.HORIZONTAL_RECOMMENDATION,
                "HorizontalRecommendation",
                lambda: horizontal(plugin, partition, now),
            ),
            self._can(
                Capability.VERTICAL_RECOMMENDATION,
                "VerticalRecommendation",
                lambda: vertical(plugin, partition, now),
            ),
        ]
        self._event(partition, 310, EventType.DELETE, Pod(_PODS[1]))
        self._event(partition, 320, EventType.DELETE, self._object)
        return answers

    def _begin_and_end(self, partition: str) -> None:
        for kind in (EventType.CREATE, EventType.DELETE):
            self._plugin.event(EventRequest(partition, 0, kind, self._object))

    def _end(self) -> str:
        child = self._plugin.connection.child
        self._plugin.close()
        told = child.exit_told()
        ended = ("exited with code 0", "was ended by SIGTERM")
        return expect(told in ended, f"it {told}") or told

    def _event(self, partition: str, at_s: int, kind: EventType, object: Autoscaler | Pod) -> None:
        request = EventRequest(partition, at_s * SECOND, kind, object)
        name = f"{kind.name} {type(object).__name__}"
        self._can(Capability.EVENT, name, lambda: self._plugin.event(request))

    def _can(self, capability: Capability, name: str, look: Callable[[], Any]) -> Any:
        if capability in self._plugin.capabilities:
            return self._note(name, look)
        self._add(Check(name, None, f"it has not the capability {capability.name}"))
        return None

    def _note(self, name: str, look: Callable[[], Any]) -> Any:
        try:
            found = look()
        except (KubesceneError, UnexpectedError) as error:
            self._add(Check(name, False, str(error)))
            return None
        self._add(Check(name, True, "" if found is None else str(found)))
        return found

    def _add(self, check: Check) -> None:
        """Once for each thing: of two that failed or passed alike the first is shown."""
        if all(each.name != check.name or each.passed != check.passed for each in self._checks):
            self._checks.append(check)


class UnexpectedError(Exception):
    """Something is not as it should be."""


def expect(holds: bool, told: str) -> str:
    if not holds:
        raise UnexpectedError(told)
    return ""


def pod(name: str, state: PodState, at_s: int) -> Pod:
    return Pod(name, state, at_s * SECOND, 1000)


def horizontal(plugin: AutoscalerPlugin, partition: str, now: int) -> str:
    answer = plugin.horizontal_recommendation(HorizontalRecommendationRequest(partition, now))
    return f"{answer.rec} pods{': ' + answer.reason if answer.reason else ''}"


def vertical(plugin: AutoscalerPlugin, partition: str, now: int) -> str:
    answer = plugin.vertical_recommendation(VerticalRecommendationRequest(partition, now))
    return ", ".join(
        f"{each.resource_name} {each.lower_bound} <= {each.target} <= {each.upper_bound}"
        for each in answer.rec
    )


def sample(kind: str) -> str:
    """An object that an autoscaler of this type takes, where we know one."""
    if kind in HPA_TYPES:
        metric = {"type": "Resource", "resource": _CPU}
        spec: dict[str, Any] = {"scaleTargetRef": _TARGET, "minReplicas": 1, "maxReplicas": 10}
        version = f"autoscaling/{kind.split('.')[1]}"
        if version == "autoscaling/v1":
            spec["targetCPUUtilizationPercentage"] = 50
        else:
            spec["metrics"] = [metric]
        return dump_yaml(named(version, "HorizontalPodAutoscaler", "hpa", spec))
    if kind in VPA_TYPES:
        version = f"autoscaling.k8s.io/{kind.split('.')[1]}"
        return dump_yaml(
            # Skenario's plugin knows only this name.
            named(version, "VerticalPodAutoscaler", "my-app-vpa", {"targetRef": _TARGET})
        )
    return ""


def named(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def check(
    command: str, yaml: str = "", *, start_s: float = 60.0, call_s: float = 30.0
) -> list[Check]:
    """Play the conversation; raises `AutoscalerError` if the command is no plugin that runs."""
    plugin = ProcessAutoscaler(command, start_s=start_s, call_s=call_s)
    try:
        return Conversation(plugin, yaml).play()
    finally:
        plugin.close()
