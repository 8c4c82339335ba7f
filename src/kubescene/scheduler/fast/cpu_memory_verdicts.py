"""Nodes judged and rated for a class of pods by their `cpu_memory_columns`.

That is for pods which no plugin looks at for anything but cpu, memory and the node object: of what
the node objects decide, the verdicts are known (`spec_verdicts`).
"""

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.cycle.class_scores import ScoreSplit
from kubescene.scheduler.cycle.verdicts import FilterSplit, placed
from kubescene.scheduler.fast.cpu_memory_columns import Floats, Pairs
from kubescene.scheduler.framework.interfaces import Codes
from kubescene.scheduler.state.pod_kinds import PodClass


def can_be_paired(filters: FilterSplit, scores: ScoreSplit, pod_class: PodClass) -> bool:
    """Whether verdicts and scores of the class can be told from the columns."""
    judging = [each.paired for each in filters.by_pods]
    rating = [each.paired for each in scores.paired]
    return (
        scores.rates_by_pairs
        and all(each is not None and each.judges_pairs(pod_class) for each in judging)
        and all(each is not None and each.rates_pairs(pod_class) for each in rating)
    )


def judged(
    filters: FilterSplit, pod_class: PodClass, pairs: Pairs, known: Codes | None
) -> Codes | None:
    """One verdict per row, or None if all pass; ``known`` are those on the node objects."""
    verdicts: Codes | None = None
    for extension in reversed(filters.by_pods):
        assert extension.paired is not None
        codes = extension.paired.judge_pairs(pod_class, pairs)
        if codes is None:
            continue
        refused = codes.nonzero()[0]
        if verdicts is None:
            verdicts = np.zeros(codes.size, dtype=np.int64)
        verdicts[refused] = placed(extension, codes.take(refused))
    if known is None or verdicts is None:
        return verdicts if known is None else known
    return np.where(known == 0, verdicts, known)


def rated(
    scores: ScoreSplit, pod_class: PodClass, pairs: Pairs, plain: NDArray[np.int8] | None
) -> Floats:
    """The totals, but for what is the same for all rows; ``plain`` takes a line per plugin."""
    total: Floats | None = None
    for line, extension in enumerate(scores.paired):
        assert extension.paired is not None
        found = extension.paired.score_pairs(pod_class, pairs)
        if plain is not None:
            plain[line] = found
        if extension.weight != 1:
            found *= extension.weight
        total = found if total is None else np.add(total, found, out=total)
    return np.zeros(pairs.balance.size) if total is None else total
