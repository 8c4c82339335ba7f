"""What a run leaves behind, as tests expect it."""

from pathlib import Path

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
