"""``kubescene results``: a run as tables, on the terminal or in a file."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kubescene.cli.components import measures_named
from kubescene.cli.files import complain
from kubescene.cli.origins import RunOrigin, opened
from kubescene.cli.outputs import check_file
from kubescene.cli.terminals import terminal_width
from kubescene.errors import ConfigurationError
from kubescene.reports.tables import fitted, text_lines
from kubescene.results.cost.prices import read_prices
from kubescene.results.over_time.series import CHANGE, every_of
from kubescene.results.tables import Table, tables

Format = Literal["table", "csv", "json", "parquet"]
FINE = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWish:
    """Which table, and how."""

    table: str = "measures"
    format: Format = "table"
    out: Path | None = None
    every: str = CHANGE
    prices: Path | None = None
    labels: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()


def show_results(origin: RunOrigin, wish: TableWish) -> int:
    """Print a table, or write it to a file; returns the exit code."""
    if wish.format == "parquet" and wish.out is None:
        raise ConfigurationError("Parquet is not for terminals: name a file by --out")
    prices = None if wish.prices is None else read_prices(wish.prices)
    own = measures_named(wish.measures)
    every = every_of(wish.every)
    with opened(origin) as source:
        found = tables(source, prices, own, every)
        if wish.table not in found:
            raise ConfigurationError(
                f"there is no table {wish.table!r}; there are: {', '.join(found)}"
            )
        table = found[wish.table]
        give(table.with_labels(wish.labels) if wish.labels else table, wish)
    return FINE


def give(table: Table[Any], wish: TableWish) -> None:
    if wish.out is not None:
        save(table, wish.out, wish.format)
        return
    width = terminal_width()
    if wish.format == "table" and width is not None:
        show_fitted(table, width)
        return
    for part in parts(table, wish.format):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def show_fitted(table: Table[Any], width: int) -> None:
    """On a terminal: what fits into it, and a line about the rest."""
    found = fitted(table, width)
    sys.stdout.writelines(found.lines)
    if found.left_out:
        names = ", ".join(found.left_out)
        sys.stdout.flush()
        complain([f"no room for {names}: a pipe (| less -S) and --format csv have everything"])


def save(table: Table[Any], path: Path, form: Format) -> None:
    """Write a file, and say so; `ConfigurationError` if that cannot be."""
    first, *_ = table.columns
    signs = (first, first.upper(), "[]", "PAR1")
    check_file(path, (sign.encode() for sign in signs))
    try:
        write(table, path, form)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror}; choose another --out"
        ) from error
    complain([f"The table {table.name} is in {path}"])


def write(table: Table[Any], path: Path, form: Format) -> None:
    if form == "parquet":
        table.parquet(path)
        return
    with path.open("wb") as file:
        file.writelines(parts(table, form))


def parts(table: Table[Any], form: Format) -> Iterator[bytes]:
    """The text of a table, piece by piece."""
    if form == "csv":
        return (line.encode() for line in table.csv_lines())
    if form == "json":
        return table.json_lines()
    return (line.encode() for line in text_lines(table))
