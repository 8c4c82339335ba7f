"""Runs to report on."""

import json
from pathlib import Path

import kubescene
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

EXAMPLES = Path(__file__).parents[1] / "examples"
HOSTILE = (
    "</script><script>document.title='owned'</script><!-- <img src=x onerror=alert(1)>"
    "\u2028\u202e\"'&"
)


def example(name: str, out: Path) -> Path:
    """The directory of an example that was played."""
    (found,) = EXAMPLES.glob(f"*-{name}/scenario.yaml")
    assert kubescene.run(found, out=out).ok
    return out


def hostile(out: Path) -> Path:
    """A run in which a node, a pod, a message and a warning have names that mean harm."""
    example("first-scenario", out)
    quoted = json.dumps(HOSTILE, ensure_ascii=False)[1:-1]
    for name in ("timeline.jsonl", "explanations.jsonl"):
        text = (out / name).read_text()
        for word in ("node-0", "database", "Insufficient"):
            text = text.replace(word, quoted)
        (out / name).write_text(text)
    return out


def many_nodes(count: int, steps: int, out: Path) -> Path:
    """So many nodes, and a pod for a third of them in every step after the first."""
    builder = ScenarioBuilder("many-nodes")
    builder.create(make_node("node-$(INDEX)").cpu("4").memory("8Gi"), count=count)
    for major in range(2, steps + 1):
        pod = make_pod(f"web-{major}-$(INDEX)").cpu("1")
        builder.step(major).create(pod, count=count // 3)
    assert kubescene.run(builder.done(), out=out).ok
    return out


def failing(out: Path) -> Path:
    """A run that fails at its second step."""
    builder = ScenarioBuilder("failing").create(make_node("node-0").cpu("4"))
    builder.step(2).create(make_pod("web").cpu("1")).delete("v1", "Node", "nobody")
    assert not kubescene.run(builder, out=out).ok
    return out


def nothing(out: Path) -> Path:
    """A run in which nothing happens."""
    assert kubescene.run(ScenarioBuilder("nothing").done(), out=out).ok
    return out
