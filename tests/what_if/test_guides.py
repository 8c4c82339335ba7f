"""What the guides to snapshots and questions show is what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from commands import kubescene as command
from dumped import dump, shop

GUIDES = Path(__file__).parent.parent.parent / "docs/guides"
SHOWN = re.compile(r"```\n\$ kubescene ([^\n]*)\n(.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", re.DOTALL)
FILES = {
    "packing.yaml": """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
""",
    "app.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  containers:
  - name: worker
    image: worker
    resources: {requests: {cpu: "2", memory: 2Gi}}
""",
    "change.yaml": """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: first}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec:
      priorityClassName: first
      containers:
      - name: checkout
        image: checkout
        resources: {requests: {cpu: "7500m"}}
""",
}


@pytest.mark.parametrize("name", ["snapshots.md", "what-if.md"])
def test_a_guide_shows_what_is_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: bool
) -> None:
    (tmp_path / "cluster.json").write_bytes(dump(shop()))
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    guide = GUIDES / name
    text = guide.read_text()
    assert SHOWN.findall(text)

    def said(found: "re.Match[str]") -> str:
        done = command(*found[1].split(), cwd=tmp_path)
        assert done.returncode in (0, 3), done.stderr
        lines = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        errors = done.stderr.replace(str(tmp_path), "")
        return f"```\n$ kubescene {found[1]}\n{lines}{errors}```"

    def printed(found: "re.Match[str]") -> str:
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile(found[1], str(guide), "exec"), {})
        return f"```python\n{found[1]}```\n\nprints\n\n```\n{told.getvalue()}```"

    is_so = PYTHON.sub(printed, SHOWN.sub(said, text))
    if update:
        guide.write_text(is_so)
    assert guide.read_text() == is_so
