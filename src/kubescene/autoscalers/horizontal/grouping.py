"""Which pods count: ready ones do, others are unready, lack a metric, or are on their way out."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from kubescene.autoscalers.horizontal.observing import ScaledPod
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.types import Nanoseconds

CPU = "cpu"


class Sample(NamedTuple):
    """One pod's value, and the time and span in which it was measured."""

    value: int
    timestamp: Nanoseconds
    window: Nanoseconds


class Groups(Struct, frozen=True):
    """How many pods are ready, and the names of the others."""

    ready: int
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def group_pods(
    pods: Iterable[ScaledPod],
    samples: Mapping[str, Sample],
    *,
    resource: str,
    options: HorizontalOptions,
    now: Nanoseconds,
) -> Groups:
    """Whether a pod is ready is asked for cpu only: other usage does not peak while it starts."""
    ready, unready, missing, ignored = 0, [], [], []
    by_readiness = resource == CPU
    for pod in pods:
        if pod.deleting or pod.phase == "Failed":
            ignored.append(pod.name)
        elif pod.phase == "Pending":
            unready.append(pod.name)
        elif (sample := samples.get(pod.name)) is None:
            missing.append(pod.name)
        elif by_readiness and _is_unready(pod, sample, options, now):
            unready.append(pod.name)
        else:
            ready += 1
    return Groups(ready, tuple(unready), tuple(missing), tuple(ignored))


def _is_unready(
    pod: ScaledPod, sample: Sample, options: HorizontalOptions, now: Nanoseconds
) -> bool:
    if pod.ready is None or pod.started is None:
        return True
    if now < pod.started + options.cpu_initialization_period:
        # A whole window has to lie behind the last change of readiness.
        return pod.ready == "False" or sample.timestamp < pod.ready_since + sample.window
    # Never became ready since it started.
    delay = options.initial_readiness_delay
    return pod.ready == "False" and pod.started + delay > pod.ready_since
