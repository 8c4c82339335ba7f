"""``kubescene results``: a run as tables, on the terminal or in a file."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kubescene.cli.measures import measures_named
from kubescene.cli.run_origins import Origin, opened
from kubescene.errors import ConfigurationError
from kubescene.reports.tables import text_lines
from kubescene.results.prices import read_prices
from kubescene.results.tables import Table, tables

Format = Literal["table", "csv", "json", "parquet"]
FINE = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which table, and how."""

    table: str = "measures"
    format: Format = "table"
    out: Path | None = None
    prices: Path | None = None
    labels: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()


def show_results(origin: Origin, wish: Wish) -> int:
    """Print a table, or write it to a file; returns the exit code."""
    if wish.format == "parquet" and wish.out is None:
        raise ConfigurationError("Parquet is not for terminals: name a file by --out")
    prices = None if wish.prices is None else read_prices(wish.prices)
    own = measures_named(wish.measures)
    with opened(origin) as source:
        found = tables(source, prices, own)
        if wish.table not in found:
            raise ConfigurationError(
                f"there is no table {wish.table!r}; there are: {', '.join(found)}"
            )
        table = found[wish.table]
        give(table.with_labels(wish.labels) if wish.labels else table, wish)
    return FINE


def give(table: Table[Any], wish: Wish) -> None:
    if wish.out is not None:
        save(table, wish.out, wish.format)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for part in parts(table, wish.format, width):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def save(table: Table[Any], path: Path, form: Format) -> None:
    """Write a file; `ConfigurationError` if that cannot be."""
    try:
        if form == "parquet":
            table.parquet(path)
            return
        with path.open("wb") as file:
            file.writelines(parts(table, form))
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror}; choose another --out"
        ) from error


def parts(table: Table[Any], form: Format, width: int | None = None) -> Iterator[bytes]:
    """The text of a table, piece by piece; ``width`` is that of a terminal."""
    if form == "csv":
        return (line.encode() for line in table.csv_lines())
    if form == "json":
        return table.json_lines()
    return (line.encode() for line in text_lines(table, width))
