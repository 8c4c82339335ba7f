"""The main story of each page by keys alone: no click, no script that helps."""

import json

import pytest

from browser import Browser, chromium
from kubescene.apiserver.server import Server
from kubescene.testing import make_node, make_pod
from ui.walking import open_, shows, tab_to, until, write

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]


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
