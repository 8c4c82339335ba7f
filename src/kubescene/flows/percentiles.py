"""Percentiles of response times, of the nearest rank: the smallest that has the share below it."""

from kubescene.clock.batches import Integers


def nearest_rank(count: int, percent: float) -> int:
    return max(-(-count * round(percent * 1000) // 100_000), 1)


def percentile_of_all(served: Integers, failed: int, timeout: int, percent: float) -> int | None:
    """Of sorted times of those served, and of so many that failed: these took their time-out.

    Nobody is served later than that, so they are the last ones. None if there is nobody, or if it
    is a failure and there is no time-out (it is negative).
    """
    ended = len(served) + failed
    rank = nearest_rank(ended, percent)
    if not ended:
        return None
    if rank <= len(served):
        return int(served[rank - 1])
    return timeout if timeout >= 0 else None
