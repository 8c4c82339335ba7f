"""Preferred affinity and anti-affinity, the pod's own and that of pods on nodes (SC-7)."""

from collections.abc import Sequence

import numpy as np

from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.tallies import DomainTally
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Rows, Scores
from kubescene.scheduler.plugins.inter_pod_affinity.filtering import KeyCounter, Unseen
from kubescene.scheduler.plugins.inter_pod_affinity.matchers import (
    Newcomer,
    OwnTerm,
    Preferences,
)
from kubescene.scheduler.state.node_info import NodeInfo


class PreferredTerms:
    """What pods of one signature and the pods on nodes prefer of each other, by topology key."""

    __slots__ = ("_counters",)

    def __init__(
        self,
        newcomer: Newcomer,
        own: Sequence[tuple[int, OwnTerm]],
        existing_keys: Sequence[str],
        hard_weight: int,
    ) -> None:
        keys = dict.fromkeys([*(term.topology_key for _, term in own), *existing_keys])
        self._counters = [
            KeyCounter(
                Preferences(
                    newcomer,
                    key,
                    tuple(each for each in own if each[1].topology_key == key),
                    hard_weight,
                ),
                key,
            )
            for key in keys
        ]

    def tallies(self, census: PodCensus, unseen: Sequence[Unseen] = ()) -> list[DomainTally]:
        """By key, what domains amount to; keys without any match are left out."""
        tallies = [each.tally(census, unseen) for each in self._counters]
        return [tally for tally in tallies if tally.matches]


def rate(tallies: Sequence[DomainTally], node: NodeInfo) -> int:
    """What the domains of a node amount to."""
    return sum(tally.amounts.item(tally.domain(node.labels.get(tally.key))) for tally in tallies)


def rate_rows(tallies: Sequence[DomainTally], rows: Rows) -> Scores:
    scores = np.zeros(rows.size, dtype=np.int64)
    for tally in tallies:
        scores += tally.amounts.take(tally.ids.take(rows))
    return scores


def normalized(scores: Scores) -> Scores:
    """The lowest score becomes 0, the highest 100; all 0 if they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if lowest == highest:
        return np.zeros(scores.size, dtype=np.int64)
    shares = (scores - lowest).astype(np.float64) / float(highest - lowest)
    return (float(MAX_NODE_SCORE) * shares).astype(np.int64)
