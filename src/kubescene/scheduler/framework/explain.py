"""How much a scheduler explains of its attempts."""

from enum import StrEnum

AUTO_FULL_NODES = 200
"""``Auto`` explains every attempt up to this many nodes, beyond it only failures."""


class Explain(StrEnum):
    """How much a scheduler explains."""

    AUTO = "Auto"
    FULL = "Full"
    FAILURES = "Failures"
    OFF = "Off"

    def wanted(self, *, failed: bool, nodes: int) -> bool:
        if self is Explain.AUTO:
            return failed or nodes <= AUTO_FULL_NODES
        return self is Explain.FULL or (self is Explain.FAILURES and failed)
