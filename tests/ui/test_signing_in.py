"""The pages over https: they ask for a token, and keep it to themselves."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from browser import Browser, Page, chromium
from kubescene.apiserver.access.security import Security, secured
from kubescene.apiserver.server import Server
from kubescene.testing import make_node, make_pod
from ui.walking import open_, shows, tab_to, until, write

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture
def security(tmp_path: Path) -> Security:
    return secured(tmp_path / "identities", "127.0.0.1")


@pytest.fixture
def server(security: Security, browser: Browser) -> Iterator[Server]:
    """Over https, with Roles: the administrator may do everything, alice nothing."""
    running = Server(port=0, security=security, rbac=True)
    running.start()
    security.introduce(running.url)

    def fill() -> None:
        running.cluster.create(make_node("n").cpu("4"))
        running.cluster.create(make_pod("big").cpu("6"))

    running.engine.call(fill)
    browser.call("Security.setIgnoreCertificateErrors", ignore=True)
    yield running
    running.stop()


def token_of(security: Security) -> str:
    told = yaml.safe_load(security.identities.kubeconfig.read_text())
    return str(told["users"][0]["user"]["token"])


def traces(page: Page, token: str) -> list[str]:
    """Where somebody could find the token later: addresses, what lasts, and the page itself."""
    kept = "[location.href, document.cookie, JSON.stringify(localStorage), document.URL]"
    markup = "document.documentElement.outerHTML"
    told = page.evaluate(f"{kept}.concat({markup})") + page.requests
    history = page.call("Page.getNavigationHistory")["entries"]
    told += [entry[name] for entry in history for name in ("url", "title")]
    return [text for text in told if token in text]


def unforeseen(page: Page) -> list[str]:
    """Complaints beside those of the browser that a request was answered with 401."""
    return [each for each in page.complaints if "status of 401" not in each]


def test_the_map_waits_for_a_token_and_goes_on_with_it(
    browser: Browser, server: Server, security: Security
) -> None:
    page = open_(browser, server, "/ui/cluster")
    shows(page, "Who are you?", "#sign-in")
    assert "big" not in page.text("body")
    tab_to(page, "#token")
    write(page, "wrong")
    page.press("Enter")
    shows(page, "does not know that token", "#sign-in")
    tab_to(page, "#token")
    write(page, token_of(security))
    page.press("Enter")
    shows(page, "1 pod waits", "#waiting")
    shows(page, "administrator", "#who")
    server.engine.call(lambda: server.cluster.create(make_node("larger").cpu("8")))
    shows(page, "2 nodes", "#tile-told")
    assert traces(page, token_of(security)) == []
    page.evaluate("location.reload()")
    browser.events.clear()
    shows(page, "2 nodes", "#tile-told")
    assert page.complaints == []
    tab_to(page, "#sign-out")
    page.press("Enter")
    shows(page, "Who are you?", "#sign-in")
    assert page.evaluate("sessionStorage.length") == 0
    assert unforeseen(page) == []


def test_a_whole_kubeconfig_may_be_given(
    browser: Browser, server: Server, security: Security
) -> None:
    page = open_(browser, server, "/ui/r/core/v1/nodes")
    shows(page, "Who are you?", "#sign-in")
    text = security.identities.kubeconfig.read_text()
    page.evaluate(
        f"""(() => {{ const field = document.querySelector('#kubeconfig');
        const given = new DataTransfer();
        given.items.add(new File([{json.dumps(text)}], 'administrator.yaml'));
        field.files = given.files;
        field.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"""
    )
    until(page, "document.querySelector('tbody a')?.innerText === 'n'")
    assert unforeseen(page) == []


def test_an_address_is_rid_of_the_token_that_it_brings(
    browser: Browser, server: Server, security: Security
) -> None:
    token = token_of(security)
    page = open_(browser, server, f"/ui/cluster?color=owner#token={token}")
    shows(page, "1 pod waits", "#waiting")
    assert page.evaluate("location.href").endswith("/ui/cluster?color=owner")
    assert [each for each in traces(page, token) if "#token" not in each] == []
    assert page.complaints == []
    # What the browser was told to open is its own affair; the page leaves no other trace.
    assert len(traces(page, token)) <= 1


def test_what_its_owner_may_not_see_is_refused_in_the_servers_words(
    browser: Browser, server: Server, security: Security
) -> None:
    token = security.identities.add("alice")
    page = open_(browser, server, f"/ui/r/core/v1/nodes#token={token}")
    shows(page, 'User "alice" cannot list resource "nodes"')
    shows(page, "alice", "#who")
    assert [each for each in page.complaints if "status of 403" not in each] == []
