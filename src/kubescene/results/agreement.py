"""How far a replay and what really happened agree: pod by pod, as far as pods can be told apart.

Pods that a controller makes have other names here. So of each workload the nodes are compared that
its pods were given, as often as each was: two pods on a node there and one here agree once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kubescene.histories.placements import POOLS, ZONES, RecordedPlace, RecordedPlaces, label_of
from kubescene.histories.table import history_at
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.following import top_owner


class Agreement(NamedTuple):
    """How many pods were placed there and here, and how many of them alike."""

    recorded: int
    played: int
    nodes: int
    pools: int | None
    """None where nodes do not say which pool, or zone, they are of."""
    zones: int | None
    apart: Sequence[tuple[str, int, int]]
    """Of groups that differ: how many of their pods agree, and how many there were there."""

    def lines(self, most: int = 10) -> list[str]:
        """For people."""
        told = [
            f"{self.recorded} pods were placed there, {self.played} here",
            f"on the same node: {share(self.nodes, self.recorded)}",
        ]
        for name, number in (("node pool", self.pools), ("zone", self.zones)):
            if number is not None:
                told.append(f"in the same {name}: {share(number, self.recorded)}")
        told += [
            f"  {name}: {same} of {all_} on the same node" for name, same, all_ in self.apart[:most]
        ]
        if len(self.apart) > most:
            told.append(f"  and {len(self.apart) - most} more")
        return told


def agreement(ledger: Ledger, recordings: Iterable[tuple[Path, str]]) -> Agreement:
    """Of a run with recordings that it replayed, by path and form."""
    there: list[RecordedPlace] = []
    labels: dict[str, dict[str, str]] = {}
    for path, form in recordings:
        placements = RecordedPlaces(history_at(path, form))
        there += placements
        labels |= placements.nodes
    return compared(there, [*placed_in(ledger)], labels)


def compared(
    there: Sequence[RecordedPlace],
    here: Sequence[RecordedPlace],
    labels: Mapping[str, dict[str, str]],
) -> Agreement:
    def alike(names: tuple[str, ...] = ()) -> Counter[str]:
        """Of each group, how many pods agree in what a node is, or is labelled."""

        def of(pods: Sequence[RecordedPlace]) -> Counter[tuple[str, str]]:
            return Counter(
                (pod.group, label_of(labels.get(pod.node, {}), names) if names else pod.node)
                for pod in pods
            )

        found: Counter[str] = Counter()
        for (group, _), times in (of(there) & of(here)).items():
            found[group] += times
        return found

    nodes, recorded = alike(), Counter(pod.group for pod in there)
    apart = [
        (group, nodes[group], times) for group, times in recorded.items() if nodes[group] < times
    ]
    apart.sort(key=lambda each: (each[1] - each[2], each[0]))

    def said(names: tuple[str, ...]) -> int | None:
        is_said = any(label_of(each, names) for each in labels.values())
        return alike(names).total() if is_said else None

    return Agreement(len(there), len(here), nodes.total(), said(POOLS), said(ZONES), apart)


def placed_in(ledger: Ledger) -> Iterable[RecordedPlace]:
    """The pods that the run placed, not those that it began with."""
    for pod in ledger.pods:
        if pod.bound_step is None or not pod.bound_step.major or not pod.node:
            continue  # before the first step are those that were there
        owner = pod.owner
        if not owner or owner.startswith("StatefulSet/"):
            yield RecordedPlace(f"{pod.namespace}/{pod.name}", pod.node)
            continue
        top = top_owner(ledger.owners, pod.namespace, owner)
        yield RecordedPlace(f"{pod.namespace}/{top}", pod.node)


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")
