"""``report.html``: one page of a run, complete in itself.

What it shows is collected first (`contents`, plain data), then put into words (`sections`) and
written beside the style and the scripts of ``assets`` (`page`). Nothing is fetched when it is
opened.
"""

from pathlib import Path

from kubescene.errors import ConfigurationError
from kubescene.reports.html.collecting import contents_of
from kubescene.reports.html.page import page
from kubescene.results.sources import open_run


def report_html(run: object) -> str:
    """The page of a run: a directory, a `Run`, or whatever else results are read from."""
    return page(contents_of(open_run(run)))


def write_report(run: object, path: str | Path) -> Path:
    """Write the page; an existing file is replaced."""
    file = Path(path)
    text = report_html(run)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the report cannot be written to {file}: {error.strerror}; choose another --out"
        ) from error
    return file
