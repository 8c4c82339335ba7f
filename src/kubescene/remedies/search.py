"""From a question about a pod to the remedies, the cheapest first.

The work is bounded: `MAX_TRIALS` decisions in all, fewer for each kind (see its module), and at
most `OF_A_KIND` remedies of a kind. The order in which things are tried depends on nothing but the
world.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeAlias

from kubescene.control import Slot
from kubescene.errors import ConfigurationError
from kubescene.remedies.devices import device_holders, device_nodes
from kubescene.remedies.labels import labels, terms
from kubescene.remedies.nodes import nodes
from kubescene.remedies.remedy import Remedies, Remedy, in_order
from kubescene.remedies.requests import requests
from kubescene.remedies.tolerations import tolerations
from kubescene.remedies.trials import Trials, TrialsSpentError, WholeWorld
from kubescene.remedies.victims import victims
from kubescene.scheduler.scheduler import NAME, Scheduler
from kubescene.types import JsonObject

MAX_TRIALS = 300
OF_A_KIND = 5

Proposing: TypeAlias = Callable[[Trials, frozenset[str]], Iterator[Remedy]]
KINDS: tuple[Proposing, ...] = (
    tolerations,
    terms,
    labels,
    nodes,
    requests,
    victims,
    device_holders,
    device_nodes,
)


class Manager(Protocol):
    """Who runs the controllers of a world."""

    @property
    def slots(self) -> Sequence[Slot]: ...

    def start(self, names: Sequence[str]) -> Sequence[Slot]: ...


class ForkableWorld(WholeWorld, Protocol):
    """What a question needs of a world; `kubescene.cluster.Cluster` is one."""

    @property
    def manager(self) -> Manager: ...


def find_remedies(
    world: ForkableWorld,
    pod: str,
    *,
    most: int = MAX_TRIALS,
    go_on: Callable[[], bool] | None = None,
) -> Remedies:
    """The single changes after which a waiting pod, ``NAMESPACE/NAME``, fits; none if none does.

    Each was tried in a fork of the world, where the scheduler placed the pod. Other pods that wait
    may be quicker in the world itself. ``go_on`` is asked between the trials; once it says no, what
    was found until then is returned. Raises `ConfigurationError` if the pod does not wait for a
    node, and `NotFoundError` if there is no such pod.
    """
    namespace, _, name = pod.rpartition("/")
    obj = waiting(world.get("Pod", name, namespace or "default"))
    fork = world.fork()
    trials = Trials(scheduler_of(fork), obj, most, go_on, world)
    first = trials.decide()
    if first.node:
        raise ConfigurationError(f"{trials.key} fits {first.node} as it is: let the world settle")
    explanation = first.explanation
    groups = () if explanation is None else explanation.filters
    reasons = frozenset(reason for group in groups for reason in group.reasons)
    found: list[Remedy] = []
    for propose in KINDS:
        try:
            found.extend(islice(propose(trials, reasons), OF_A_KIND))
        except TrialsSpentError:
            break
    return in_order(found)


def waiting(pod: JsonObject) -> JsonObject:
    """The pod, if it is one that waits for a scheduler."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    if node := spec.get("nodeName"):
        raise ConfigurationError(f"{name} is on {node}: there is nothing to remedy")
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if ended or "deletionTimestamp" in metadata:
        raise ConfigurationError(f"{name} has ended or is being deleted: it needs no node")
    if gates := spec.get("schedulingGates"):
        listed = ", ".join(gate["name"] for gate in gates)
        raise ConfigurationError(f"{name} waits for its scheduling gates: {listed}")
    if (spec.get("schedulingGroup") or {}).get("podGroupName"):
        raise ConfigurationError(f"{name} is placed with its pod group: ask for single pods only")
    return pod


def scheduler_of(world: ForkableWorld) -> Scheduler:
    """The scheduler of a world; one without controllers gets one that sees what is there."""
    slots = world.manager.slots or world.manager.start((NAME,))
    for slot in slots:
        if isinstance(slot.controller, Scheduler):
            return slot.controller
    raise ConfigurationError("no scheduler of ours runs in this world: nothing can be tried")
