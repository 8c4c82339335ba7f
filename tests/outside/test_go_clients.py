"""The Go module in ``clients/go``: its own tests, its vet, its format, and a controller with it."""

import os
import shutil
import subprocess

import pytest

from kubescene.types import JsonObject
from outside_runs import create, done, scenario, stage
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


def painted(names: str) -> list[JsonObject]:
    """A ConfigMap for each letter, with a label to be copied, in steps of two."""
    made = [
        create(
            1 + at // 2,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"colour": "red"}},
            },
        )
        for at, name in enumerate(names)
    ]
    return [*made, done(9)]


@pytest.fixture(scope="module")
def loop(go: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("loop") / "loop"
    built = _run(go, "build", "-C", str(SOURCES / "loop"), "-o", str(program), ".")
    assert built.returncode == 0, built.stderr
    return str(program)


@pytest.mark.parametrize("mode", ["", "watch"], ids=["lists", "watches"])
def test_the_loop_of_the_kep_takes_part(loop: str, mode: str) -> None:
    for _ in range(2):
        with stage() as made:
            made.start("loop", f"{loop} {{server}} {mode}")
            run = made.play(scenario(painted("abc"), {"name": "loop"}, simulated=["loop"]))
        assert (run.phase, run.message) == ("Succeeded", "")
        assert [(step, name) for step, _, name in run.told_by("loop")] == [
            ("1.1", "a"),
            ("1.2", "b"),
            ("2.1", "c"),
        ]
        assert run.status["outside"][0]["sameBytes"] is True


@pytest.mark.parametrize("mode", ["", "watch"], ids=["lists", "watches"])
def test_the_loop_of_the_kep_reacts_before_the_simulation(loop: str, mode: str) -> None:
    with stage() as made:
        made.start("loop", f"{loop} {{server}} {mode}")
        run = made.play(scenario(painted("abc"), {"name": "loop"}))
    assert (run.phase, run.message) == ("Succeeded", "")
    assert [(step, name) for step, _, name in run.told_by("loop")] == [
        ("1.0", "a"),
        ("1.0", "b"),
        ("2.0", "c"),
    ]


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    return subprocess.run(
        command, cwd=MODULE, capture_output=True, text=True, check=False, env=environment
    )
