"""What ``kubescene traffic sweep`` does."""

import csv
import os
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import msgspec

from kubescene.cli.components import look_here
from kubescene.cli.files import complain
from kubescene.cli.terminals import aligned
from kubescene.errors import ConfigurationError
from kubescene.traffic.measures import Summary
from kubescene.traffic.spec.loading import load_run
from kubescene.traffic.sweeps import Outcome, cases, sweep

FORMATS = ("table", "csv", "json")
FINE, SOME_FAILED = 0, 1
COLUMNS = {
    "requests": "REQUESTS",
    "failed": "FAILED",
    "responseP50S": "P50",
    "responseP95S": "P95",
    "responseP99S": "P99",
    "sloMinutes": "SLO MIN",
    "replicasMost": "MOST",
    "replicaHours": "REPLICA H",
    "cpuUsedHours": "CPU H",
    "flapping": "FLAPS",
}
"""The measures that a table shows; csv and json have all."""
RESPONSES = ("responseP50S", "responseP95S", "responseP99S")


def sweep_traffic(
    file: Path,
    settings: Sequence[str],
    autoscalers: Sequence[str],
    processes: Sequence[str] = (),
    *,
    jobs: int | None,
    format: str,
) -> int:
    """Simulate all combinations and print them; returns the exit code."""
    if format not in FORMATS:
        raise ConfigurationError(f"--format is {format!r}: it may be {', '.join(FORMATS)}")
    load_run(file)  # what is wrong without any setting is said once
    look_here(autoscalers)
    asked = cases(file, settings, autoscalers, processes)
    found = list(sweep(asked, jobs or os.cpu_count() or 1))
    {"table": _table, "csv": _csv, "json": _json}[format](found)
    failed = [each for each in found if each.phase != "Succeeded"]
    complain([f"{_named(each)}: {each.message}" for each in failed], "kubescene: ")
    return SOME_FAILED if failed else FINE


def _named(outcome: Outcome) -> str:
    return " ".join(f"{path}={value}" for path, value in outcome.settings.items())


def _measures(outcome: Outcome) -> dict[str, int | float]:
    return {} if outcome.summary is None else msgspec.to_builtins(outcome.summary)


def _json(found: Sequence[Outcome]) -> None:
    text = msgspec.json.format(msgspec.json.encode(found), indent=2)
    sys.stdout.write(text.decode() + "\n")


def _csv(found: Sequence[Outcome]) -> None:
    names = [each.encode_name for each in msgspec.structs.fields(Summary)]
    paths = list(found[0].settings)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*paths, "phase", "message", *names])
    for each in found:
        measures = _measures(each)
        values = [measures.get(name, "") for name in names]
        writer.writerow([*each.settings.values(), each.phase, each.message, *values])
    sys.stdout.write(text.getvalue())


def _table(found: Sequence[Outcome]) -> None:
    names = [path.rpartition(".")[2] for path in found[0].settings]
    rows = [[*names, "PHASE", *COLUMNS.values()]]
    for each in found:
        measures = _measures(each)
        if not measures.get("succeeded"):  # no time at all would look like a very short one
            measures = {name: told for name, told in measures.items() if name not in RESPONSES}
        shown = (_shown(measures.get(name)) for name in COLUMNS)
        rows.append([*each.settings.values(), each.phase, *shown])
    sys.stdout.write(aligned(rows, left=[len(names)]))


def _shown(value: int | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
