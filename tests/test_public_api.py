"""What users may import: exactly the names in ``__all__``, and cheaply."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

PUBLIC = [
    "kubescene",
    "kubescene.autoscalers",
    "kubescene.clock",
    "kubescene.controllers",
    "kubescene.experiments",
    "kubescene.results",
    "kubescene.scenario",
    "kubescene.scheduler",
    "kubescene.store",
    "kubescene.testing",
    "kubescene.traffic",
]
HEAVY = ["numpy", "orjson", "msgspec", "rich", "typer", "yaml"]

NAMES = {
    "kubescene": [
        "Cluster",
        "KubesceneError",
        "Run",
        "ScenarioBuilder",
        "SizingResult",
        "__version__",
        "run",
        "size",
    ],
    "kubescene.testing": [
        "make_deployment",
        "make_node",
        "make_pod",
        "make_priority_class",
        "make_replica_set",
    ],
}
"""The narrowest surfaces by name: a change here is a change for every user."""


def visible(module: ModuleType) -> set[str]:
    """Public names that are neither submodules nor what a module imports for itself."""
    names = {name for name in dir(module) if not name.startswith("_")}
    return {name for name in names if not isinstance(getattr(module, name), ModuleType)}


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_what_is_visible(name: str) -> None:
    module = importlib.import_module(name)
    public = {entry for entry in module.__all__ if not entry.startswith("_")}
    assert visible(module) == public
    assert all(hasattr(module, entry) for entry in module.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_sorted(name: str) -> None:
    def rank(entry: str) -> tuple[int, str]:
        constant, kind = entry.isupper(), entry[:1].isupper()
        return (0 if constant else 1 if kind else 2, entry)

    entries = importlib.import_module(name).__all__
    assert list(entries) == sorted(entries, key=rank)
    assert len(set(entries)) == len(entries)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_narrow_surfaces_are_known_by_heart(name: str) -> None:
    assert list(importlib.import_module(name).__all__) == NAMES[name]


def test_an_unknown_name_is_an_attribute_error() -> None:
    import kubescene

    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        kubescene.nonsense  # noqa: B018


def imported_by(statement: str) -> set[str]:
    """Which of the heavy packages a fresh process has loaded after the statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(set(sys.modules) & {set(HEAVY)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_importing_kubescene_is_light() -> None:
    assert imported_by("import kubescene") == set()


def test_running_from_python_needs_no_terminal_libraries() -> None:
    assert not imported_by("from kubescene import Cluster") & {"rich", "typer"}


def test_asking_for_help_does_not_load_the_simulator() -> None:
    assert not imported_by("import kubescene.cli") & {"numpy", "yaml"}
