"""Two traffic runs, or two sweeps, beside each other: what B has more or less than A.

Runs with the same seed have the same requests, so they are compared in pairs: what differs between
the two of a pair is not chance of the arrivals. Over several pairs a difference is the mean of
theirs, with Student's interval; one that holds 0 may be nothing.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from kubescene.errors import TrafficError
from kubescene.experiments.estimates import Estimate, estimate
from kubescene.experiments.sweeps import SweepCase, cases, simulate, told
from kubescene.traffic.measures import TrafficSummary
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.spec.fields import TrafficRun
from kubescene.traffic.spec.loading import to_object
from kubescene.traffic.world.decisions import AutoscalerDecision

RUNS_FILE = "runs.csv"
Measures: TypeAlias = Mapping[str, int | float]
Key: TypeAlias = tuple[tuple[tuple[str, str], ...], str]
"""The settings of a run of a sweep, and its seed."""


class MeasureDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One measure: means of A and of B over the pairs that have it in both, and of B - A."""

    measure: str
    a: float
    b: float
    difference: Estimate

    @property
    def is_certain(self) -> bool:
        """Whether the interval is on one side of 0; of one pair there is none."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and not low <= 0 <= high

    @property
    def is_none(self) -> bool:
        return self.difference.mean == 0 and not self.difference.deviation


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which A and B wanted other numbers; why, in the words of who decided then."""

    start: int
    end: int
    a: int
    b: int
    why: str = ""


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the runs that is not the same; None where it is absent."""

    path: str
    a: Any = None
    b: Any = None


class TrafficComparison(msgspec.Struct, frozen=True, kw_only=True):
    """``settings`` are those of a combination of a sweep. Spans are of single runs only."""

    a: str
    b: str
    settings: dict[str, str] = {}
    pairs: int
    unpaired: int = 0
    changes: tuple[FieldChange, ...] = ()
    measures: tuple[MeasureDifference, ...]
    spans: tuple[Disagreement, ...] = ()
    duration: int = 0

    @property
    def is_same(self) -> bool:
        return all(each.is_none for each in self.measures) and not self.spans


def compare_results(
    a: TrafficResult, b: TrafficResult, names: tuple[str, str]
) -> TrafficComparison:
    """Two single runs: every measure, every field, and who wanted what when."""
    pair = (_measures(a.summary), _measures(b.summary))
    return TrafficComparison(
        a=names[0],
        b=names[1],
        pairs=1,
        changes=tuple(changes(a.run, b.run)),
        measures=tuple(differences([pair])),
        spans=tuple(spans(a, b)),
        duration=min(a.end, b.end),
    )


def compare_files(a: Path, b: Path, seeds: int) -> TrafficComparison:
    """Two TrafficRuns, each simulated with the seeds 1 to N, compared seed by seed."""
    pairs = []
    for one, other in zip(cases(a, (), seeds=seeds), cases(b, (), seeds=seeds), strict=True):
        pairs.append((_simulated(one), _simulated(other)))
    loaded = SweepCase(str(a), ()).load(), SweepCase(str(b), ()).load()
    return TrafficComparison(
        a=str(a),
        b=str(b),
        pairs=len(pairs),
        changes=tuple(changes(*loaded)),
        measures=tuple(differences(pairs)),
    )


def _simulated(case: SweepCase) -> Measures:
    outcome = simulate(case)
    if not outcome.is_fine:
        raise TrafficError(f"{outcome.phase} with {case}: {outcome.message}", source=case.file)
    return told(outcome.measures)


def compare_sweeps(a: Path, b: Path) -> list[TrafficComparison]:
    """Two --out folders of sweeps: combinations that are in both, seed by seed.

    Where each has but one combination they belong together, whatever was set.
    """
    rows_a, rows_b = _swept(a), _swept(b)
    alone = len({key[0] for key in rows_a}) == len({key[0] for key in rows_b}) == 1
    if alone:
        rows_a, rows_b = _by_seed(rows_a), _by_seed(rows_b)
    common = [key for key in rows_a if key in rows_b]
    if not common:
        told = "the sweeps have no combination and seed in common"
        raise TrafficError(told, source=f"{a} and {b}")
    found = []
    for settings in dict.fromkeys(key[0] for key in common):
        keys = [key for key in common if key[0] == settings]
        everybody = {key for key in (*rows_a, *rows_b) if key[0] == settings}
        found.append(
            TrafficComparison(
                a=str(a),
                b=str(b),
                settings=dict(settings),
                pairs=len(keys),
                unpaired=len(everybody) - len(keys),
                measures=tuple(differences([(rows_a[key], rows_b[key]) for key in keys])),
            )
        )
    return found


def _by_seed(rows: Mapping[Key, Measures]) -> dict[Key, Measures]:
    return {((), seed): each for (_, seed), each in rows.items()}


def _swept(folder: Path) -> dict[Key, Measures]:
    """The runs of a sweep that succeeded, by their settings and seed."""
    names = _names()
    found: dict[Key, Measures] = {}
    try:
        with (folder / RUNS_FILE).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row.get("phase") != "Succeeded":
                    continue
                others = {*names, "phase", "message", "seed"}
                settings = tuple((name, row[name]) for name in row if name not in others)
                measures = {name: float(row[name]) for name in names if row.get(name)}
                found[settings, row.get("seed") or ""] = measures
    except (OSError, ValueError, csv.Error) as error:
        raise TrafficError(f"{RUNS_FILE} cannot be read: {error}", source=str(folder)) from error
    if not found:
        raise TrafficError("no run of the sweep succeeded", source=str(folder))
    return found


def differences(pairs: Sequence[tuple[Measures, Measures]]) -> Iterator[MeasureDifference]:
    """Of every measure that both of some pair have."""
    for name in _names():
        both = [(a[name], b[name]) for a, b in pairs if name in a and name in b]
        if both:
            yield MeasureDifference(
                measure=name,
                a=estimate([a for a, _ in both]).mean,
                b=estimate([b for _, b in both]).mean,
                difference=estimate([b - a for a, b in both]),
            )


def changes(a: TrafficRun, b: TrafficRun) -> Iterator[FieldChange]:
    """Fields that differ, in the order of A."""
    own, other = dict(_fields(to_object(a))), dict(_fields(to_object(b)))
    for path in dict.fromkeys((*own, *other)):
        if own.get(path) != other.get(path):
            yield FieldChange(path=path, a=own.get(path), b=other.get(path))


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in inner:
        here = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}".lstrip(".")
        if isinstance(each, dict | list | tuple) and each:
            yield from _fields(each, here)
        else:
            yield here, each


def spans(a: TrafficResult, b: TrafficResult) -> Iterator[Disagreement]:
    """When they wanted other numbers; a longer run is compared as far as the shorter one goes."""
    end = min(a.end, b.end)
    wanted = [_wanted(each) for each in (a, b)]
    times = sorted({0, *wanted[0], *wanted[1]})
    now = [each.spec.replicas.initial for each in (a, b)]
    for index, time in enumerate(times):
        if time >= end:
            return
        said = [steps.get(time) for steps in wanted]
        now = [each.after if each else before for each, before in zip(said, now, strict=True)]
        why = [f"{name}: {each.reason}" for name, each in zip("AB", said, strict=True) if each]
        until = min(times[index + 1] if index + 1 < len(times) else end, end)
        if now[0] != now[1]:
            yield Disagreement(start=time, end=until, a=now[0], b=now[1], why="; ".join(why))


def _wanted(result: TrafficResult) -> dict[int, AutoscalerDecision]:
    return {each.time: each for each in result.decisions if each.after != each.before}


def _names() -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(TrafficSummary)]


def _measures(summary: TrafficSummary) -> Measures:
    return told(msgspec.to_builtins(summary))
