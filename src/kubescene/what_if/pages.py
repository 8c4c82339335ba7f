"""An answer as a page that can be passed around: one file that fetches nothing."""

from collections.abc import Iterator
from pathlib import Path

from kubescene.markup import Markup, h, table
from kubescene.reports.html.sections import navigation
from kubescene.reports.html.shell import PAGES, STYLE, Shell, footer, write_page
from kubescene.version import __version__
from kubescene.what_if.answers import Answer, AnswerTable

SHELL = Shell((STYLE,), PAGES / "comparison.js")


def write_answer(answer: Answer, path: Path) -> Path:
    """Write the page; an existing file is replaced. `ConfigurationError` if that cannot be."""
    return write_page(answer_page(answer), path)


def answer_page(answer: Answer) -> str:
    """The whole document, in the order of every answer."""
    return SHELL.document(f"What if: {answer.question}", __version__, _body(answer))


def _body(answer: Answer) -> Iterator[Markup]:
    names = [("unknown", "Not known", len(answer.unknown))] if answer.unknown else []
    for number, each in enumerate(answer.tables):
        names.append((f"table-{number}", each.title, len(each.rows)))
    yield navigation([*names, ("measures", "Measures", len(answer.measures))])
    title = h("div", h("h1", f"What if: {answer.question}"), class_="title")
    head = h("header", title, id="top")
    unknown = None
    if answer.unknown:
        listed = h("ul", (h("li", each) for each in answer.unknown))
        unknown = h("section", h("h2", "What this does not know"), listed, id="unknown")
    said = h("section", h("p", h("b", answer.sentence), class_="story"), id="answer")
    tables = (_section(f"table-{n}", each) for n, each in enumerate(answer.tables))
    measures = h(
        "section",
        h("h2", "Measures"),
        table(
            ("measure", "value"),
            [(name, f"{value:,}") for name, value in answer.measures.items()],
            numbers=("value",),
        ),
        id="measures",
    )
    closer = None
    if answer.closer:
        closer = h("section", h("h2", "Look closer"), (h("p", each) for each in answer.closer))
    yield h("main", head, unknown, said, tables, measures, closer, footer(__version__))


def _section(place: str, listed: AnswerTable) -> Markup:
    numbers = [
        name
        for at, name in enumerate(listed.columns)
        if all(isinstance(row[at], int | float) for row in listed.rows)
    ]
    rows = [[cell if isinstance(cell, str) else f"{cell:,}" for cell in row] for row in listed.rows]
    return h(
        "section", h("h2", listed.title), table(listed.columns, rows, numbers=numbers), id=place
    )
