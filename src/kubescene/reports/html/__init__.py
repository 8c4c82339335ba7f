"""``report.html``: one page of a run, complete in itself.

What it shows is collected first (`contents`, plain data), then put into words (`sections`) and
written beside the style and the modules of `kubescene.ui` (`page`). Nothing is fetched when it is
opened.
"""

from pathlib import Path

from kubescene.reports.html.collection import contents_of
from kubescene.reports.html.page import page
from kubescene.reports.html.shell import write_page
from kubescene.results.opening import open_run


def report_html(run: object) -> str:
    """The page of a run: a directory, a `Run`, or whatever else results are read from."""
    return page(contents_of(open_run(run)))


def write_report(run: object, path: str | Path) -> Path:
    """Write the page; an existing file is replaced."""
    return write_page(report_html(run), path)
