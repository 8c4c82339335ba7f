"""How many pods came, and what became of them."""

from functools import partial

from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import STATES
from kubescene.results.measures.measure import Measure


def in_state(ledger: Ledger, *, state: str) -> int:
    return ledger.states[state]


def created(ledger: Ledger) -> int:
    return len(ledger.pods)


def ever_bound(ledger: Ledger) -> int:
    return sum(pod.bound_time is not None for pod in ledger.pods)


MEASURES = (
    Measure(
        name="pods_created",
        meaning="Pods that ever were.",
        formula="number of pods created",
        unit="pods",
        of=created,
    ),
    *(
        Measure(
            name=f"pods_{state.lower()}",
            meaning=f"Pods that are {state.lower()} at the end.",
            formula=f"number of pods in state {state}",
            unit="pods",
            of=partial(in_state, state=state),
        )
        for state in STATES
    ),
    Measure(
        name="pods_ever_bound",
        meaning="Pods that had a node at some time, also those that are gone.",
        formula="number of pods with a node",
        unit="pods",
        of=ever_bound,
    ),
)
