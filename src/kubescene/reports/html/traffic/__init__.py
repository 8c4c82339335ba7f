"""``report.html`` of a traffic run: one page, complete in itself.

The charts are drawn here (`charts`, SVG out of the result), so that the page needs a script only
for its theme and for opening the decision that somebody clicked at.
"""

from pathlib import Path

from kubescene.errors import ConfigurationError
from kubescene.reports.html.traffic.page import traffic_page
from kubescene.traffic import TrafficResult


def write_traffic_report(result: TrafficResult, path: str | Path) -> Path:
    """Write the page; an existing file is replaced."""
    file = Path(path)
    text = traffic_page(result)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the report cannot be written to {file}: {error.strerror}; choose another --out"
        ) from error
    return file


__all__ = ["traffic_page", "write_traffic_report"]
