"""The editor: what it paints is what was written, and what the served OpenAPI says of a line."""

import json

import pytest

from browser import Browser, chromium
from kubescene.apiserver.server import Server
from kubescene.clock import Streams
from ui.walking import HOSTILE, open_, press_on, shows, type_into, until

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
POD = """apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - name: main
    resources:
      requests: {cpu: "1"}
    ports:
    - containerPort: 80
"""


def test_what_is_painted_is_what_was_written(browser: Browser, server: Server) -> None:
    """Letter by letter, whatever that is: the text behind must not move."""
    page = open_(browser, server, "/ui/missing")
    words = Streams(5).stream("lines")
    parts = [
        "- ",
        "  ",
        "key",
        ": ",
        '"a # b"',
        "'x: y'",
        " # told",
        "12",
        "true",
        HOSTILE,
        "{",
        "]",
    ]
    lines = ["".join(parts[words.below(len(parts))] for _ in range(6)) for _ in range(400)]
    told = page.evaluate(
        "import('/ui/static/app/editor.js').then((m) => "
        f"{json.dumps(lines)}.map((line) => {{ const e = document.createElement('pre');"
        " e.append(...m.painted(line)); return [e.textContent, e.querySelectorAll('img').length];"
        "}))"
    )
    assert told == [[line, 0] for line in lines]


@pytest.mark.parametrize(
    ("row", "path", "key"),
    [
        (4, [], "spec"),
        (3, ["metadata"], "name"),
        (5, ["spec"], "containers"),
        (6, ["spec", "containers"], "name"),
        (7, ["spec", "containers"], "resources"),
        (8, ["spec", "containers", "resources"], "requests"),
        (10, ["spec", "containers", "ports"], "containerPort"),
    ],
)
def test_the_place_of_a_line(
    browser: Browser, server: Server, row: int, path: list[str], key: str
) -> None:
    page = open_(browser, server, "/ui/missing")
    found = page.evaluate(
        "import('/ui/static/app/schema.js').then((m) => "
        f"m.placeAt({json.dumps(POD.split(chr(10)))}, {row}))"
    )
    assert (found["path"], found["key"]) == (path, key)


def test_fields_are_explained_offered_and_doubted(browser: Browser, server: Server) -> None:
    page = open_(browser, server, "/ui")
    shows(page, "Bring your own")

    def write(text: str) -> None:
        type_into(page, "#yaml", text)
        page.evaluate(
            "(() => { const e = document.querySelector('#yaml'); e.focus();"
            "e.setSelectionRange(e.value.length, e.value.length); e.click(); })()"
        )

    write(POD.rstrip("\n"))
    shows(page, "spec.containers.ports.containerPort", "#yaml-help")
    write(POD + "  nodeSel")
    shows(page, "nodeSelector", "#yaml-help")
    page.press("Tab")
    until(page, "document.querySelector('#yaml').value.endsWith('  nodeSelector: ')")
    write(POD + "  nodeSelektor: {}")
    shows(page, "nodeSelektor is no field here", "#yaml-help")
    assert page.complaints == []


def test_why_a_pod_did_not_go_to_a_node(browser: Browser, populated: Server) -> None:
    page = open_(browser, populated, "/ui/pod/default/large")
    shows(page, "Insufficient cpu", "#why")
    type_into(page, "#why-not", "node-1")
    shows(page, "refused by NodeResourcesFit: Insufficient cpu", "#why-not-told")
    assert "node=node-1" in page.evaluate("location.search")
    type_into(page, "#why-not", "nowhere")
    shows(page, "was not looked at", "#why-not-told")
    page = open_(browser, populated, "/ui/cluster?q=web")
    shows(page, "6 nodes", "#tile-told")
    page.evaluate("document.querySelector('canvas.tiles').focus()")
    page.press("ArrowRight")
    page.press("Enter")
    press_on(page, "#side td a")
    until(page, "location.pathname.startsWith('/ui/pod/default/web')")
    shows(page, "Why not")
    for node, told in (("node-0", "It went there"), ("node-1", "fitted, with")):
        type_into(page, "#why-not", node)
        shows(page, told, "#why-not-told")
    assert page.complaints == []


def test_one_node_for_one_pod_has_a_page_of_its_own(browser: Browser, populated: Server) -> None:
    """What each plugin gave, on three scales, beside the winner; and who refused."""
    page = open_(browser, populated, "/ui/pod/default/large")
    shows(page, "Why not")
    type_into(page, "#why-not", "node-5")
    shows(page, "refused by NodeUnschedulable", "#why-not-told")
    press_on(page, "#why-not-told a")
    until(page, "location.pathname === '/ui/pod/default/large/on/node-5'")
    shows(page, "Why not node-5?", "h1")
    shows(page, "refused by NodeUnschedulable", "#why")
    shows(page, "cordoned")
    shows(page, "node.kubernetes.io/unschedulable:NoSchedule")
    page.evaluate("history.back()")
    until(page, "location.pathname === '/ui/pod/default/large'")
    explained = "fetch('/simulator/v1/explain?pod=' + encodeURIComponent(%s)).then((r) => r.json())"
    names = populated.engine.call(lambda: populated.cluster.list("pods"))
    name = next(
        each["metadata"]["name"] for each in names if each["metadata"]["name"].startswith("web")
    )
    [attempt] = page.evaluate(explained % json.dumps(f"default/{name}"))["attempts"]
    won = next(each for each in attempt["verdicts"] if each["node"] == attempt["node"])
    lost = next(each for each in attempt["verdicts"] if each["node"] != attempt["node"])
    page = open_(browser, populated, f"/ui/pod/default/{name}/on/{lost['node']}")
    shows(page, f"Why not {lost['node']}?", "h1")
    rows = (
        "[...document.querySelectorAll('#plugins tbody tr')].map((r) => r.innerText.split('\\t'))"
    )
    told = page.evaluate(rows)
    *each_plugin, total = told
    weighted = zip(lost["scores"], won["scores"], strict=True)
    assert [[int(cell) for cell in row[4:6]] for row in each_plugin] == [*map(list, weighted)]
    assert [int(row[1].replace(",", "")) for row in each_plugin] == lost["raw"]
    for row, weight in zip(each_plugin, attempt["weights"], strict=True):
        assert int(row[2]) * weight == int(row[4])
    assert int(total[4]) == lost["total"]
    page = open_(browser, populated, f"/ui/pod/default/{name}")
    cells = "[...document.querySelectorAll('.scores tbody tr.won td.n')].slice(2)"
    for scale, expected in (
        ("raw", won["raw"]),
        ("normalised", [a // b for a, b in zip(won["scores"], attempt["weights"], strict=True)]),
        ("", won["scores"]),
    ):
        until(page, "document.querySelector('#scale')")
        page.evaluate(
            f"(() => {{ const e = document.querySelector('#scale'); e.value = '{scale}';"
            "e.dispatchEvent(new Event('change')); })()"
        )
        shown = f"{cells}.map((c) => c.innerText)"
        found = [int(each.replace(",", "")) for each in page.evaluate(shown)]
        assert found == [*expected]
    assert page.complaints == []
