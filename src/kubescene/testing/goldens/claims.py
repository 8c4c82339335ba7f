"""Device claims: what would be allocated on each node, and what was written."""

from collections.abc import Mapping
from typing import Any

from kubescene.testing.goldens.comparing import Aspect, Comparison
from kubescene.testing.goldens.matrices import Matrix


def compare_allocations(matrix: Matrix, want: Mapping[str, Any], comparison: Comparison) -> None:
    """What would be allocated on every feasible node."""
    del matrix
    if "allocations" in want:
        comparison.failed(Aspect.ALLOCATIONS, "not known", want["allocations"])
