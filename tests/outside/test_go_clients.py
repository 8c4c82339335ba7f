"""The Go module in ``clients/go``: its own tests, its vet, its format."""

import os
import shutil
import subprocess

import pytest

from real_programs import ROOT, SOURCES

MODULE = ROOT / "clients" / "go"


@pytest.fixture(scope="module")
def go() -> str:
    """The Go tool; without it these tests are skipped, and say so."""
    found = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
    if found is None:
        pytest.skip("Go is not installed: the Go client is not tested")
    return found


@pytest.mark.parametrize("verb", ["vet", "test"])
def test_the_module_passes(go: str, verb: str) -> None:
    done = _run(go, verb, "./...")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sources_are_formatted(go: str) -> None:
    done = _run(str(shutil.which("gofmt", path=os.path.dirname(os.path.realpath(go)))), "-l", ".")
    assert done.stdout + done.stderr == ""


def test_the_module_needs_the_standard_library_only(go: str) -> None:
    assert _run(go, "list", "-m", "all").stdout.split() == ["kubescene.dev/clients/go"]


def test_what_is_generated_in_the_operator_is_up_to_date(go: str) -> None:
    done = _run(go, "run", "./cmd/kubescene-gen", "-check", str(SOURCES / "operator"))
    assert done.returncode == 0, done.stdout + done.stderr


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    return subprocess.run(
        command, cwd=MODULE, capture_output=True, text=True, check=False, env=environment
    )
