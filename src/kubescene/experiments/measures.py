"""Which measures are shown, and whether those that somebody names exist.

What is measured depends on the resources of the nodes, so names are checked against the measures
that Kubescene has, and the resources and workloads that the scenarios speak of.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import orjson

from kubescene.api.options import INDEX_MARK
from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.results.measures import ALL, is_of_the_run
from kubescene.results.measures.cost import GROUP, CostMeasure
from kubescene.results.measures.measure import RESOURCE, WORKLOAD, word
from kubescene.results.measures.own import (
    OwnFunction,
    is_reference,
    load_measure,
    own_measure,
    own_measures,
)
from kubescene.results.over_time.entries import (
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
)
from kubescene.types import JsonObject

USUAL = (
    "pods_bound",
    "pods_pending",
    "pending_seconds_mean",
    "preemptions",
    "allocation_cpu",
    "imbalance_cpu",
    "fragmentation_cpu",
)
"""What a terminal shows if nobody says otherwise; files have all measures."""
MACHINES = ("NodeGroup", "NodePool")
"""Kinds that have machines."""
STANDING = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, "Traffic")
"""Kinds of objects of which there are measures."""


def chosen_measures(given: Sequence[str | OwnFunction]) -> tuple[list[OwnFunction], list[str]]:
    """The functions among what somebody asks for, and the names that all of it has in tables."""
    own: list[OwnFunction] = []
    names = []
    for each in given:
        if isinstance(each, str) and not is_reference(each):
            names.append(each)
        else:
            own.append(load_measure(each) if isinstance(each, str) else each)
            names.append(own_measure(own[-1]).name)
    return own, names


def check_measures(
    names: Sequence[str],
    scenarios: Iterable[JsonObject],
    prices: Prices | None,
    own: Sequence[OwnFunction] = (),
) -> None:
    """Raise for a name that no run can have."""
    documents = list(scenarios)
    known = set(known_measures(documents, prices))
    known |= {each.name for each in own_measures(own, sorted(known))}
    unread = any(b'"objectFrom"' in orjson.dumps(each) for each in documents)
    for name in names:
        if name not in known and not (unread and is_of_the_run(name)):
            of_cost = isinstance(
                next((each for each in ALL if each.name == name), None), CostMeasure
            )
            meant = UNPRICED if of_cost else hint(name, sorted(known))
            raise ConfigurationError(f"there is no measure {name!r}{meant}")
        if names.count(name) > 1:
            raise ConfigurationError(f"the measure {name} is named twice")


def hint(name: str, known: list[str]) -> str:
    if meant := get_close_matches(name, known, 1):
        return f": did you mean {meant[0]}?"
    return f"; there are: {', '.join(known)}"


UNPRICED = " without prices: give --prices, or the NodeGroups theirs"


def known_measures(scenarios: Iterable[JsonObject], prices: Prices | None) -> Iterator[str]:
    words, documents = dict.fromkeys(map(word, (CPU, MEMORY, PODS))), [*scenarios]
    for scenario in documents:
        words |= dict.fromkeys(map(word, offered(scenario)))
    names = dict.fromkeys(word(each) for scenario in documents for each in workloads_of(scenario))
    groups = dict.fromkeys(word(each) for scenario in documents for each in groups_of(scenario))
    for measure in ALL:
        if isinstance(measure, CostMeasure) and prices is None and not groups:
            continue
        if GROUP in measure.name:
            yield from (measure.name.replace(GROUP, each) for each in groups)
        elif RESOURCE in measure.name:
            yield from (measure.name.replace(RESOURCE, each) for each in words)
        elif WORKLOAD in measure.name:
            yield from (measure.name.replace(WORKLOAD, each) for each in names)
        else:
            yield measure.name


def workloads_of(scenario: JsonObject) -> Iterator[str]:
    """The workloads that operations of a scenario make, as ``namespace/name``."""
    for operation in (scenario.get("spec") or {}).get("operations") or ():
        made = operation.get("createOperation") or {}
        template = made.get("object") or {}
        if template.get("kind") not in STANDING:
            continue
        metadata = template.get("metadata") or {}
        name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name', '')}"
        for index in range(made.get("count") or 1):
            yield name.replace(INDEX_MARK.decode(), str(index))


def groups_of(scenario: JsonObject) -> Iterator[str]:
    """The node groups and pools that operations of a scenario make."""
    for operation in (scenario.get("spec") or {}).get("operations") or ():
        made = operation.get("createOperation") or {}
        template = made.get("object") or {}
        if template.get("kind") in MACHINES:
            name = str((template.get("metadata") or {}).get("name", ""))
            for index in range(made.get("count") or 1):
                yield name.replace(INDEX_MARK.decode(), str(index))


def offered(value: Any) -> Iterator[str]:
    """The resources that nodes anywhere in a document have."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("allocatable", "capacity") and isinstance(inner, dict):
                yield from map(str, inner)
            else:
                yield from offered(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from offered(inner)
