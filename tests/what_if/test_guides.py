"""What the guides to snapshots and questions show is what happens."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

import kubescene
from commands import kubescene as command
from dumped import dump, shop
from kubescene.durations import SECOND

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

FILES["prices.yaml"] = "default: 0.4\n"
USED = {"frontend": ("0.12", "190000000"), "back": ("0.3", "420000000"), "ledger": ("0.2", "9e8")}
"""Cores and bytes that pods of these use, half of it most of the time."""


def recorded(cluster: kubescene.Cluster) -> dict[str, str]:
    """What Prometheus answers of a day of these pods."""
    begin = cluster.clock.now() // SECOND - 24 * 3600
    files = {}
    for at, name in enumerate(("cpu", "memory")):
        series = []
        for pod in cluster.list("pods"):
            metadata = pod["metadata"]
            if used := USED.get((metadata.get("labels") or {}).get("app", "")):
                usual, most = float(used[at]) / 2, float(used[at])
                values = [
                    [begin + 300 * each, f"{usual if each % 8 else most:g}"] for each in range(288)
                ]
                labels = {
                    "namespace": metadata["namespace"],
                    "pod": metadata["name"],
                    "container": pod["spec"]["containers"][0]["name"],
                }
                series.append({"metric": labels, "values": values})
        result = {"resultType": "matrix", "result": series}
        files[f"usage/{name}.json"] = json.dumps({"status": "success", "data": result})
    return files


@pytest.mark.parametrize("name", ["snapshots.md", "what-if.md"])
def test_a_guide_shows_what_is_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: bool
) -> None:
    cluster = shop()
    (tmp_path / "cluster.json").write_bytes(dump(cluster))
    (tmp_path / "usage").mkdir()
    for file, text in {**FILES, **recorded(cluster)}.items():
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
