"""The main story of each page by keys alone: no click, no script that helps."""

import json

import pytest

from apiserver.http import Http
from browser import Browser, chromium
from kubescene.apiserver.server import Server
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from ui.walking import open_, shows, tab_to, until, write

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"


def test_an_example_is_played_gone_through_and_a_pod_understood(
    browser: Browser, server: Server
) -> None:
    """Start, scenario, the strip of those who wait, a pod, and Back."""
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse a cluster")
    tab_to(page, "[data-example='rollout.yaml']")
    page.press("Enter")
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    shows(page, "3 pods wait", "#waiting")
    tab_to(page, "#slider")
    page.press("Home")
    shows(page, "Node node-0 created", "#lines")
    page.press("ArrowRight")
    until(page, "!location.search.includes('at=1.0')")
    page.press("End")
    shows(page, "3 pods wait", "#waiting")
    tab_to(page, "#waiting .reason")
    page.press("Enter")
    shows(page, "3 waiting pods", "#side")
    tab_to(page, "#side td a")
    page.press("Enter")
    shows(page, "Insufficient cpu", "#why")
    assert page.complaints == []


def test_a_pod_is_brought_its_wait_understood_and_mended(browser: Browser, server: Server) -> None:
    """The walk of two minutes of somebody who has read nothing, without a mouse."""
    page = open_(browser, server, "/ui")
    shows(page, "Bring your own")
    node, pod = make_node("n").cpu("4").build(), make_pod("big").cpu("6").build()
    tab_to(page, "#yaml")
    write(page, json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    page.press("Escape")
    tab_to(page, "#take")
    page.press("Enter")
    shows(page, "1 pod waits", "#waiting")
    tab_to(page, "#waiting .reason")
    page.press("Enter")
    tab_to(page, "#side td a")
    page.press("Enter")
    shows(page, "0/1 nodes are available", "#why")
    tab_to(page, "#ask-remedies")
    page.press("Enter")
    shows(page, "then it fits", "#remedies")
    page.press("g")
    page.press("h")
    shows(page, "Bring your own")
    tab_to(page, "#yaml")
    write(page, json.dumps(make_node("larger").cpu("16").build()))
    page.press("Escape")
    tab_to(page, "#take")
    page.press("Enter")
    shows(page, "Running 1", "#legend")
    tab_to(page, "canvas.tiles")
    page.press("ArrowRight")
    page.press("Enter")
    shows(page, "larger", "#side h2")
    tab_to(page, "#side td a")
    page.press("Enter")
    shows(page, "larger was the only node that fitted", "#why")
    assert page.complaints == []


def test_an_object_is_found_changed_and_applied(browser: Browser, populated: Server) -> None:
    page = open_(browser, populated, "/ui")
    shows(page, "Rehearse")
    page.press(":")
    until(page, "document.activeElement.id === 'go-to'")
    write(page, "nodes")
    first = "document.querySelector('#found li[aria-selected=true]')"
    until(page, f"{first}?.innerText.startsWith('Node ')")
    page.press("Enter")
    shows(page, "node-5", "tbody")
    page.press("/")
    until(page, "document.activeElement.id === 'filter'")
    write(page, "node-5")
    until(page, "document.querySelectorAll('tbody a').length === 1")
    page.press("Escape")
    tab_to(page, "tbody a")
    page.press("Enter")
    until(page, "document.querySelector('#yaml')?.value.includes('unschedulable: true')")
    text = page.evaluate("document.querySelector('#yaml').value")
    tab_to(page, "#yaml")
    write(page, text.replace("unschedulable: true", "unschedulable: false"))
    shows(page, "unschedulable", "#diff")
    page.press("Escape")
    tab_to(page, "#apply")
    page.press("Enter")
    until(page, "document.querySelector('#apply').disabled")
    found = populated.engine.call(lambda: populated.cluster.get("nodes", "node-5"))
    assert not found["spec"].get("unschedulable")
    assert page.complaints == []


def test_traffic_is_changed_and_executed(browser: Browser, server: Server) -> None:
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse")
    page.press("g")
    page.press("t")
    shows(page, "1,700", "#figures")
    tab_to(page, "#stepConfigRPS")
    write(page, "5")
    shows(page, "850", "#figures")
    tab_to(page, "#executeSimulation")
    page.press("Enter")
    until(page, "document.querySelector('[data-beside]')")
    tab_to(page, "#history summary")
    page.press("Enter")
    shows(page, "run 1", "#history")
    assert page.complaints == []


def test_a_plugin_is_switched_off_and_the_configuration_applied(
    browser: Browser, populated: Server
) -> None:
    page = open_(browser, populated, "/ui")
    shows(page, "Rehearse")
    page.press("g")
    page.press("p")
    shows(page, "NodeResourcesFit", "#profiles")
    tab_to(page, "#on-0-ImageLocality")
    page.press(" ")
    shows(page, "would take this", "#said")
    until(page, "document.activeElement.id === 'on-0-ImageLocality'")
    tab_to(page, "#apply")
    page.press("Enter")
    shows(page, "new configuration", "#toasts")
    told = json.dumps(populated.cluster.own_options.scheduler.configuration)
    assert "NodeResourcesFit" in told
    assert '"name": "ImageLocality", "weight"' not in told
    assert page.complaints == []


def played(server: Server, name: str, cpu: str) -> None:
    """A scenario of a pod on two nodes, one of them small, that the large one follows."""
    scenario = ScenarioBuilder(name).create(make_node("a").cpu("8"), make_node("b").cpu("2"))
    scenario.next_step().create(make_pod("p").cpu("1"))
    scenario.next_step().create(make_pod("q").cpu(cpu))
    body = scenario.next_step().done().build()
    http = Http("127.0.0.1", server.port)
    assert http.post(SCENARIOS, body).status == 201
    http.close()


def test_a_scenario_is_forked_with_a_change_and_compared(browser: Browser, server: Server) -> None:
    """From a step of the slider to another run, and both beside each other."""
    played(server, "shop", "9")
    page = open_(browser, server, "/ui")
    page.press("g")
    page.press("s")
    tab_to(page, "tbody a")
    page.press("Enter")
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    shows(page, "1 pod waits", "#waiting")
    tab_to(page, "#slider")
    page.press("Home")
    page.press("ArrowRight")
    shows(page, "2.", "#when")
    tab_to(page, "#fork-here")
    page.press("Enter")
    until(page, "document.activeElement.id === 'fork-text'")
    text = page.evaluate("document.querySelector('#fork-text').value")
    write(page, text.replace('"9"', '"2"'))
    page.press("Escape")
    tab_to(page, "#fork-all")
    page.press("Enter")
    until(page, "location.pathname === '/ui/scenario/shop-2'")
    until(page, "document.querySelector('#phase')?.textContent === 'Succeeded'")
    until(page, "document.querySelector('#waiting').hidden")
    page.press("g")
    page.press("h")
    tab_to(page, "a[href='/ui/compare']")
    page.press("Enter")
    shows(page, "1 pod stands elsewhere", "#verdict")
    tab_to(page, "#a")
    page.press("ArrowUp")
    shows(page, "No pod stands elsewhere", "#verdict")
    until(page, "document.activeElement.id === 'a'")
    page.press("ArrowDown")
    shows(page, "1 pod stands elsewhere", "#verdict")
    tab_to(page, "#told a")
    page.press("Enter")
    shows(page, "Insufficient cpu", "#why")
    assert page.complaints == []


def test_chosen_objects_are_deleted_after_a_question(browser: Browser, server: Server) -> None:
    names = ["red", "green", "blue"]
    server.engine.call(lambda: [server.cluster.create(make_pod(name)) for name in names])
    page = open_(browser, server, "/ui/r/core/v1/pods")
    shows(page, "green", "tbody")
    page.press("/")
    until(page, "document.activeElement.id === 'filter'")
    write(page, "!blue")
    until(page, "document.querySelectorAll('tbody a').length === 2")
    page.press("Escape")
    for name in ("green", "red"):
        tab_to(page, f"[aria-label='Choose {name}']")
        page.press(" ")
    tab_to(page, "#delete")
    page.press("Enter")
    shows(page, "Delete 2 objects: green, red?", "#is-meant")
    page.press("Escape")
    until(page, "document.activeElement.id === 'delete'")
    assert len(server.engine.call(lambda: server.cluster.list("pods"))) == 3
    page.press("Enter")
    tab_to(page, "#meant")
    page.press("Enter")
    shows(page, "Nothing matches the filter", "tbody")
    [left] = server.engine.call(lambda: server.cluster.list("pods"))
    assert left["metadata"]["name"] == "blue"
    tab_to(page, "#filter")
    write(page, "blue")
    page.press("Escape")
    tab_to(page, "tbody a")
    page.press("Enter")
    tab_to(page, "a[href$='pods/default/blue']")
    page.press("Enter")
    until(page, "document.querySelector('#yaml')?.value.includes('name: blue')")
    tab_to(page, "#delete")
    page.press("Enter")
    tab_to(page, "#meant")
    page.press("Enter")
    shows(page, "There are no pods", "tbody")
    assert page.complaints == []


def test_the_map_is_filtered_grouped_and_coloured(browser: Browser, populated: Server) -> None:
    page = open_(browser, populated, "/ui/cluster")
    shows(page, "6 nodes", "#tile-told")
    page.press("/")
    until(page, "document.activeElement.id === 'filter'")
    write(page, "node=node-5")
    shows(page, "1 node matches", "#tile-told")
    write(page, "topology.kubernetes.io/zone=a")
    shows(page, "3 nodes match", "#tile-told")
    until(page, "location.search.includes('zone')")
    page.press("Escape")
    tab_to(page, "#by-group")
    page.press("ArrowDown")
    until(page, "location.search.includes('group=')")
    tab_to(page, "#by-colour")
    for _ in range(2):
        page.press("ArrowDown")
    shows(page, "web 9", "#legend")
    tab_to(page, "#legend button")
    page.press("Enter")
    until(page, "document.querySelector('#filter').value === 'web'")
    page.press("Enter")
    until(page, "document.querySelector('#filter').value === ''")
    tab_to(page, "canvas.tiles")
    page.press("End")
    page.press("Enter")
    shows(page, "node-5", "#side h2")
    tab_to(page, "#side .close")
    page.press("Enter")
    until(page, "document.querySelector('#side').hidden")
    assert page.complaints == []


def test_a_dump_is_asked_what_if(browser: Browser, server: Server) -> None:
    """A snapshot on the start page, a question, its answer; nothing is put into the cluster."""
    nodes = [make_node(f"n{each}").cpu("4").zone("ab"[each % 2]).build() for each in range(4)]
    pods = [make_pod(f"p{each}").cpu("2").on(f"n{each}").build() for each in range(4)]
    page = open_(browser, server, "/ui")
    shows(page, "Bring your own")
    tab_to(page, "#yaml")
    write(page, json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}))
    page.press("Escape")
    tab_to(page, "#question-it")
    page.press("Enter")
    shows(page, "what you pasted", "#about")
    tab_to(page, "#field-nodes")
    write(page, "zone=a")
    page.press("Enter")
    shows(page, "If 2 nodes of zone=a fell silent", "#sentence")
    assert "question=lose" in page.evaluate("location.search")
    assert "nodes=zone%3Da" in page.evaluate("location.search")
    assert server.engine.call(lambda: server.cluster.list("pods")) == []
    tab_to(page, "#question")
    page.press("ArrowDown")
    until(page, "location.search.includes('question=drain')")
    tab_to(page, "#field-nodes")
    write(page, "node=nowhere")
    page.press("Enter")
    shows(page, "nowhere", "#said")
    page.evaluate("history.back()")
    until(page, "document.querySelector('#question').value === 'lose'")
    until(page, "document.querySelector('#field-nodes').value === 'zone=a'")
    assert all("status of 409" in each for each in page.complaints)


def test_a_question_is_taken_back_while_it_is_played(browser: Browser, server: Server) -> None:
    server.engine.call(lambda: server.cluster.create(make_node("n").cpu("4")))
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse")
    page.press("g")
    page.press("i")
    shows(page, "this cluster as it stands", "#about")
    tab_to(page, "#field-nodes")
    write(page, "node=n")
    page.press("Enter")
    tab_to(page, "#cancel")
    page.press("Enter")
    until(page, "document.querySelector('#cancel').hidden")
    assert page.text("#answer") == ""
    tab_to(page, "#ask")
    page.press("Enter")
    shows(page, "If 1 node", "#sentence")
    assert page.complaints == []
