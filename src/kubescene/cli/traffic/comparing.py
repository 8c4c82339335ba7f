"""What ``kubescene traffic compare`` does."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kubescene.cli.terminals import aligned
from kubescene.cli.traffic.history import opened_run
from kubescene.clock import SECOND, format_duration
from kubescene.errors import ConfigurationError
from kubescene.experiments.estimates import CONFIDENCE
from kubescene.experiments.traffic_comparison import (
    RUNS_FILE,
    MeasureDifference,
    TrafficComparison,
    compare_files,
    compare_results,
    compare_sweeps,
)
from kubescene.reports.words import counted

SAME, DIFFERENT = 0, 1
SHOWN = 12


def compare_traffic(a: Path, b: Path, *, seeds: int | None, as_json: bool) -> int:
    """Compare two runs, files or sweeps; returns the exit code."""
    found = comparisons(a, b, seeds)
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    else:
        text = "\n".join("".join(f"{line}\n" for line in lines(each)) for each in found)
    sys.stdout.write(text)
    return SAME if all(each.is_same for each in found) else DIFFERENT


def comparisons(a: Path, b: Path, seeds: int | None) -> list[TrafficComparison]:
    if a.is_file() and b.is_file():
        if seeds is None:
            raise ConfigurationError("to compare two files, say with how many seeds: --seeds 20")
        return [compare_files(a, b, seeds)]
    if seeds is not None:
        raise ConfigurationError("--seeds goes with two files: what was simulated has its seeds")
    if (a / RUNS_FILE).exists() and (b / RUNS_FILE).exists():
        return compare_sweeps(a, b)
    return [compare_results(opened_run(a), opened_run(b), (str(a), str(b)))]


def lines(told: TrafficComparison) -> Iterator[str]:
    yield f"A  {told.a}"
    yield f"B  {told.b}"
    for name, value in told.settings.items():
        yield f"   {name}={value}"
    if told.changes:
        yield from ("", "Fields that differ")
        rows = [[each.path, shown(each.a), "→", shown(each.b)] for each in told.changes[:SHOWN]]
        yield from table(rows, left=(0, 1, 2, 3))
        if len(told.changes) > SHOWN:
            yield f"and {len(told.changes) - SHOWN} more"
    yield from measure_lines(told)
    yield from span_lines(told)


def measure_lines(told: TrafficComparison) -> Iterator[str]:
    moved = [each for each in told.measures if not each.is_none]
    equal = len(told.measures) - len(moved)
    if moved:
        several = told.pairs > 1
        over = f", means over {counted(told.pairs, 'pair')} of one seed" if several else ""
        yield from ("", f"Measures that differ{over}")
        yield from table([["", "A", "B", "B - A", ""], *map(row, moved)])
        if several:
            yield ""
            yield f"± is the {CONFIDENCE:.0%} confidence interval of the mean difference;"
            yield "what is not marked may be chance"
    yield ""
    yield f"{counted(equal, 'measure')} of {len(told.measures)} are the same"
    if told.unpaired:
        yield f"{counted(told.unpaired, 'run')} had no partner with its seed"


def row(each: MeasureDifference) -> list[str]:
    half = each.difference.half_width
    change = f"{each.difference.mean:+.6g}" + ("" if half is None else f" ± {half:.2g}")
    return [each.measure, f"{each.a:.6g}", f"{each.b:.6g}", change, "*" if each.is_certain else ""]


def span_lines(told: TrafficComparison) -> Iterator[str]:
    if not told.spans:
        return
    apart = sum(each.end - each.start for each in told.spans)
    share = 100 * apart / told.duration
    yield ""
    yield f"Other numbers were wanted for {when(apart)} of {when(told.duration)} ({share:.1f} %)"
    rows = [["FROM", "TO", "A", "B", "WHY"]]
    rows += [
        [when(each.start), when(each.end), str(each.a), str(each.b), each.why]
        for each in told.spans[:SHOWN]
    ]
    yield from table(rows, left=(4,))
    if len(told.spans) > SHOWN:
        yield f"and {len(told.spans) - SHOWN} more times"


def when(instant: int) -> str:
    return format_duration(instant // SECOND * SECOND)


def shown(value: object) -> str:
    return "-" if value is None else str(value)


def table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    return aligned([list(each) for each in rows], left=left).splitlines()
