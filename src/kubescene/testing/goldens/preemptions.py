"""What our DefaultPreemption tells of its dry runs, in the form of the recordings."""

from typing import Any

import msgspec

from kubescene.scheduler.cycle.decisions import Decision

ERROR = 1
"""What went wrong on a node was not recorded; mostly no victim was needed there."""


def dry_run_of(decision: Decision) -> list[dict[str, Any]]:
    """Every node that was tried, in order: its victims, or why it does not help."""
    if decision.preemption is None:
        return []
    rows: list[dict[str, Any]] = msgspec.json.decode(
        msgspec.json.encode([*decision.preemption.tried])
    )
    return [{"node": row["node"]} if row.get("code") == ERROR else row for row in rows]
