"""What modules say of their types in comments holds; TypeScript's checker says so."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kubescene.ui.bundling import STATIC

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".tools" / "typescript" / "node_modules" / ".bin" / "tsc"
PROGRAM = str(INSTALLED) if INSTALLED.exists() else shutil.which("tsc")


@pytest.mark.skipif(PROGRAM is None, reason="no tsc: scripts/install-tsc installs it, with npm")
def test_types_of_the_pages() -> None:
    command = [str(PROGRAM), "--project", str(STATIC.parent / "tsconfig.json")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")
