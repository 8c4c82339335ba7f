"""How many pods came, and what became of them."""

from functools import partial

from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import STATES
from kubescene.results.measures.measure import Measure

UNIT = "pods"


def created(ledger: Ledger) -> int:
    return len(ledger.pods)


def in_state(ledger: Ledger, *, state: str) -> int:
    return ledger.states[state]


def ever_bound(ledger: Ledger) -> int:
    return sum(pod.bound_time is not None for pod in ledger.pods)


MEASURES = (
    Measure(
        name="pods_created",
        meaning="Pods that ever were.",
        formula="pods_pending + pods_bound + pods_terminating + pods_finished + pods_deleted",
        unit=UNIT,
        of=created,
    ),
    *(
        Measure(
            name=f"pods_{state.lower()}",
            meaning=f"Pods that are {state.lower()} at the end.",
            formula=f"number of pods in state {state}",
            unit=UNIT,
            of=partial(in_state, state=state),
        )
        for state in STATES
    ),
    Measure(
        name="pods_ever_bound",
        meaning="Pods that had a node at some time, also those that are gone.",
        formula="number of pods that were bound, or came with a node",
        unit=UNIT,
        of=ever_bound,
    ),
)
