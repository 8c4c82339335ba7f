"""The pages in a real browser, each by its story: from a click to what somebody wanted to know."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import quote

import pytest

from browser import Browser, Page, chromium
from kubescene.api.resource_requests import pod_requests
from kubescene.apiserver.server import Server
from kubescene.clock import Streams
from kubescene.testing import make_node, make_pod
from ui.walking import HOSTILE, open_, press_on, shows, type_into, until

PROGRAM = chromium()
pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
Ask: TypeAlias = Callable[[str, str], Any]


def test_an_empty_world_teaches(browser: Browser, server: Server) -> None:
    """One click plays an example; the slider goes through it; a pod says why; Back comes back."""
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse a cluster")
    page.click_on("[data-example='rollout.yaml']")
    until(page, "location.pathname === '/ui/scenario/rollout'")
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    shows(page, "3 nodes", "#tile-told")
    shows(page, "3 pods wait", "#waiting")
    type_into(page, "#slider", "0")
    shows(page, "Node node-0 created", "#lines")
    until(page, "document.querySelector('#waiting').hidden")
    assert page.evaluate("location.search") == "?at=1.0"
    page.evaluate("document.querySelector('#slider').focus()")
    page.press("End")
    shows(page, "3 pods wait", "#waiting")
    page.click_on("#waiting .reason")
    shows(page, "3 waiting pods", "#side")
    page.click_on("#side td a")
    shows(page, "Insufficient cpu", "#why")
    page.evaluate("history.back()")
    shows(page, "What happened")
    assert page.complaints == []


def test_a_pod_is_brought_its_wait_understood_and_mended(browser: Browser, server: Server) -> None:
    """What somebody does who has never read a guide."""
    page = open_(browser, server, "/ui")
    shows(page, "Bring your own")
    node = make_node("n").cpu("4").memory("8Gi").build()
    pod = make_pod("big").cpu("6").build()
    type_into(page, "#yaml", json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    page.click_on("#take")
    until(page, "location.pathname === '/ui/cluster'")
    shows(page, "1 pod waits", "#waiting")
    page.click_on("#waiting .reason")
    shows(page, "Insufficient cpu", "#side")
    page.click_on("#side td a")
    shows(page, "0/1 nodes are available", "#why")
    page.click_on("#ask-remedies")
    shows(page, "then it fits", "#remedies")
    page.press("g")
    page.press("h")
    shows(page, "Bring your own")
    larger = make_node("larger").cpu("16").memory("8Gi").build()
    type_into(page, "#yaml", json.dumps(larger))
    page.click_on("#take")
    until(page, "location.pathname === '/ui/cluster'")
    shows(page, "Running 1", "#legend")
    until(page, "document.querySelector('#waiting').hidden")
    page.evaluate("document.querySelector('canvas.tiles').focus()")
    page.press("End")
    page.press("ArrowLeft")
    page.press("Enter")
    shows(page, "larger", "#side h2")
    page.click_on("#side td a")
    shows(page, "Running")
    shows(page, "larger was the only node that fitted", "#why")
    assert page.complaints == []


def test_what_is_wrong_with_a_file_is_said(browser: Browser, server: Server) -> None:
    page = open_(browser, server, "/ui")
    shows(page, "Bring your own")
    wrong = {"": "nothing to play", "kind: Scenario\napiVersion: [": "yaml", "kind: Pod": ""}
    for text, told in wrong.items():
        type_into(page, "#yaml", text)
        press_on(page, "#take")
        until(page, "document.querySelector('#said.said')")
        shows(page, told, "#said")
    # The browser itself notes answers of 4xx in its log; nothing else is there.
    assert all("status of 4" in each for each in page.complaints)


def test_tiles_show_nodes_and_are_clicked_filtered_and_grouped(
    browser: Browser, populated: Server
) -> None:
    page = open_(browser, populated, "/ui/cluster?group=topology.kubernetes.io%2Fzone")
    shows(page, "6 nodes", "#tile-told")
    shows(page, "Running 9", "#legend")
    shows(page, "1 pod waits", "#waiting")
    page.evaluate("document.querySelector('canvas.tiles').focus()")
    page.press("ArrowRight")
    shows(page, "node-0", "#tile-told")
    page.press("Enter")
    shows(page, "node-0", "#side h2")
    assert "sel=node-0" in page.evaluate("location.search")
    page.click_on(".close")
    until(page, "document.querySelector('#side').hidden")
    type_into(page, "#filter", "node=node-5")
    shows(page, "1 node match", "#tile-told")
    assert page.evaluate("new URLSearchParams(location.search).get('q')") == "node=node-5"
    assert page.complaints == []


def test_changes_of_the_world_are_seen_as_they_come(browser: Browser, populated: Server) -> None:
    page = open_(browser, populated, "/ui/cluster")
    shows(page, "6 nodes", "#tile-told")
    cluster = populated.cluster
    populated.engine.call(lambda: cluster.create(make_node("node-6").cpu("16").memory("32Gi")))
    shows(page, "7 nodes", "#tile-told")
    until(page, "document.querySelector('#waiting').hidden")  # the large pod fits the new one
    populated.engine.call(lambda: cluster.delete("pods", "large"))
    shows(page, "Running 9", "#legend")
    assert page.complaints == []


def test_objects_are_listed_as_kubectl_has_them_edited_and_deleted(
    browser: Browser, populated: Server
) -> None:
    page = open_(browser, populated, "/ui/r/core/v1/nodes?sort=-Name")
    shows(page, "node-5", "tbody tr")
    shows(page, "SchedulingDisabled", "tbody tr")
    cells = "[...document.querySelectorAll('thead th')]"
    headings = page.evaluate(f"{cells}.map((e) => e.innerText.trim())")
    assert headings == ["", "Name", "Status", "Roles", "Age", "Version"]
    press_on(page, "tbody a")
    until(page, "document.querySelector('#yaml')?.value.includes('unschedulable: true')")
    before = page.evaluate("document.querySelector('#yaml').value")
    type_into(page, "#yaml", before.replace("unschedulable: true", "unschedulabel: true"))
    shows(page, "+   unschedulabel: true", "#diff")
    press_on(page, "#apply")
    shows(page, 'unknown field "spec.unschedulabel"', "#said")
    line = before.splitlines().index("  unschedulable: true") + 1
    shows(page, f"line {line}:", "#said")
    type_into(page, "#yaml", before.replace("unschedulable: true", "unschedulable: false"))
    press_on(page, "#apply")
    until(page, "document.querySelector('#apply').disabled")
    node = populated.engine.call(lambda: populated.cluster.get("nodes", "node-5"))
    assert not node["spec"].get("unschedulable")
    assert all("status of 4" in each for each in page.complaints)


def test_names_of_others_are_text_and_nothing_else(browser: Browser, populated: Server) -> None:
    labelled = make_pod("hostile").annotate({"example/html": HOSTILE})
    populated.engine.call(lambda: populated.cluster.create(labelled))
    named = quote(HOSTILE)
    for path in (
        "/ui/pod/default/hostile",
        "/ui/r/core/v1/pods/default/hostile",
        f"/ui/cluster?q={named}&sel=why:{named}&group={named}&color=label:{named}",
        f"/ui/scenario/{named}",
        f"/ui/pod/{named}/{named}",
        f"/ui/pod/default/hostile/on/{named}",
        f"/ui/pod/{named}/{named}/on/{named}",
        f"/ui/what-if?question={named}&nodes={named}",
    ):
        page = open_(browser, populated, path)
        until(page, "document.querySelector('#page').childElementCount")
        assert page.evaluate("document.querySelectorAll('img').length") == 1  # our own sign
        assert all("status of 4" in each for each in page.complaints)


def test_numbers_of_the_traffic_form_are_played_as_they_are_moved(
    browser: Browser, server: Server
) -> None:
    page = open_(browser, server, "/ui/traffic")
    shows(page, "1,700", "#figures")
    type_into(page, "#stepConfigRPS", "5")
    shows(page, "850", "#figures")
    shows(page, "before: 1,700", "#figures")
    assert page.evaluate("new URLSearchParams(location.search).get('stepConfigRPS')") == "5"
    assert page.evaluate("fetch('/runs').then((r) => r.json()).then((d) => d.runs.length)") == 0
    page.click_on("#executeSimulation")
    ended = "fetch('/runs').then((r) => r.json()).then((d) => d.runs[0]?.phase === 'Succeeded')"
    until(page, ended)
    assert page.complaints == []
    page = open_(browser, server, "/ui/traffic/1")
    shows(page, "850", "#figures")


def test_runs_that_were_played_are_seen_again_and_compared(
    browser: Browser, server: Server
) -> None:
    """Play, change the scheduler, play again: who stands elsewhere, and which plugin moved it."""
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse a cluster")
    page.click_on("[data-example='preemption.yaml']")
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    packed = """fetch('/simulator/v1/schedulerconfiguration').then((r) => r.json()).then((c) => {
        const fit = c.profiles[0].pluginConfig.find((each) => each.name === 'NodeResourcesFit');
        fit.args.scoringStrategy.type = 'MostAllocated';
        return fetch('/simulator/v1/schedulerconfiguration', {method: 'POST',
            headers: {'content-type': 'application/json'}, body: JSON.stringify(c)});
    }).then((r) => r.status)"""
    assert page.evaluate(packed) == 202
    press_on(page, "#again")
    until(
        page, "fetch('/simulator/v1/runs').then((r) => r.json()).then((d) => d.runs.length === 2)"
    )
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    page = open_(browser, server, "/ui/run/scenario-1")
    shows(page, "2 nodes", "#tile-told")
    type_into(page, "#slider", "0")
    shows(page, "Node node-0 created", "#lines")
    page = open_(browser, server, "/ui/pod/default/batch-1?kept=scenario-1")
    shows(page, "node-1 won", "#why")
    page = open_(browser, server, "/ui/compare?a=scenario-1&b=scenario-2")
    shows(page, "elsewhere", "#verdict")
    shows(page, "default/batch-1")
    shows(page, "NodeResourcesFit")
    assert page.complaints == []


def test_the_configuration_of_the_scheduler_is_checked_while_it_is_typed(
    browser: Browser, populated: Server
) -> None:
    page = open_(browser, populated, "/ui/scheduler")
    shows(page, "NodeResourcesFit", "#profiles")
    before = page.evaluate("document.querySelector('#yaml').value")
    type_into(page, "#yaml", before.replace("name: NodeResourcesFit,", "name: NodeResourcesFits,"))
    shows(page, "NodeResourcesFits", "#said")
    type_into(page, "#yaml", before.replace("LeastAllocated", "MostAllocated"))
    shows(page, "would take this", "#said")
    chosen = "document.querySelector('[id=\"arg-0-NodeResourcesFit-scoringStrategy.type\"]')?.value"
    until(page, f"{chosen} === 'MostAllocated'")
    options = populated.cluster.own_options.scheduler
    assert options.configuration is None  # nothing was taken
    press_on(page, "#apply")
    shows(page, "new configuration", "#toasts")
    assert "MostAllocated" in json.dumps(populated.cluster.own_options.scheduler.configuration)


def test_a_plugin_is_switched_off_and_the_last_scenario_played_with_it(
    browser: Browser, server: Server
) -> None:
    """A form for plugins and weights; both runs stand beside each other afterwards."""
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse a cluster")
    page.click_on("[data-example='preemption.yaml']")
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    page = open_(browser, server, "/ui/scheduler")
    shows(page, "NodeResourcesFit", "#profiles")
    press_on(page, "#on-0-NodeResourcesBalancedAllocation")
    shows(page, "would take this", "#said")
    written = page.evaluate("document.querySelector('#yaml').value")
    assert "name: NodeResourcesBalancedAllocation, weight" not in written
    page.evaluate(
        "(() => { const e = document.querySelector('#weight-0-NodeResourcesFit'); e.value = 7;"
        "e.dispatchEvent(new Event('change')); })()"
    )
    until(page, "document.querySelector('#yaml').value.includes('weight: 7')")
    press_on(page, "#rehearse")
    until(page, "location.pathname === '/ui/compare'")
    shows(page, "NodeResourcesBalancedAllocation")
    assert page.evaluate("new URLSearchParams(location.search).get('a')") == "scenario-1"
    assert page.complaints == []


def test_arguments_of_a_plugin_are_fields_and_what_is_wrong_with_them_is_said(
    browser: Browser, populated: Server
) -> None:
    """By keys alone: unfold, choose, Tab on, type; the field that one is in stays."""
    page = open_(browser, populated, "/ui/scheduler")
    shows(page, "NodeResourcesFit", "#profiles")
    page.evaluate("document.querySelector('#args-0-NodeResourcesFit summary').focus()")
    page.press("Enter")
    until(page, "document.querySelector('#args-0-NodeResourcesFit').open")
    kind = "[id='arg-0-NodeResourcesFit-scoringStrategy.type']"
    page.evaluate(f"document.querySelector({json.dumps(kind)}).focus()")
    page.press("m")  # as lists of a form go: to the word that begins with it
    until(page, "document.querySelector('#yaml').value.includes('MostAllocated')")
    until(page, f"document.activeElement === document.querySelector({json.dumps(kind)})")
    shows(page, "would take this", "#said")
    until(page, f"document.activeElement === document.querySelector({json.dumps(kind)})")
    assert page.evaluate("document.querySelector('#args-0-NodeResourcesFit').open")
    weight = "[id='arg-0-InterPodAffinity-hardPodAffinityWeight']"
    change(page, weight, "-3")
    shows(page, "hardPodAffinityWeight", "#said")
    change(page, weight, "7")
    shows(page, "would take this", "#said")
    resources = "[id='arg-0-NodeResourcesBalancedAllocation-resources']"
    change(page, resources, "[{")
    shows(page, "must be JSON", "#said")
    change(page, resources, '[{"name": "memory", "weight": 1}]')
    shows(page, "would take this", "#said")
    press_on(page, "#apply")
    shows(page, "new configuration", "#toasts")
    told = populated.cluster.own_options.scheduler.configuration
    assert told is not None
    args = {each["name"]: each["args"] for each in told["profiles"][0]["pluginConfig"]}
    assert args["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"
    assert args["InterPodAffinity"]["hardPodAffinityWeight"] == 7
    assert args["NodeResourcesBalancedAllocation"]["resources"] == [{"name": "memory", "weight": 1}]
    assert all("status of 4" in each for each in page.complaints)


def change(page: Page, selector: str, value: str) -> None:
    page.evaluate(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
        f"e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})()"
    )


def test_a_page_is_reached_by_keys_alone(browser: Browser, populated: Server) -> None:
    page = open_(browser, populated, "/ui")
    shows(page, "Rehearse")
    page.press("g")
    page.press("c")
    until(page, "location.pathname === '/ui/cluster'")
    page.press("?")
    until(page, "document.querySelector('dialog')?.open")
    page.evaluate("document.querySelector('dialog').close()")
    page.press(":")
    type_into(page, "#go-to", "deploy")
    first = "document.querySelector('#found li[aria-selected=true]')"
    until(page, f"{first}?.innerText.startsWith('Deployment')")
    page.press("Enter")
    until(page, "location.pathname === '/ui/r/apps/v1/deployments'")
    shows(page, "web", "tbody")
    assert page.complaints == []


def test_a_server_that_goes_away_is_said_and_the_page_goes_on(browser: Browser) -> None:
    server = Server(port=0)
    server.start()
    server.engine.call(lambda: server.cluster.create(make_node("first").cpu("4")))
    page = browser.open(f"{server.url}/ui/cluster")
    shows(page, "1 node", "#tile-told")
    server.stop()
    page.evaluate("fetch('/livez').catch(() => 0)")
    again = Server(port=server.port)
    again.start()
    try:
        for name in ("one", "two"):
            again.engine.call(partial(again.cluster.create, make_node(name).cpu("4")))
        shows(page, "2 nodes", "#tile-told")
        until(page, "document.querySelector('#connection').hidden")
    finally:
        again.stop()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280, 2560])
def test_every_page_fits_every_screen(
    browser: Browser, populated: Server, width: int, dark: bool
) -> None:
    pages = ("", "/cluster", "/r", "/r/core/v1/pods", "/pod/default/large", "/scenarios")
    more = ("/traffic", "/scheduler", "/what-if", "/sweeps", "/pod/default/large/on/node-5")
    for path in (*pages, *more):
        page = open_(browser, populated, f"/ui{path}", width=width, dark=dark)
        until(page, "document.querySelector('#page').childElementCount")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.complaints == []


@pytest.fixture
def module(browser: Browser, server: Server) -> Ask:
    """Asks a module for the value of an expression, in which it is ``m``."""
    page = browser.open(f"{server.url}/ui/missing")

    def ask(name: str, expression: str) -> Any:
        return page.evaluate(f"import('/ui/static/app/{name}.js').then((m) => {expression})")

    return ask


class TestModules:
    """What needs no page, asked in the same browser."""

    def test_amounts(self, module: Ask) -> None:
        given = ["100m", "2", "1.5", "1Gi", "1e3", "500Ki", "5k", "", "nonsense", "1Zi"]
        told = module("quantities", f"{json.dumps(given)}.map(m.amount)")
        assert told == [0.1, 2, 1.5, 2**30, 1000, 500 * 2**10, 5000, 0, 0, 0]

    def test_requests_are_those_that_the_scheduler_counts(self, module: Ask) -> None:
        stream = Streams(7).stream("requests")

        def box(name: str, *, is_sidecar: bool = False) -> dict[str, Any]:
            asked = {"cpu": f"{stream.below(3000)}m", "memory": f"{stream.below(900)}Mi"}
            chosen = {key: value for key, value in asked.items() if stream.below(5)}
            found: dict[str, Any] = {"name": name, "resources": {"requests": chosen}}
            return {**found, "restartPolicy": "Always"} if is_sidecar else found

        specs: list[dict[str, Any]] = []
        for _ in range(200):
            first = [box(f"i{n}", is_sidecar=bool(stream.below(2))) for n in range(stream.below(4))]
            boxes = [box(f"c{n}") for n in range(1 + stream.below(3))]
            overhead = {"overhead": {"cpu": "50m", "memory": "10Mi"}} if stream.below(3) else {}
            specs.append({"containers": boxes, "initContainers": first, **overhead})
        told = module("reduced", f"{json.dumps(specs)}.map(m.requests)")
        for spec, found in zip(specs, told, strict=True):
            right = pod_requests({"spec": spec})
            assert round(found["cpu"] * 1000) == right.get("cpu", 0)
            assert found["memory"] == right.get("memory", 0)

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("", "abc"),
            ("web", "a"),
            ("app=web", "a"),
            ("!app=web", "bc"),
            ("app!=web", "bc"),
            ("ns=prod", "bc"),
            ("ns=prod app=api", "b"),
            ("node=n-*", "ab"),
            ("toString", ""),
            ("__proto__=x", ""),
            ("constructor=x", ""),
            ("!ns=prod !app=api", "a"),
            ("APP=web", ""),
            ("app=WEB", "a"),
        ],
    )
    def test_filters(self, module: Ask, text: str, kept: str) -> None:
        subjects = {
            "a": {"text": "web-1", "fields": {"ns": "default", "node": "n-1"}},
            "b": {"text": "api-1", "fields": {"ns": "prod", "node": "n-2"}},
            "c": {"text": "db-1", "fields": {"ns": "prod", "node": ""}},
        }
        labels: dict[str, dict[str, str]] = {"a": {"app": "web"}, "b": {"app": "api"}, "c": {}}
        given = json.dumps([[k, {**each, "labels": labels[k]}] for k, each in subjects.items()])
        test = f"m.filterOf({json.dumps(text)})"
        told = module("filter", f"{given}.filter(([, s]) => {test}(s)).map(([k]) => k).join('')")
        assert told == kept

    def test_tiles_are_found_where_they_stand(self, module: Ask) -> None:
        wrong = """[[1, 3], [40, 7, 900], [5000]].flatMap((counts) => [300, 1400].map((width) => {
            const groups = counts.map((count, at) => ({name: counts[1] ? `g${at}` : '', count}));
            const grid = m.gridOf(groups, width, 700), half = grid.size / 2;
            const total = counts.reduce((a, b) => a + b, 0), seen = m.between(grid, 100, 200);
            let wrong = 0;
            for (let i = 0; i < total; i++) {
                const {x, y} = m.placeOf(grid, i);
                if (m.tileAt(grid, x + half, y + half) !== i) wrong++;
                const isSeen = y + grid.size > 100 && y < 200;
                if (isSeen && (i < seen.first || i > seen.last)) wrong++;
            }
            return wrong;
        }))"""
        assert module("layout", wrong) == [0] * 6

    def test_tiles_are_zoomed_where_the_pointer_is(self, module: Ask) -> None:
        told = """(() => {
            const place = document.createElement('div');
            place.style.cssText = 'width: 600px; height: 400px; overflow: auto';
            document.querySelector('#page').append(place);
            const tiles = new m.Tiles(place, {chosen: () => {}, pointed: () => {}});
            const node = (n) => ({key: `n-${n}`, name: `n-${n}`, taints: [], on: new Map()});
            tiles.show(Array.from({length: 900}, (_, n) => node(n)), [{name: '', count: 900}]);
            const box = tiles.canvas.getBoundingClientRect();
            const at = {clientX: box.x + 25, clientY: box.y + 306};
            const before = [tiles.grid.size, tiles.at(at).key];
            for (let n = 0; n < 5; n++) tiles.canvas.dispatchEvent(
                new WheelEvent('wheel', {deltaY: -1, cancelable: true, ...at}));
            const row = (key) => Math.floor(Number(key.slice(2)) / tiles.grid.columns);
            const near = row(tiles.at(at).key), was = row(before[1]);
            const larger = tiles.grid.size / before[0];
            for (let n = 0; n < 9; n++) tiles.canvas.dispatchEvent(
                new WheelEvent('wheel', {deltaY: 1, cancelable: true, ...at}));
            return [larger > 2, Math.abs(near - was) <= 1, tiles.grid.size === before[0]];
        })()"""
        assert module("tiles", told) == [True, True, True]

    def test_a_slow_machine_is_asked_for_less(self, module: Ask) -> None:
        """Twelve slow pictures in a row, not twelve in all."""
        told = """(() => {
            const tiles = new m.Tiles(document.createElement('div'), {});
            const found = [];
            for (const ms of [...Array(11).fill(50), 5, ...Array(11).fill(50)]) tiles.learn(ms);
            found.push(tiles.isCoarse);
            tiles.canvas.addEventListener('coarse', () => found.push('said'));
            tiles.learn(50);
            return [...found, tiles.isCoarse];
        })()"""
        assert module("tiles", told) == [False, "said", True]

    def test_differences_make_one_text_of_the_other(self, module: Ask) -> None:
        stream = Streams(3).stream("texts")
        for _ in range(30):
            before, after = (
                "\n".join("abcde"[stream.below(5)] for _ in range(stream.below(12))) for _ in "ab"
            )
            rows = module(
                "pages/object", f"m.differences({json.dumps(before)}, {json.dumps(after)})"
            )
            removed = [line for sign, line in rows if sign == "-"]
            added = [line for sign, line in rows if sign == "+"]
            left, right = before.split("\n"), after.split("\n")
            assert sorted([*left, *added]) == sorted([*right, *removed])

    def test_tops_of_axes_are_round(self, module: Ask) -> None:
        tops = module("../shared/charts", "[0, 0.7, 1, 3, 26, 1200].map(m.niceTop)")
        assert tops == [1, 0.8, 1, 3, 30, 1500]
        mosts = "[0, 1, 2, 3, 5, 15, 25, 250, 0.7, 2.2]"
        tops = module("../shared/charts", f"{mosts}.map((most) => m.topOf([[[0, 0], [1, most]]]))")
        assert tops == [2, 2, 2, 4, 6, 16, 30, 250, 0.8, 2.5]
