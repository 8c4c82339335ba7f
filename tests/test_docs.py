"""What the documentation shows is what happens."""

import contextlib
import io
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup

import kubescene
from kubescene.cli.app import app
from kubescene.cli.bench.command import bench
from kubescene.scheduler.configuration import parse_configuration

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs/tutorial/first-scenario.md"


def blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", file.read_text(), re.DOTALL)


def test_the_tutorials_scenario_plays(tmp_path: Path) -> None:
    (text,) = blocks(TUTORIAL, "yaml")
    file = tmp_path / "tiny.yaml"
    file.write_text(text)
    placed = kubescene.run(file).summary.placements
    assert [(p.step, p.node) for p in placed] == [
        ("2.1", "node-0"),
        ("2.2", "node-1"),
        ("2.3", "node-0"),
    ]


def test_the_tutorials_python_prints_what_it_says() -> None:
    (code,) = blocks(TUTORIAL, "python")
    shown = TUTORIAL.read_text().split("prints\n\n```\n")[1].split("```")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(TUTORIAL), "exec"), {})
    assert printed.getvalue() == shown


def test_the_readme_shows_the_demo() -> None:
    expected = (ROOT / "examples/01-first-scenario/expected.txt").read_text()
    shown = blocks(ROOT / "README.md", "")[1]
    assert shown.splitlines() == [line.rstrip() for line in expected.splitlines()]


PAGES = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/**/*.md")),
    *sorted(ROOT.glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_the_options_that_pages_give_them(page: Path) -> None:
    known = options_by_command()
    for command, rest in re.findall(r"kubescene (\w+)((?: [^\n`|#>]+)?)", code_of(page)):
        if command in known:
            asked = set(re.findall(r"(?<= )--[a-z-]+", rest))
            assert asked <= known[command], f"{page.name}: kubescene {command}{rest}"


def code_of(page: Path) -> str:
    """What a page shows as code, in lines of its own or within a sentence."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", page.read_text(), re.DOTALL))


@cache
def options_by_command() -> dict[str, set[str]]:
    commands = typer.main.get_command(app)
    assert isinstance(commands, TyperGroup)
    known = {name: options_of(command) for name, command in commands.commands.items()}
    return {**known, "bench": options_of(typer.main.get_command(bench))}


def options_of(command: object) -> set[str]:
    """Those of a command and of the commands below it."""
    inner = command.commands.values() if isinstance(command, TyperGroup) else ()
    own = (each.opts + each.secondary_opts for each in getattr(command, "params", ()))
    return {"--help"}.union(*own, *map(options_of, inner))


def test_the_note_on_layers_draws_those_that_are_checked() -> None:
    (drawn,) = blocks(ROOT / "docs/design/0001-layers.md", "")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    lines = drawn.replace(" ·\n", " · ").splitlines()
    *above, lowest = [line.split("  ")[0] for line in lines]
    beside = [" | ".join(f"kubescene.{name}" for name in each.split(" · ")) for each in above]
    assert [*beside, *(f"kubescene.{name}" for name in lowest.split(" · "))] == layers


def test_the_design_notes_are_listed_by_number() -> None:
    notes = sorted(page.name for page in (ROOT / "docs/design").glob("0*.md"))
    index = (ROOT / "docs/design/README.md").read_text()
    assert re.findall(r"^\| \[\d{4}\]\((.*?)\)", index, re.MULTILINE) == notes


GUIDES = ROOT / "docs/guides"


@pytest.mark.parametrize(
    "name", ["library.md", "notebooks.md", "pod-groups.md", "scheduler-configuration.md"]
)
def test_a_guide_prints_what_it_says(name: str) -> None:
    guide = GUIDES / name
    world: dict[str, object] = {}
    pairs = re.findall(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", guide.read_text(), re.S)
    assert len(pairs) == len(blocks(guide, "python"))
    for code, shown in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(guide), "exec"), world)
        assert printed.getvalue() == shown


def test_the_guide_to_plugins_prints_what_it_says() -> None:
    guide = GUIDES / "plugins.md"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("".join(blocks(guide, "python")), str(guide), "exec"), {"__name__": "guide"})
    shown = re.findall(r"prints\n\n```\n(.*?)```", guide.read_text(), re.S)
    assert printed.getvalue() == "".join(shown)


def test_the_guide_to_plugins_shows_the_samples() -> None:
    """Types apart, what it shows of NodeNumber is the file."""
    shown = blocks(GUIDES / "plugins.md", "python")[0]
    sample = (ROOT / "examples/plugins/node_number.py").read_text()
    body = [line for line in shown.splitlines() if line.startswith("        ")]
    assert body
    assert all(line in sample for line in body)


CONTROLLERS = ROOT / "docs/guides/controllers.md"


def test_the_guide_to_controllers_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "".join(blocks(CONTROLLERS, "python"))
    scenario, node_set = blocks(CONTROLLERS, "yaml")
    (tmp_path / "grow.yaml").write_text(scenario)
    monkeypatch.chdir(tmp_path)
    shown = re.findall(r"prints\n\n```\n(.*?)```", CONTROLLERS.read_text(), re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(CONTROLLERS), "exec"), {"__name__": "autoscaler"})
    assert printed.getvalue() == "".join(shown)
    cluster = kubescene.Cluster()
    cluster.create(yaml.safe_load(node_set))
    assert len(cluster.settle().list("nodes")) == 1000


def test_the_configuration_of_the_guide_is_accepted() -> None:
    profiles, extenders = blocks(GUIDES / "scheduler-configuration.md", "yaml")
    options = parse_configuration(profiles.encode(), source="the guide")
    assert [profile.scheduler_name for profile in options.profiles] == [
        "default-scheduler",
        "only-zone-a",
    ]
    (extender,) = parse_configuration(extenders.encode(), source="the guide").extenders
    assert extender.managed_resources == {"example.com/gpu"}


def test_the_autoscaling_guides_back_test_prints_what_it_says() -> None:
    page = ROOT / "docs/guides/horizontal-autoscaling.md"
    shown = page.read_text().split("prints\n\n```\n")[1].split("```")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks(page, "python")[0], str(page), "exec"), {})
    assert printed.getvalue() == shown
