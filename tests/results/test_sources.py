"""The same run, read from memory and from its directory, tells the same."""

from pathlib import Path

import pytest

import kubescene
from kubescene.errors import ConfigurationError
from kubescene.results.sources import open_run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "name", ["01-first-scenario", "07-node-fails", "09-preemption", "11-devices"]
)
def test_memory_and_directory_tell_the_same(name: str, tmp_path: Path) -> None:
    run = kubescene.run(EXAMPLES / name / "scenario.yaml", out=tmp_path)
    memory, directory = open_run(run).tables(), open_run(tmp_path).tables()
    for table in memory:
        assert memory[table].rows == directory[table].rows


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no run directory"):
        open_run(tmp_path)
    with pytest.raises(ConfigurationError, match="there is no run at"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="not from int"):
        open_run(3)
