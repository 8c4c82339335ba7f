"""Two runs beside each other.

Each run is read once, into its ledger; explanations are read for those pods alone that were placed
otherwise, and for a bounded number of them.
"""

from collections.abc import Mapping

from kubescene.garbage import uncollected
from kubescene.results.comparison.attribution import Side
from kubescene.results.comparison.histories import History
from kubescene.results.comparison.inputs import inputs_of
from kubescene.results.comparison.outcomes import (
    cluster_use,
    compared_expectations,
    compared_measures,
    compared_nodes,
    different_preemptions,
)
from kubescene.results.comparison.placements import Explainer, Placements
from kubescene.results.comparison.values import ComparedRun, Comparison
from kubescene.results.ledger_entries import BOUND, PENDING
from kubescene.results.output import TIMELINE_FILE
from kubescene.results.sources import RunSource, open_run

LOOKED_AT = 200
"""So many pods are asked about: each costs a look into the explanations of both runs."""


def compare(
    a: object,
    b: object,
    *,
    names: tuple[str, str] = ("", ""),
    looked_at: int = LOOKED_AT,
    explainers: Mapping[Side, Explainer] | None = None,
) -> Comparison:
    """Compare two runs: directories, `Run` objects, or whatever else `open_run` takes.

    ``names`` are what the runs are called. ``looked_at`` bounds for how many pods it is found out
    who moved them: first those that do not merely follow, the earliest first. ``explainers``
    explain attempts where a run has not kept it, such as one that was played again.
    """
    sources = {Side.A: open_run(a), Side.B: open_run(b)}
    with uncollected():  # much is made, and all of it stays
        return _compare(sources, names, looked_at, explainers or {})


def _compare(
    sources: dict[Side, RunSource],
    names: tuple[str, str],
    looked_at: int,
    explainers: Mapping[Side, Explainer],
) -> Comparison:
    histories = {side: History(source.ledger) for side, source in sources.items()}
    inputs = inputs_of(sources[Side.A], sources[Side.B])
    explain = {side: source.explain for side, source in sources.items()} | {**explainers}
    placements = Placements(explain, histories, inputs)
    placed, divergence = placements.otherwise(looked_at), placements.divergence()
    ledgers = [history.ledger for history in histories.values()]
    nodes, nodes_alike = compared_nodes(*ledgers)
    measures, measures_alike = compared_measures(*sources.values())
    return Comparison(
        a=_compared(sources[Side.A], names[0]),
        b=_compared(sources[Side.B], names[1]),
        warnings=(*_warnings(sources), *placements.warnings, *inputs.warnings),
        inputs=inputs.differences,
        inputs_known=not inputs.warnings,
        divergence=divergence,
        placed=placed,
        looked_at=min(looked_at, len(placed)),
        only_in_a=placements.only_in(Side.A),
        only_in_b=placements.only_in(Side.B),
        waiting=placements.waiting(),
        preemptions=different_preemptions(*ledgers),
        cluster=cluster_use(*ledgers),
        nodes=nodes,
        nodes_alike=nodes_alike,
        measures=measures,
        measures_alike=measures_alike,
        expectations=compared_expectations(*ledgers),
    )


def _compared(source: RunSource, name: str) -> ComparedRun:
    ledger, simulation = source.ledger, (source.spec or {}).get("simulation") or {}
    return ComparedRun(
        name=name or source.place.removesuffix(f"/{TIMELINE_FILE}"),
        scenario=source.scenario,
        seed=source.seed,
        version=source.version,
        phase=source.phase,
        pods=len(ledger.pods),
        bound=ledger.states[BOUND],
        pending=ledger.states[PENDING],
        preemptions=len(ledger.preemptions),
        explain=str(simulation.get("explain") or "Auto"),
    )


def _warnings(sources: dict[Side, RunSource]) -> list[str]:
    found = []
    for side, source in sources.items():
        found += [f"{side}: {warning}" for warning in source.warnings]
        if not source.complete and not source.warnings:
            found.append(
                f"{side}: {source.place} has no end: it was cut short, or goes on. It is read up "
                f"to step {source.ledger.step}; what the other run did later counts as different"
            )
    return found
