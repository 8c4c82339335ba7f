"""The real programs of Kubernetes: kube-scheduler, kube-controller-manager, kube-apiserver, etcd.

They are found in the directory that ``KUBESCENE_BINARIES`` names, then in ``.tools/bin``, where
``scripts/build-kubernetes`` puts them. A test whose program is not there is skipped, visibly.
"""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "tests" / "outside" / "programs"


def find_program(name: str) -> Path | None:
    """The program of that name, or None."""
    for folder in _folders():
        if os.access(folder / name, os.X_OK):
            return folder / name
    return None


def require_program(name: str, script: str = "") -> Path:
    """The program of that name; without it the test that asks is skipped."""
    found = find_program(name)
    if found is None:
        pytest.skip(
            f"{name} is not here: build it with {script or f'scripts/build-kubernetes {name}'}, "
            "or name a directory that holds it in KUBESCENE_BINARIES"
        )
    return found


def pinned_version(module: str, requirement: str) -> str:
    """Which version of a Go module the sources in ``programs/MODULE`` ask for."""
    text = (SOURCES / module / "go.mod").read_text()
    found = re.search(rf"^(?:require|\t)\s*{re.escape(requirement)} (v\S+)$", text, re.MULTILINE)
    assert found, f"programs/{module}/go.mod does not require {requirement}"
    return found[1]


def _folders() -> list[Path]:
    named = os.environ.get("KUBESCENE_BINARIES")
    return [*([Path(named)] if named else []), ROOT / ".tools" / "bin"]
