"""What our DefaultPreemption tells of its dry runs, in the form of the recordings."""

from typing import Any

import msgspec

from kubescene.scheduler.cycle import Decision


def dry_run_of(decision: Decision) -> list[dict[str, Any]]:
    """Every node that was tried, in order: its victims, or why it does not help."""
    record = getattr(decision, "preemption", None)
    return [] if record is None else [msgspec.to_builtins(each) for each in record.tried]
