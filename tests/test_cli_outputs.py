"""``--out``: what it wrote is told, and nothing of somebody else's is overwritten."""

import json
from pathlib import Path

import pytest

from commands import kubescene
from kubescene.results.output import holds_run

EXAMPLES = Path(__file__).parent.parent / "examples"
SCENARIO = str(EXAMPLES / "01-first-scenario" / "scenario.yaml")
TRAFFIC = str(EXAMPLES / "traffic" / "step.yaml")

PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 5}]}}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    for seed in ("1", "2"):
        out = str(folder / seed)
        assert kubescene("run", SCENARIO, "--seed", seed, "--out", out).returncode == 0
    return str(folder / "1"), str(folder / "2")


def test_a_run_says_where_it_is_and_what_it_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = kubescene("run", SCENARIO, "--out", str(out), "--report")
    assert first.stdout.endswith(f"Results are in {out}\nThe page is {out / 'report.html'}\n")
    again = kubescene("run", SCENARIO, "--out", str(out))
    assert again.stdout.endswith(f"Results are in {out}, instead of those of an earlier run\n")


def test_files_that_no_run_left_stay(tmp_path: Path) -> None:
    (tmp_path / "result.yaml").write_text("mine")
    done = kubescene("run", SCENARIO, "--out", str(tmp_path))
    assert done.returncode == 2
    assert "has result.yaml, and no run left it there: choose another --out" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["result.yaml"]
    assert (tmp_path / "result.yaml").read_text() == "mine"


def test_other_files_beside_a_run_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert kubescene("run", SCENARIO, "--out", str(tmp_path)).returncode == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_that_was_cut_short_may_be_replaced(tmp_path: Path) -> None:
    kubescene("run", SCENARIO, "--out", str(tmp_path))
    (tmp_path / "summary.json").unlink()
    assert holds_run(tmp_path)
    assert kubescene("run", SCENARIO, "--out", str(tmp_path)).returncode == 0


def test_traffic_says_where_it_is(tmp_path: Path) -> None:
    done = kubescene("traffic", "run", TRAFFIC, "--out", str(tmp_path / "t"), "--report")
    told = f"Results are in {tmp_path / 't'}\nThe page is {tmp_path / 't' / 'report.html'}\n"
    assert done.stdout.endswith(told)
    as_json = kubescene("traffic", "run", TRAFFIC, "--out", str(tmp_path / "t"), "--json")
    assert json.loads(as_json.stdout)["name"] == "step"
    assert f"Results are in {tmp_path / 't'}\n" in as_json.stderr


def test_a_run_and_traffic_do_not_take_each_others_place(
    tmp_path: Path, runs: tuple[str, str]
) -> None:
    kubescene("traffic", "run", TRAFFIC, "--out", str(tmp_path / "t"))
    over = kubescene("run", SCENARIO, "--out", str(tmp_path / "t"))
    assert (over.returncode, "has summary.json" in over.stderr) == (2, True)
    other = kubescene("traffic", "run", TRAFFIC, "--out", runs[0])
    assert (other.returncode, "has summary.json" in other.stderr) == (2, True)
    assert holds_run(Path(runs[0]))


@pytest.mark.parametrize("name", ["c.md", "c.json", "c.html", "c.txt", "c"])
def test_a_comparison_is_written_again_but_over_nothing_else(
    tmp_path: Path, runs: tuple[str, str], name: str
) -> None:
    out = tmp_path / name
    for _ in range(2):
        done = kubescene("compare", *runs, "--out", str(out))
        # Another seed alone is no difference.
        assert (done.returncode, done.stderr) == (0, f"The comparison is in {out}\n")
    out.write_text("mine")
    done = kubescene("compare", *runs, "--out", str(out))
    assert "exists, and this command did not write it" in done.stderr
    assert (done.returncode, out.read_text()) == (2, "mine")


def test_a_comparison_as_a_page_shows_who_moved_and_the_measures(tmp_path: Path) -> None:
    config = tmp_path / "packed.yaml"
    config.write_text(PACKED)
    zones, out = EXAMPLES / "10-zone-lost" / "scenario.yaml", tmp_path / "c.html"
    kubescene("run", zones, "--out", tmp_path / "a")
    kubescene("run", zones, "--out", tmp_path / "b", "--scheduler-config", config)
    kubescene("compare", tmp_path / "a", tmp_path / "b", "--out", out)
    page = out.read_text()
    assert page.startswith("<!doctype html>")
    assert "6 pods placed otherwise: NodeResourcesFit moved 4, PodTopologySpread moved 2" in page
    assert "<title>33% more in B</title>" not in page  # of the larger one: 75 % to 100 % is 25 %
    assert "<title>25% more in B</title>" in page
    assert "<title>100% less in B</title>" in page
    assert page.count("<code>default/web-3</code>") == 1


def test_a_comparison_as_nobody_knows_is_refused(tmp_path: Path, runs: tuple[str, str]) -> None:
    done = kubescene("compare", *runs, "--out", str(tmp_path / "c.pdf"))
    assert (done.returncode, "no comparison is written as .pdf" in done.stderr) == (2, True)
    assert not (tmp_path / "c.pdf").exists()


def test_tables_and_pages_replace_only_their_like(tmp_path: Path, runs: tuple[str, str]) -> None:
    for command, name in (
        (("results", runs[0], "--table", "pods", "--format", "csv"), "pods.csv"),
        (("results", runs[0], "--table", "pods", "--format", "json"), "pods.json"),
        (("report", runs[0]), "page.html"),
    ):
        out = tmp_path / name
        for _ in range(2):
            assert kubescene(*command, "--out", str(out)).returncode == 0
        out.write_text("mine")
        refused = kubescene(*command, "--out", str(out))
        assert "exists, and this command did not write it" in refused.stderr
        assert (refused.returncode, out.read_text()) == (2, "mine")
