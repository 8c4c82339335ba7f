"""Results as tables: typed rows, and from them frames, CSV, JSON and Parquet.

``tables(run)["pods"]``. Rows are made when they are read, so a table that nobody asks for costs
nothing. A value that is not there is None: an empty cell, null in JSON and in frames.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

import msgspec
import orjson

from kubescene.errors import ConfigurationError
from kubescene.results import rows
from kubescene.results.cost.bill import Bill
from kubescene.results.cost.prices import Prices
from kubescene.results.cost.rows import (
    CostRow,
    CostSeriesRow,
    InstanceRow,
    cost_rows,
    cost_series_rows,
    instance_rows,
)
from kubescene.results.measures import measure_rows
from kubescene.results.measures.own import OwnFunction
from kubescene.results.opening import open_run
from kubescene.results.over_time.requests import (
    TrafficRow,
    WindowRow,
    traffic_rows,
    window_rows,
)
from kubescene.results.over_time.scaling import ScalingRow, scaling_rows
from kubescene.results.over_time.series import (
    CHANGE,
    Every,
    SeriesRow,
    WorkloadSeriesRow,
    series_rows,
    workload_series_rows,
)
from kubescene.results.over_time.workloads import (
    BudgetRow,
    RolloutRow,
    WorkloadRow,
    budget_rows,
    rollout_rows,
    workload_rows,
)
from kubescene.results.sources import RunSource

if TYPE_CHECKING:
    import polars

LABELS = "labels"
Row = TypeVar("Row", bound=msgspec.Struct)


class Table(Generic[Row]):
    """Rows of one kind, which ``make`` gives as often as it is called."""

    def __init__(self, name: str, row_type: type[Row], make: Callable[[], Iterable[Row]]) -> None:
        self.name = name
        self.row_type = row_type
        self._make = make

    @property
    def columns(self) -> tuple[str, ...]:
        return self.row_type.__struct_fields__

    def with_labels(self, keys: Sequence[str]) -> "Table[Row]":
        """The same with a column for each of these labels: ``labels.app``, None if there is none.

        Only for tables whose rows have labels: pods and nodes.
        """
        if LABELS not in self.columns:
            raise ConfigurationError(f"the table {self.name} has no labels; pods and nodes have")
        return LabelledTable(self, keys)

    @property
    def rows(self) -> list[Row]:
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._make())

    def frame(self) -> "polars.DataFrame":
        """A polars frame; amounts of other resources are JSON text.

        A column with a sum that does not fit into 64 bits has floating-point numbers.
        """
        pl = polars_module()
        types = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
        kinds = {name: types.get(kind, pl.String) for name, kind in self.kinds().items()}
        values = [self._cells(row) for row in self]
        for place, (name, kind) in enumerate(kinds.items()):
            if kind == pl.Int64 and any(_is_beyond(row[place]) for row in values):
                kinds[name] = pl.Float64
        frame: polars.DataFrame = pl.DataFrame(values, schema=kinds, orient="row")
        return frame

    def to_dict(self) -> dict[str, Any]:
        """The values by column: ``pandas.DataFrame(table.to_dict())``."""
        values = [self._cells(row) for row in self]
        return {name: [row[at] for row in values] for at, name in enumerate(self.columns)}

    def csv(self) -> str:
        """A header and one line per row."""
        return "".join(self.csv_lines())

    def csv_lines(self) -> Iterator[str]:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self:
            writer.writerow(map(_written, self._cells(row)))
            yield text.getvalue()
            text.seek(0)
            text.truncate()
        yield text.getvalue()

    def json(self) -> bytes:
        """A list of objects, one a line."""
        return b"".join(self.json_lines())

    def json_lines(self) -> Iterator[bytes]:
        begin = b"["
        for row in self:
            yield begin + b"\n" + msgspec.json.encode(self._told(row))
            begin = b","
        yield b"[]\n" if begin == b"[" else b"\n]\n"

    def parquet(self, path: str | Path) -> None:
        self.frame().write_parquet(path)

    def kinds(self) -> dict[str, type]:
        """The plain type of each column, whether or not it may be absent."""
        return _kinds(self.row_type)

    def values(self, row: Row) -> list[Any]:
        """What stands in the columns of a row."""
        return [getattr(row, name) for name in self.columns]

    def _cells(self, row: Row) -> list[Any]:
        return list(map(_cell, self.values(row)))

    def _told(self, row: Row) -> Any:
        """The row as JSON has it."""
        return row

    def __repr__(self) -> str:
        return f"<Table {self.name}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import table_html

        return table_html(self)


class LabelledTable(Table[Row]):
    """A table with columns for some labels, after the others."""

    def __init__(self, table: Table[Row], keys: Sequence[str]) -> None:
        super().__init__(table.name, table.row_type, table._make)
        self._keys = tuple(dict.fromkeys(keys))

    @property
    def columns(self) -> tuple[str, ...]:
        return (*super().columns, *(f"{LABELS}.{key}" for key in self._keys))

    def kinds(self) -> dict[str, type]:
        return {**_kinds(self.row_type), **dict.fromkeys(self.columns[-len(self._keys) :], str)}

    def values(self, row: Row) -> list[Any]:
        labels: dict[str, str] = getattr(row, LABELS)
        own = [getattr(row, name) for name in super().columns]
        return [*own, *(labels.get(key) for key in self._keys)]

    def _told(self, row: Row) -> Any:
        return dict(zip(self.columns, self.values(row), strict=True))


def _kinds(row_type: type[msgspec.Struct]) -> dict[str, type]:
    hints = get_type_hints(row_type)
    return {name: _plain(hints[name]) for name in row_type.__struct_fields__}


def _plain(hint: Any) -> type:
    options = [each for each in get_args(hint) if each is not type(None)]
    found = options[0] if options else hint
    return found if isinstance(found, type) else str


def _cell(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


def _is_beyond(value: Any) -> bool:
    """Whether a number needs more than 64 bits."""
    return value is not None and not -(1 << 63) <= value < 1 << 63


def _written(value: Any) -> Any:
    """As JSON writes it, not Python."""
    return str(value).lower() if isinstance(value, bool) else value


def polars_module() -> Any:
    """polars, which comes with an extra."""
    try:
        import polars
    except ImportError:
        raise ConfigurationError(
            "frames and Parquet need polars: pip install 'kubescene[frames]'"
        ) from None
    return polars


def tables(
    where: object,
    prices: Prices | None = None,
    own: Sequence[OwnFunction] = (),
    every: Every = CHANGE,
) -> Mapping[str, Table[Any]]:
    """All tables of a run, by name.

    With ``prices``, the measures include what it costs; ``own`` are measures of one's own.
    Series have a row at each change, or ``every`` so often (`every_of`).
    """
    source = open_run(where)
    paid = _paid(source, prices, every)
    made = (*_tables(source, prices, own), *_over_time(source, every), *paid)
    return {table.name: table for table in made}


def _tables(
    source: RunSource, prices: Prices | None, own: Sequence[OwnFunction]
) -> Iterator[Table[Any]]:
    yield Table("pods", rows.PodRow, lambda: rows.pod_rows(source.ledger))
    yield Table("nodes", rows.NodeRow, lambda: rows.node_rows(source.ledger))
    yield Table("steps", rows.StepRow, lambda: rows.step_rows(source.ledger))
    yield Table("allocation", rows.AllocationRow, lambda: rows.allocation_rows(source.ledger))
    yield Table("attempts", rows.AttemptRow, lambda: rows.attempt_rows(source))
    yield Table("preemptions", rows.PreemptionRow, lambda: rows.preemption_rows(source.ledger))
    yield Table("outcomes", rows.OutcomeRow, lambda: rows.outcome_rows(source.ledger))
    yield Table("utilization", rows.UtilizationRow, lambda: rows.utilization_rows(source.ledger))
    yield Table("facts", rows.FactRow, lambda: rows.fact_rows(source))
    yield Table("measures", rows.MeasureRow, lambda: measure_rows(source, prices, own))


def _paid(source: RunSource, prices: Prices | None, every: Every) -> Iterator[Table[Any]]:
    def bill() -> Bill:
        return Bill(source.ledger, prices)

    yield Table("instances", InstanceRow, lambda: instance_rows(bill()))
    yield Table("costs", CostRow, lambda: cost_rows(bill()))
    yield Table("cost_series", CostSeriesRow, lambda: cost_series_rows(bill(), every))


def _over_time(source: RunSource, every: Every) -> Iterator[Table[Any]]:
    yield Table("workloads", WorkloadRow, lambda: workload_rows(source.ledger))
    yield Table("rollouts", RolloutRow, lambda: rollout_rows(source.ledger))
    yield Table("budgets", BudgetRow, lambda: budget_rows(source.ledger))
    yield Table("scaling", ScalingRow, lambda: scaling_rows(source))
    yield Table("traffic", TrafficRow, lambda: traffic_rows(source))
    yield Table("windows", WindowRow, lambda: window_rows(source))
    yield Table("series", SeriesRow, lambda: series_rows(source.ledger, every))
    yield Table(
        "workload_series",
        WorkloadSeriesRow,
        lambda: workload_series_rows(source.ledger, every),
    )
