"""How most Score plugins bring their scores into 0..100: as shares of the highest one."""

import numpy as np

from kubescene.scheduler.interfaces import MAX_NODE_SCORE, Scores


def normalize_by_maximum(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale so that the highest score is 100; reversed, that one becomes 0 and zero becomes 100."""
    highest = scores.max() if scores.size else 0
    if highest == 0:
        return np.full(scores.size, MAX_NODE_SCORE, dtype=np.int64) if reverse else scores
    scaled = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
