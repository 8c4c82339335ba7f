"""KEP-140's result calculation package: the functions that its Story 1 asks for.

Each takes whatever `open_run` takes. What comes back can be iterated, and is a frame by
``.frame()``. `annotated_results` reads what kube-scheduler-simulator, or a run that was asked for
it, has written into the annotations of a pod.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from kubescene.errors import ConfigurationError
from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.opening import open_run
from kubescene.results.rows import AllocationRow, AttemptRow, PodRow, UtilizationRow
from kubescene.results.tables import Table, tables
from kubescene.timeline import Fact
from kubescene.types import JsonObject


class Moment(NamedTuple):
    """A fact, and the cluster as it is after it. The ledger goes on with the next moment."""

    fact: Fact
    ledger: Ledger


def scheduling_results(where: Any) -> Table[AttemptRow]:
    """Every attempt of a scheduler at a pod: on which node it ended, or why on none."""
    return tables(where)["attempts"]


def allocation_rate(where: Any) -> Table[AllocationRow]:
    """How much of each resource of the whole cluster was asked for, at the end of each step."""
    return tables(where)["allocation"]


def node_utilization(where: Any) -> Table[UtilizationRow]:
    """How much of each node was asked for, at the end of each step."""
    return tables(where)["utilization"]


def by_pod(where: Any) -> dict[str, tuple[PodRow, ...]]:
    """What became of each pod, by NAMESPACE/NAME; several, if one of the name came again."""
    found: dict[str, tuple[PodRow, ...]] = {}
    for row in tables(where)["pods"]:
        name = f"{row.namespace}/{row.name}"
        found[name] = (*found.get(name, ()), row)
    return found


def iterate(where: Any) -> Iterator[Moment]:
    """Everything that happened, one fact after the other, for values of your own.

    >>> from kubescene.results import iterate
    >>> busiest = max(m.ledger.totals.nodes for m in iterate("out"))  # doctest: +SKIP
    """
    entries = Entries()
    for fact in open_run(where).facts():
        entries.add(fact)
        yield Moment(fact, entries.ledger)


def annotated_results(pod: Mapping[str, Any]) -> list[JsonObject]:
    """What was noted of each attempt at a pod, the oldest first.

    By the names of the annotations without their prefix: ``filter-result``, ``finalscore-result``,
    ``selected-node`` and others. Empty if the pod has no such annotations.
    """
    # Schedulers are much to load for those who have no annotations to read.
    from kubescene.scheduler.telling.annotation_texts import HISTORY, PREFIX

    noted: Mapping[str, str] = (pod.get("metadata") or {}).get("annotations") or {}
    newest = {key: text for key, text in noted.items() if key.startswith(PREFIX)}
    history = newest.pop(HISTORY, "")
    try:
        attempts = orjson.loads(history) if history else [newest] if newest else []
        return [dict(_decoded(each, PREFIX)) for each in attempts]
    except (orjson.JSONDecodeError, AttributeError, TypeError) as error:
        name = (pod.get("metadata") or {}).get("name", "")
        raise ConfigurationError(
            f"pod {name}: its annotations {PREFIX}* are not those of a scheduler simulator: {error}"
        ) from error


def _decoded(attempt: Mapping[str, str], prefix: str) -> Iterator[tuple[str, Any]]:
    """Values that are JSON, as values; the selected node is a name."""
    for key, text in attempt.items():
        yield key.removeprefix(prefix), orjson.loads(text) if text[:1] in "{[" and text else text
