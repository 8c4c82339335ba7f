"""What would it take: the single changes that let a waiting pod be placed, each proved by trial.

A question works on a fork of the world: whatever is tried there, the world itself notices nothing.
One module per kind of change proposes; `trials` lets the fork's scheduler decide; only what it
placed is offered. This package knows a world with a scheduler in it, not what it is made of.
"""

from kubescene.remedies.remedy import Edit, Remedies, Remedy, RemedyKind, apply_remedy
from kubescene.remedies.search import MAX_TRIALS, OF_A_KIND, find_remedies

__all__ = [
    "MAX_TRIALS",
    "OF_A_KIND",
    "Edit",
    "Remedies",
    "Remedy",
    "RemedyKind",
    "apply_remedy",
    "find_remedies",
]
