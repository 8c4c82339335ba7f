"""Where standard output knows fewer characters, bars are drawn with simpler ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from kubescene.cli.terminals import simpler

EXAMPLES = Path(__file__).parent.parent / "examples"
SCENARIO = str(EXAMPLES / "01-first-scenario" / "scenario.yaml")
TRAFFIC = str(EXAMPLES / "traffic" / "step.yaml")


def said(encoding: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kubescene", *arguments],
        capture_output=True,
        env={"PYTHONIOENCODING": encoding, "PATH": ""},
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode in (0, 1)
    return done.stdout.decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_bars_fall_back(encoding: str) -> None:
    assert "###########.  92% 3.7/4" in said(encoding, "run", SCENARIO)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_traffic_falls_back(encoding: str) -> None:
    shown = said(encoding, "traffic", "run", TRAFFIC)
    assert "Replicas (active; - desired)" in shown
    assert "1 -> 2" in shown


def test_comparisons_fall_back(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        said("ascii", "run", SCENARIO, "--seed", seed, "--out", str(tmp_path / seed), "--quiet")
    runs = str(tmp_path / "1"), str(tmp_path / "2")
    assert "ok: " in said("ascii", "compare", *runs, "--format", "markdown")


def test_what_others_wrote_is_told_by_number_and_the_rest_goes_on() -> None:
    def written(text: str) -> tuple[str | bytes, int]:
        return simpler(UnicodeEncodeError("ascii", text, 0, len(text), "ordinal not in range"))

    assert written("█░") == ("#.", 2)
    assert written("ü█") == ("\\xfc", 1)
    assert written("█ü") == ("#", 1)
    with pytest.raises(UnicodeDecodeError):
        simpler(UnicodeDecodeError("ascii", b"x", 0, 1, "no"))
