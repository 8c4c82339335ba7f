"""What a matrix comes down to: one row per combination, and the single runs behind it."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kubescene.experiments.estimates import Estimate, estimate
from kubescene.results.measures.measure import Number
from kubescene.results.tables import polars_module

if TYPE_CHECKING:
    import polars

WORDS = ("scenario", "configuration", "settings")
COUNTS = ("runs", "failed", "unmet")


class MatrixRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what was played, and its measures, or the error that ended it."""

    scenario: str
    configuration: str
    settings: str
    seed: int | None
    """None if it was the scenario's own."""
    measures: dict[str, Number]
    unmet: list[str]
    error: str

    def __str__(self) -> str:
        seed = "" if self.seed is None else f"seed {self.seed}"
        return ", ".join(filter(None, (self.scenario, self.configuration, self.settings, seed)))


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """All seeds of one combination. ``runs`` of them succeeded, ``failed`` did not.

    ``unmet`` counts the runs in which an expectation does not hold. Measures are means over the
    runs in which they have a value; ``n`` of each says how many that were.
    """

    scenario: str
    configuration: str
    settings: str
    runs: int
    failed: int
    unmet: int
    error: str
    """The first error, empty if no run failed."""
    measures: dict[str, Estimate]


class MatrixResult:
    """The rows in the order of what was given, whichever run finished first."""

    def __init__(self, runs: Sequence[MatrixRun], measures: Sequence[str] = ()) -> None:
        self.runs = list(runs)
        self.rows = list(rows_of(self.runs))
        known = dict.fromkeys(name for row in self.rows for name in row.measures)
        self.measures = list(measures) or list(known)
        """The names of the measures that tables show, in their order."""

    @property
    def ok(self) -> bool:
        """Whether no run failed."""
        return not self.failed

    @property
    def failed(self) -> list[MatrixRun]:
        return [run for run in self.runs if run.error]

    @property
    def unmet(self) -> list[MatrixRun]:
        """The runs in which an expectation does not hold."""
        return [run for run in self.runs if run.unmet]

    def frame(self) -> "polars.DataFrame":
        """One row per combination. A measure is four columns: mean, low, high, n."""
        return framed(
            self.columns,
            self.cells(),
            texts=(*WORDS, "error"),
            whole=(*COUNTS, *(f"{name}_n" for name in self.measures)),
        )

    def run_frame(self) -> "polars.DataFrame":
        """One row per run, for statistics of your own."""
        return framed(
            self.run_columns, self.run_cells(), texts=(*WORDS, "unmet", "error"), whole=("seed",)
        )

    @property
    def columns(self) -> list[str]:
        estimated = (
            f"{name}{each}" for name in self.measures for each in ("", "_low", "_high", "_n")
        )
        return [*WORDS, *COUNTS, *estimated, "error"]

    @property
    def run_columns(self) -> list[str]:
        return [*WORDS, "seed", *self.measures, "unmet", "error"]

    def cells(self) -> Iterator[list[Any]]:
        for row in self.rows:
            values = [each for name in self.measures for each in parts(row.measures.get(name))]
            known = [getattr(row, name) for name in (*WORDS, *COUNTS)]
            yield [*known, *values, row.error or None]

    def run_cells(self) -> Iterator[list[Any]]:
        for run in self.runs:
            values = [run.measures.get(name) for name in self.measures]
            known = [run.scenario, run.configuration, run.settings, run.seed]
            yield [*known, *values, " ".join(run.unmet) or None, run.error or None]

    def csv(self) -> str:
        return written(self.columns, self.cells())

    def run_csv(self) -> str:
        return written(self.run_columns, self.run_cells())

    def json(self) -> bytes:
        """A list of objects, one a line."""
        shown = (
            msgspec.structs.replace(row, measures=chosen(row.measures, self.measures))
            for row in self.rows
        )
        return b"[\n" + b",\n".join(map(msgspec.json.encode, shown)) + b"\n]\n"

    def parquet(self, path: str | Path) -> None:
        self.frame().write_parquet(path)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<MatrixResult: {len(self.rows)} rows of {len(self.runs)} runs{failed}>"

    def _repr_html_(self) -> str:
        from kubescene.experiments.display import matrix_html

        return matrix_html(self)


def rows_of(runs: Sequence[MatrixRun]) -> Iterator[MatrixRow]:
    """The runs by combination, in the order of their first."""
    together: dict[tuple[str, str, str], list[MatrixRun]] = {}
    for run in runs:
        together.setdefault((run.scenario, run.configuration, run.settings), []).append(run)
    for (scenario, configuration, settings), several in together.items():
        fine = [run for run in several if not run.error]
        failed = [run for run in several if run.error]
        yield MatrixRow(
            scenario=scenario,
            configuration=configuration,
            settings=settings,
            runs=len(fine),
            failed=len(failed),
            unmet=sum(bool(run.unmet) for run in fine),
            error=first_error(failed),
            measures=dict(estimates(fine)),
        )


def first_error(failed: Sequence[MatrixRun]) -> str:
    if not failed:
        return ""
    first = failed[0]
    return first.error if first.seed is None else f"seed {first.seed}: {first.error}"


def estimates(runs: Sequence[MatrixRun]) -> Iterator[tuple[str, Estimate]]:
    """Each measure that has a value in any of the runs."""
    for name in dict.fromkeys(name for run in runs for name in run.measures):
        yield name, estimate([run.measures[name] for run in runs if name in run.measures])


def parts(value: Estimate | None) -> tuple[float | int | None, ...]:
    """An estimate as cells; a measure that has no value was measured in no run."""
    return (None, None, None, 0) if value is None else (value.mean, value.low, value.high, value.n)


def chosen(measures: Mapping[str, Estimate], names: Sequence[str]) -> dict[str, Estimate]:
    return {name: measures[name] for name in names if name in measures}


def written(columns: Sequence[str], rows: Iterator[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def framed(
    columns: Sequence[str], rows: Iterator[list[Any]], *, texts: Sequence[str], whole: Sequence[str]
) -> "polars.DataFrame":
    """A frame whose types do not depend on what happens to be in it."""
    pl = polars_module()
    kinds = dict.fromkeys(columns, pl.Float64)
    kinds |= dict.fromkeys(texts, pl.String) | dict.fromkeys(whole, pl.Int64)
    values = [
        [
            float(cell) if kinds[name] is pl.Float64 and cell is not None else cell
            for name, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    frame: polars.DataFrame = pl.DataFrame(values, schema=kinds, orient="row")
    return frame
