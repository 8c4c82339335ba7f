"""How many machines of which groups a scenario needs at least, and what binds.

::

    groups      the node groups whose sizes are searched, and what mixes of them cost
    scenarios   the scenario with so many machines of each, or with the cluster autoscaler
    probes      one try: a run, who was left waiting, what was needed
    needs       what a run needed in sum, from which follows what any mix must give
    mixes       the mixes that satisfy such sums, the cheapest first
    searching   `size`: the autoscaler's answer, the search, the proof
    answers     all of it as an `Answer`
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.sizing.searching import SizingResult, size

__all__ = ["SizingResult", "size"]

_HOMES = {"SizingResult": "searching", "size": "searching"}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
