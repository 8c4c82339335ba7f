"""``report.html`` of a traffic run: one page, complete in itself.

The charts are drawn here (`charts`, SVG out of the result), so that the page needs a script only
for its theme and for opening the decision that somebody clicked at.
"""

from pathlib import Path

from kubescene.reports.html.shell import write_page
from kubescene.reports.html.traffic.page import traffic_page
from kubescene.traffic import TrafficResult


def write_traffic_report(result: TrafficResult, path: str | Path) -> Path:
    """Write the page; an existing file is replaced."""
    return write_page(traffic_page(result), path)


__all__ = ["traffic_page", "write_traffic_report"]
