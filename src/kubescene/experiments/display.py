"""A matrix for people: text for a terminal, HTML for a notebook."""

from collections.abc import Iterator, Sequence

from kubescene.experiments.combinations import OWN
from kubescene.experiments.estimates import CONFIDENCE, Estimate
from kubescene.experiments.measures import USUAL
from kubescene.experiments.results import MatrixResult, MatrixRow
from kubescene.markup import ROWS_SHOWN, Markup, excerpt, h
from kubescene.reports.tables import ABSENT, aligned, cell

LONGEST_ERROR = 100
NOTE = f"± is the {CONFIDENCE:.0%} confidence interval of the mean over seeds (Student's t)"


def text_lines(
    result: MatrixResult, measures: Sequence[str] = (), width: int | None = None
) -> Iterator[str]:
    """A header and one line per combination, then what the numbers are.

    In a terminal that is too narrow, a few lines per combination instead.
    """
    names = list(measures) or usual(result)
    header, rows = columns_of(result, names), list(cells_of(result, names))
    upper = [each.upper() for each in header]
    widths = [max(map(len, column)) for column in zip(upper, *rows, strict=True)]
    lines = [aligned(row, widths) for row in (upper, *rows)]
    if width is not None and max(map(len, lines)) > width + 1:  # with the end of the line
        lines = [*tall_lines(len(words_of(result)), header, rows)]
    yield from lines
    told = list(notes(result, names))
    left = {name for row in result.rows for name in row.measures} - set(names)
    if left and not measures:
        told.append(f"{len(left)} more measures: --measure NAME, or --format csv for all of them")
    yield from ("\n" if told else "", *(f"{note}\n" for note in told))


def tall_lines(words: int, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Every combination with a line for each of its numbers."""
    widest = max(map(len, header[words:]))
    for number, row in enumerate(rows):
        yield "\n" if number else ""
        yield ", ".join(row[:words]) + "\n"
        for name, value in zip(header[words:], row[words:], strict=True):
            yield f"  {name.ljust(widest)}   {value}\n"


def usual(result: MatrixResult) -> list[str]:
    """A few measures that most people want, as far as there are values."""
    return [name for name in USUAL if any(name in row.measures for row in result.rows)]


def notes(result: MatrixResult, names: Sequence[str]) -> Iterator[str]:
    """What must be known to read the numbers."""
    shown = [row.measures[name] for row in result.rows for name in names if name in row.measures]
    if any(each.n > 1 for each in shown):
        yield NOTE
    if any(each.n > 1 for each in shown) and all(not each.deviation for each in shown):
        yield "every seed gave the same: nothing that is shown here depends on chance"
    if any(row.measures[n].n < row.runs for row in result.rows for n in names if n in row.measures):
        yield "(n of m) means that the others had no value; the mean is over those n"


def columns_of(result: MatrixResult, names: Sequence[str]) -> list[str]:
    return [*words_of(result), "runs", *names, *(["error"] if result.failed else [])]


def words_of(result: MatrixResult) -> list[str]:
    """The columns that tell rows apart; those in which there is nothing are left out."""
    found = ["scenario"]
    if any(row.configuration != OWN for row in result.rows):
        found.append("configuration")
    if any(row.settings for row in result.rows):
        found.append("settings")
    return found


def cells_of(result: MatrixResult, names: Sequence[str]) -> Iterator[list[str]]:
    words = words_of(result)
    for row in result.rows:
        values = [shown(row.measures.get(name), row.runs) for name in names]
        error = [cell(shortened(row.error))] if result.failed else []
        yield [*(cell(getattr(row, word)) for word in words), runs_of(row), *values, *error]


def runs_of(row: MatrixRow) -> str:
    """How many were played; of how many, if some failed; in how many expectations do not hold."""
    text = f"{row.runs} of {row.runs + row.failed}" if row.failed else str(row.runs)
    return f"{text} ({row.unmet} unmet)" if row.unmet else text


def shown(value: Estimate | None, runs: int) -> str:
    """The mean, with half the width of its interval if there is one."""
    if value is None:
        return ABSENT
    text = f"{value.mean:.6g}"
    if value.half_width is not None:
        text += f" ± {value.half_width:.2g}"
    return text if value.n == runs else f"{text} ({value.n} of {runs})"


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR - 1]}…"


def matrix_html(result: MatrixResult) -> Markup:
    """The table for a notebook, bounded as others are."""
    names = usual(result) if len(result.measures) > len(USUAL) else result.measures
    columns = columns_of(result, names)
    rest = f"and {len(result.rows) - ROWS_SHOWN} more rows: .rows and .frame() have all of them"
    listed = excerpt(columns, cells_of(result, names), rest=rest, numbers=names)
    title = h("p", h("b", repr(result)[1:-1]))
    told = (h("p", h("i", each)) for each in notes(result, names))
    return h("div", title, listed, told, class_="kubescene")
