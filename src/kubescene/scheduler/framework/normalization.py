"""How most Score plugins bring their scores into 0..100: as shares of the highest one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Scores


def highest(scores: NDArray[Any]) -> int:
    """The highest of at least one score; `argmax` is several times faster than `max`."""
    found: int = scores.item(scores.argmax())
    return found


def lowest(scores: NDArray[Any]) -> int:
    """The lowest, likewise."""
    found: int = scores.item(scores.argmin())
    return found


def normalize_by_maximum(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale so that the highest score is 100; reversed, that one becomes 0 and zero becomes 100."""
    best = highest(scores) if scores.size else 0
    if best == 0:
        return np.full(scores.size, MAX_NODE_SCORE, dtype=np.int64) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // best
    return MAX_NODE_SCORE - scaled if reverse else scaled
