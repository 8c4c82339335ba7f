"""The pages about traffic say what is."""

import re
from pathlib import Path

import pytest

from kubescene.traffic import load_run, parse_run, run
from kubescene.traffic.spec.reference_page import reference_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "traffic-run.md"
GUIDE = ROOT / "docs" / "guides" / "traffic.md"
EXAMPLES = ROOT / "examples" / "traffic"


def test_the_reference_page_is_current(update: bool) -> None:
    if update:
        PAGE.write_text(reference_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference_page()


def test_every_field_of_the_spec_is_in_it() -> None:
    page = reference_page()
    for name in ("statInterval", "horizontalInterval", "launchDelay", "deltaV", "noiseEvery"):
        assert f"| `{name}` |" in page


def test_the_guides_runs_are_runs() -> None:
    texts = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert texts
    for text in texts:
        if "kind: TrafficRun" in text:
            assert run(parse_run(text, "guide")).ok


def test_the_guides_python_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(GUIDE), "exec"), {"__name__": "guide"})


def settled(name: str, *settings: str) -> dict[str, float]:
    summary = run(load_run(EXAMPLES / f"{name}.yaml", settings)).summary
    return {field: getattr(summary, field) for field in summary.__struct_fields__}


def test_the_lesson_of_flapping() -> None:
    window = "spec.autoscalers.0.object.spec.behavior.scaleDown.stabilizationWindowSeconds=300"
    assert settled("flapping")["reversals"] >= 10
    assert settled("flapping", window)["reversals"] == 0


def test_the_lesson_of_a_slow_launch() -> None:
    slow, fast = settled("slow-launch"), settled("slow-launch", "spec.replicas.launchDelay=5s")
    assert slow["time_to_scale_max_s"] == 90
    assert slow["failed"] > 2 * fast["failed"]


def test_the_lesson_of_two_who_fight_over_cpu() -> None:
    mode = 'spec.autoscalers.1.object.spec.updatePolicy.updateMode="Off"'
    both, alone = settled("fighting"), settled("fighting", mode)
    assert both["evictions"] > 0
    assert alone["evictions"] == 0
    assert both["replicas_most"] > 2 * alone["replicas_most"]
    assert both["response_p50_s"] > 2 * alone["response_p50_s"]


@pytest.mark.parametrize("name", [each.stem for each in sorted(EXAMPLES.glob("*.yaml"))])
def test_every_example_is_in_the_readme(name: str) -> None:
    assert f"{name}.yaml" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
