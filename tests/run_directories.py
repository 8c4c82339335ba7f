"""What a run leaves behind, as tests expect it."""

from pathlib import Path

from kubescene.results.output import TIMELINE_FILE
from kubescene.results.summary import Summary, summarize
from kubescene.timeline.files import TimelineFile

RUN_FILES = [
    "explanations.jsonl",
    "ledger.jsonl",
    "pods.index",
    "result.yaml",
    "summary.json",
    "timeline.jsonl",
]


def files_of(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}


def read_log(run: str | Path) -> TimelineFile:
    """The log of a run, which may still go on; `ConfigurationError` names a damaged line."""
    return TimelineFile(Path(run) / TIMELINE_FILE)


def read_summary(run: str | Path) -> Summary:
    """The account of a run, folded anew from its log."""
    log = read_log(run)
    summary = summarize(log, scenario=log.header.scenario, seed=log.header.seed)
    summary.version = log.header.kubescene
    return summary
