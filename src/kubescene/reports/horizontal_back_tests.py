"""A back-test of a horizontal autoscaler: for people as lines, for programs as one document."""

from collections.abc import Iterator

from kubescene.autoscalers.horizontal import BackTest, BackTestRow
from kubescene.durations import SECOND, format_duration
from kubescene.reports.plots import bars
from kubescene.types import JsonObject


def lines(test: BackTest, every_pass: bool = False) -> Iterator[str]:
    """The count over time, the passes that changed it (or all), and what it adds up to."""
    start, end = test.rows[0].time, test.rows[-1].time
    yield f"replicas, {test.lowest} to {test.highest} in {format_duration(end - start)}"
    yield f"  {bars([row.desired for row in test.rows])}"
    yield ""
    for row in test.rows:
        if every_pass or row.desired != row.replicas or row.error:
            yield f"{format_duration(row.time - start):>10}  {row.explanation}{_error(row)}"
    hours = test.replica_seconds / 3600
    yield ""
    yield (
        f"{len(test.rows):,} passes, {test.rescales:,} rescales, {test.reversals:,} of them "
        f"against the one before, {hours:,.1f} replica hours"
    )


def document(test: BackTest) -> JsonObject:
    return {
        "lowest": test.lowest,
        "highest": test.highest,
        "rescales": test.rescales,
        "reversals": test.reversals,
        "replicaSeconds": test.replica_seconds,
        "passes": [_row(row) for row in test.rows],
    }


def _row(row: BackTestRow) -> JsonObject:
    shown: JsonObject = {
        "time": row.time / SECOND,
        "replicas": row.replicas,
        "ready": row.ready,
        "desired": row.desired,
        "explanation": row.explanation.to_dict(),
    }
    return {**shown, "error": row.error} if row.error else shown


def _error(row: BackTestRow) -> str:
    return f" ({row.error})" if row.error else ""
