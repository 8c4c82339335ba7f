"""What docstrings and design notes put between backticks exists."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kubescene

SOURCE = Path(kubescene.__file__).parent
ROOT = Path(__file__).parent.parent
QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")
WORD = re.compile(r"\w+")
NAME = re.compile(r"[a-z_]+\.[\w.]+|[A-Z][a-z]+[A-Z]\w+")
"""In notes, where other things are quoted, too: dotted names, and names in capitals and small."""
OTHERS = {
    "CheckScenarioStepPhase",
    "DecompressionStream",
    "OnError",
    "RenewDeadline",
    "devices_gpu_example_com",
    "grpc.aio",
    "latency_p95",
    "pyproject.toml",
    "queue_length",
    "rest.HTTPClientFor",
}
"""Names of others: of a KEP, of Go, of a browser, of a library, of somebody's devices."""


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def known() -> frozenset[str]:
    """All words of the source that are not between backticks, and the names of its files."""
    words = {"py", "kubescene", *(path.stem for path in texts())}
    for path, text in texts().items():
        words.update(WORD.findall(QUOTED.sub(" ", text)), path.relative_to(SOURCE).parts)
    for folder in ("tests", "bench", "examples", "docs/reference"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml", ".md"):
                words.update(WORD.findall(path.name))
    return frozenset(words)


def unknown(name: str) -> bool:
    return name not in OTHERS and not known().issuperset(name.rstrip(".").split("."))


def in_docstrings() -> Iterator[str]:
    for path, text in texts().items():
        for name in filter(unknown, QUOTED.findall(text)):
            yield f"{path.relative_to(SOURCE)}: {name}"


def in_notes() -> Iterator[str]:
    for path in sorted((ROOT / "docs" / "design").glob("*.md")):
        for name in filter(NAME.fullmatch, QUOTED.findall(path.read_text())):
            if unknown(name):
                yield f"{path.name}: {name}"


def test_docstrings_name_what_is_there() -> None:
    assert list(in_docstrings()) == []


def test_notes_name_what_is_there() -> None:
    assert list(in_notes()) == []
