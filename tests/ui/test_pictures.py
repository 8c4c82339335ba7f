"""Pictures of the pages for the docs, taken by the walk that checks them.

    KUBESCENE_PICTURES=1 pytest tests/ui/test_pictures.py

writes them anew; otherwise only what they show is checked, and that they are there and small.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from apiserver.http import Http
from browser import Browser, chromium
from kubescene.api.text.yaml_text import read_yaml
from kubescene.apiserver.server import Server
from kubescene.cli.tune.playing import json_of
from kubescene.experiments import matrix
from kubescene.experiments.goals import Goal, parse_condition
from kubescene.experiments.ranges import parse_ranges
from kubescene.experiments.tuning import tune
from kubescene.runs.opened import OpenedRuns
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject
from ui.walking import open_, press_on, until

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "guides" / "ui"
API = "kubescheduler.config.k8s.io/v1"
SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
MOST_BYTES, MOST_BYTES_OF_ONE = 1_000_000, 150_000
SHAPES = {
    "web": (400, "500m", "1Gi"),
    "api": (300, "1", "2Gi"),
    "cache": (120, "2", "12Gi"),
    "batch": (500, "750m", "1Gi"),
    "search": (90, "4", "16Gi"),
    "ml": (60, "9", "20Gi"),
    "ingest": (150, "1500m", "4Gi"),
}


class Picture(NamedTuple):
    """An address, what must be there before it is taken, and how large and how dark it is.

    ``pressed`` is a button that makes it so.
    """

    path: str
    until: str
    width: int = 1280
    height: int = 760
    dark: bool = False
    pressed: str = ""


def showing(selector: str, text: str) -> str:
    return f"document.querySelector('{selector}')?.innerText.includes('{text}')"


PICTURES = {
    "start": Picture("/ui", showing("#runs", "busy"), height=860),
    "cluster": Picture(
        "/ui/cluster?group=topology.kubernetes.io%2Fzone&color=owner&sel=b-7",
        showing("#tile-told", "240 nodes"),
        width=1440,
        height=810,
        dark=True,
    ),
    "pod": Picture(
        "/ui/pod/default/giant-0?node=b-7", showing("#why-not-told", "unschedulable"), height=860
    ),
    "object": Picture(
        "/ui/r/core/v1/pods/default/giant-0",
        "document.querySelector('#yaml')?.value.includes('giant-0')",
        dark=True,
    ),
    "scenario": Picture("/ui/run/scenario-2?at=2.20&axis=time", showing("#waiting", "wait")),
    "over-time": Picture(
        "/ui/run/scenario-2?view=time&axis=time",
        "document.querySelectorAll('#over-time figure.chart').length > 4",
        height=900,
        dark=True,
    ),
    "compare": Picture(
        "/ui/compare?a=scenario-2&b=scenario-3",
        "document.querySelectorAll('#over-time path.ghost').length > 6",
        height=1500,
    ),
    "scheduler": Picture("/ui/scheduler", showing("#profiles", "NodeResourcesFit"), dark=True),
    "traffic": Picture(
        "/ui/traffic?stepConfigRPS=8&vs=1", showing("#figures", "before:"), height=1000
    ),
    "what-if": Picture(
        "/ui/what-if?question=shrink&nodes=zone%3Da&keep=20",
        showing("#sentence", "can be removed"),
        height=900,
        pressed="#ask",
    ),
    "matrix": Picture(
        "/ui/sweeps/sweep-1?x=pods_pending&y=imbalance_cpu",
        "document.querySelectorAll('#frontier circle').length > 3",
        height=1000,
        dark=True,
    ),
    "search": Picture(
        "/ui/sweeps/sweep-2?x=nodes&y=pods_pending",
        "document.querySelectorAll('#frontier circle').length > 4",
        height=900,
    ),
}
NODES = "spec.operations.0.createOperation.count"
PODS = "spec.operations.1.createOperation.count"


def busy(name: str) -> JsonObject:
    """240 nodes in three zones, seven Deployments, and pods that fit nowhere."""
    scenario = ScenarioBuilder(name)
    for zone in "abc":
        node = make_node(f"{zone}-$(INDEX)").cpu("16").memory("64Gi").zone(zone)
        scenario.create(node, count=80)
    for app, (replicas, cpu, memory) in SHAPES.items():
        pod = make_pod(app).label(app=app).cpu(cpu).memory(memory)
        scenario.next_step().create(make_deployment(app).replicas(replicas).template(pod))
    scenario.next_step().patch("v1", "Node", "b-7", {"spec": {"unschedulable": True}})
    scenario.next_step().create(make_pod("giant-$(INDEX)").cpu("15").memory("60Gi"), count=7)
    return scenario.next_step().done().build()


def packing() -> ScenarioBuilder:
    """Pods of three quarters of a core on six nodes, and some that need a whole one."""
    scenario = ScenarioBuilder("packing").create(make_node("n-$(INDEX)").cpu("4"), count=6)
    scenario.create(make_pod("p-$(INDEX)").cpu("750m"), count=18)
    return scenario.next_step().create(make_pod("q-$(INDEX)").cpu("2"), count=4).next_step().done()


def sweeps(folder: Path) -> OpenedRuns:
    """A matrix of two configurations, and a search for the nodes that suffice."""
    packed = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    fit = {"apiVersion": API, "kind": "NodeResourcesFitArgs", "scoringStrategy": packed}
    profile = {"pluginConfig": [{"name": "NodeResourcesFit", "args": fit}]}
    tight: JsonObject = {"apiVersion": API, "kind": "KubeSchedulerConfiguration"}
    schedulers = {"default": None, "tight": {**tight, "profiles": [profile]}}
    settings = {PODS: [10, 18, 26]}
    found = matrix(packing(), schedulers, seeds=4, settings=settings, jobs=1)
    goal = Goal("nodes", (parse_condition("pods_pending == 0"),))
    best = tune(packing(), parse_ranges([f"{NODES}=3..9/1"]), goal, jobs=1)
    for name, file, text in (
        ("packing", "matrix.json", found.json()),
        ("nodes", "tune.json", json_of(best).encode()),
    ):
        (folder / name).mkdir()
        (folder / name / file).write_bytes(text)
    return OpenedRuns([folder / "packing", folder / "nodes"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A busy cluster after two scenarios with traffic, a traffic run, and two sweeps."""
    [spike] = read_yaml((ROOT / "examples" / "15-spike" / "scenario.yaml").read_bytes())
    patient = {**spike.value, "metadata": {"name": "spike-2"}}
    patient["spec"] = {**spike.value["spec"], "simulation": dict(spike.value["spec"]["simulation"])}
    patient["spec"]["simulation"]["kubelet"] = {"startDelay": "10s", "readyDelay": "20s"}
    with Server(port=0, opened=sweeps(tmp_path_factory.mktemp("sweeps"))) as server:
        http = Http("127.0.0.1", server.port)
        assert http.post("/run", {}).status == 200
        for scenario in (busy("busy"), spike.value, patient, busy("busy-2")):
            assert http.post(SCENARIOS, scenario).status == 201
        http.close()
        yield server


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_as_it_stands_in_the_docs(browser: Browser, world: Server, name: str) -> None:
    shown = PICTURES[name]
    page = open_(browser, world, "/ui/scenarios")
    until(page, "document.querySelectorAll('.phase.good').length === 4")
    size = {"width": shown.width, "height": shown.height}
    page = open_(browser, world, shown.path, dark=shown.dark, **size)
    if shown.pressed:
        press_on(page, shown.pressed)
    until(page, shown.until)
    until(page, "new Promise((done) => setTimeout(() => done(true), 400))")
    taken = page.call("Page.captureScreenshot", format="webp", quality=82)["data"]
    picture = base64.b64decode(taken)
    assert page.complaints == []
    assert 5_000 < len(picture) < MOST_BYTES_OF_ONE
    if os.environ.get("KUBESCENE_PICTURES"):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.webp").write_bytes(picture)
    assert (FOLDER / f"{name}.webp").is_file()


def test_pictures_are_small_and_all_are_shown() -> None:
    there = {path.stem: path.stat().st_size for path in FOLDER.glob("*.webp")}
    assert there.keys() == PICTURES.keys()
    assert sum(there.values()) < MOST_BYTES
    guide = (ROOT / "docs" / "guides" / "ui.md").read_text()
    readme = (ROOT / "README.md").read_text()
    assert all(f"](ui/{name}.webp)" in guide for name in PICTURES)
    assert sum(f"](docs/guides/ui/{name}.webp)" in readme for name in PICTURES) == 3
