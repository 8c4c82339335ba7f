"""What the map of the cluster holds, however it came to know of it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from browser import Browser, chromium
from kubescene.api.kinds import SCENARIO
from kubescene.apiserver.server import Server
from kubescene.testing import make_pod
from ui.walking import open_, shows

PROGRAM = chromium()
pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
COLUMNS = f"application/json;as=Columns;g={SCENARIO.group};v={SCENARIO.version}"


def test_rows_are_the_same_by_columns_and_by_objects(browser: Browser, populated: Server) -> None:
    """Those of a list in columns, and those that a watch would bring."""
    held = make_pod("held").gate("example.com/wait").build()
    held["metadata"]["finalizers"] = ["example.com/held"]

    def more() -> None:
        cluster = populated.cluster
        cluster.create(held)
        cluster.delete("pods", "held")
        cluster.create(make_pod("gated").cpu("1").gate("example.com/wait").label(app="gated"))

    populated.engine.call(more)
    page = open_(browser, populated, "/ui/cluster")
    shows(page, "12 pods", "#tile-told")
    shows(page, "Running 9", "#legend")
    told = page.evaluate(
        f"""Promise.all([
            import('/ui/static/app/reduced.js'),
            fetch('/api/v1/pods').then((r) => r.json()),
            fetch('/api/v1/pods', {{headers: {{accept: {json.dumps(COLUMNS)}}}}})
                .then((r) => r.json()),
        ]).then(([m, objects, columns]) => [
            objects.items.map(m.podRow), m.rowsOf(structuredClone(m.podColumns(columns)))])"""
    )
    by_objects, by_columns = told
    assert by_columns == by_objects
    states = {each["name"]: each["state"] for each in by_objects}
    assert (states["held"], states["gated"]) == ("Terminating", "Pending")
    assert states["large"] == "Unschedulable"
    assert page.complaints == []


WORLD = """Promise.resolve(new m.World()).then((world) => {
    const pod = (name, node) => ({key: `d/${name}`, namespace: 'd', name, node, cpu: 2, memory: 1,
        labels: {}, owner: '', state: 'Running', why: '', nominated: ''});
    const node = {key: 'n', name: 'n', born: 0, cpu: 4, memory: 4, pods: 9, labels: {},
        ready: 'True', cordoned: false, taints: []};
    const pods = {type: 'all', kind: 'pods', rows: [pod('a', 'n'), pod('b', 'n'), pod('c', '')]};
    const nodes = {type: 'all', kind: 'nodes', rows: [node]};
    const told = [], tell = () => told.push([...world.nodes.values()].map(
        (each) => [each.usedCpu, [...each.on.keys()]]).concat([[...world.waiting.keys()]]));
    for (const each of %s) { world.take(each); tell(); }
    return told;
})"""


class TestWorld:
    def test_pods_may_be_known_before_their_nodes(self, browser: Browser, server: Server) -> None:
        page = browser.open(f"{server.url}/ui/missing")
        ask = partial(_of_world, page.evaluate)
        end = [[4, ["d/a", "d/b"]], ["d/c"]]
        assert ask("[pods, nodes]")[-1] == ask("[nodes, pods]")[-1] == end

    def test_a_list_that_comes_in_parts_is_shown_as_it_comes(
        self, browser: Browser, server: Server
    ) -> None:
        """What is not in any part of a list is gone, once its last part has come."""
        page = browser.open(f"{server.url}/ui/missing")
        part = "{type: 'all', kind: 'pods', rows: [pod('%s', 'n')], isFirst: %s, isLast: %s}"
        first, last = part % ("a", "true", "false"), part % ("d", "false", "true")
        told = _of_world(page.evaluate, f"[nodes, pods, {first}, {last}]")
        assert told[1:] == [
            [[4, ["d/a", "d/b"]], ["d/c"]],
            [[4, ["d/b", "d/a"]], ["d/c"]],
            [[4, ["d/a", "d/d"]], []],
        ]

    def test_a_node_that_comes_back_has_its_pods(self, browser: Browser, server: Server) -> None:
        page = browser.open(f"{server.url}/ui/missing")
        gone = "{type: 'changes', nodes: [['n', null]], pods: [['d/a', null]]}"
        back = "{type: 'changes', nodes: [['n', node]], pods: []}"
        told = _of_world(page.evaluate, f"[nodes, pods, {gone}, {back}]")
        assert told[-2:] == [[["d/c"]], [[2, ["d/b"]], ["d/c"]]]


Evaluate: TypeAlias = Callable[[str], Any]


def _of_world(evaluate: Evaluate, told: str) -> Any:
    return evaluate(f"import('/ui/static/app/world.js').then((m) => {WORLD % told})")
