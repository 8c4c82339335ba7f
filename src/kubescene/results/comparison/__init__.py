"""Two runs beside each other: what they were given, what came of it, and which plugin moved whom.

`attribution` says which plugin moved a pod, from two explained attempts; `placements` which pods
were moved, and whether by the scheduler or by what happened before; `inputs` what the runs were
given; `compared_runs` what came of it in numbers.
"""

from kubescene.results.comparison.attribution import Attribution, Side, Why, attribute
from kubescene.results.comparison.compared_runs import compare
from kubescene.results.comparison.values import Cause, Comparison, PlacedPod

__all__ = ["Attribution", "Cause", "Comparison", "PlacedPod", "Side", "Why", "attribute", "compare"]
