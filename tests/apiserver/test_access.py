"""Who asks, from where, and until when."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from apiserver.http import PODS, Http, config_map, pod
from kubescene.apiserver.origins import Origins, is_own
from kubescene.apiserver.requests import Scope
from kubescene.apiserver.server import Server
from kubescene.errors import ForbiddenError
from stopping import Retire

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def who(http: Http, path: str = WHO, **headers: str) -> str:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = http.request("POST", path, {}, headers=given)
    return str(reply.json["status"]["userInfo"]["username"]) if reply.status == 201 else ""


def test_whoever_speaks_for_somebody_is_that_user(http: Http) -> None:
    assert who(http) == "user"
    assert who(http, Impersonate_User="alice") == "alice"
    assert who(http, f"/as/bob{WHO}", Impersonate_User="alice") == "alice"


def test_what_is_written_for_somebody_is_theirs(live: Http) -> None:
    made = live.request("POST", PODS, pod("a"), headers={"Impersonate-User": "alice"})
    assert made.status == 201
    assert made.json["metadata"]["managedFields"][0]["manager"] == "alice"


@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-User": "alice", "Impersonate-Group": "system:masters"},
        {"Impersonate-Group": "developers"},
        {"Impersonate-User": "alice", "Impersonate-Uid": "1"},
        {"Impersonate-User": "alice", "Impersonate-Extra-Scopes": "view"},
        {"Impersonate-User": ""},
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused(http: Http, headers: dict[str, str]) -> None:
    reply = http.request("POST", CONFIG_MAPS, config_map("a"), headers=headers)
    assert (reply.status, reply.reason) == (400, "BadRequest")
    assert "mpersonate" in reply.message
    assert http.get(f"{CONFIG_MAPS}/a").status == 404


def test_no_token_is_known(http: Http) -> None:
    review = {"spec": {"token": "any"}}
    status = http.post("/apis/authentication.k8s.io/v1/tokenreviews", review).json["status"]
    assert "authenticated" not in status
    told = "no token but those of ServiceAccounts is known here: users are taken at their word"
    assert status["error"] == told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (f"{PODS}/a/exec", "pods/exec is not simulated: no container runs behind a simulated pod"),
        (
            f"{PODS}/a/portforward",
            "pods/portforward is not simulated: no container runs behind a simulated pod",
        ),
    ],
)
def test_what_is_not_simulated_says_why(http: Http, path: str, told: str) -> None:
    http.post(PODS, pod("a"))
    assert http.post(path, {}).message == told


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_servers_may_not_ask_for_what_costs_much(http: Http, site: str) -> None:
    path = "/simulator/v1/remedies?pod=default/a"
    assert http.request("GET", path, headers={"Sec-Fetch-Site": site}).status == 403
    assert http.request("GET", path, headers={"Sec-Fetch-Site": "same-origin"}).status == 404


def test_who_names_no_host_is_not_served(server: Server) -> None:
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        assert connection.recv(1000).split(b"\r\n")[0].endswith(b"403 Forbidden")


def asked_by_a_page(host: str) -> Scope:
    headers = [(b"host", host.encode()), (b"origin", f"http://{host}".encode())]
    return {"type": "http", "method": "POST", "headers": headers}


@pytest.mark.parametrize("host", ["10.0.0.7:8001", "[fd00::1]:8001", "localhost", None])
def test_a_page_of_a_server_that_all_reach_may_write_where_nobody_else_can_be(
    host: str | None,
) -> None:
    named = socket.gethostname() if host is None else host
    assert is_own(named.lower())
    Origins(only_local=False).check(asked_by_a_page(named.lower()))


@pytest.mark.parametrize("host", ["rebound.example.com", "[::1].rebound.example.com", ""])
def test_a_page_under_a_rebound_name_may_not_write(host: str) -> None:
    with pytest.raises(ForbiddenError, match="which anybody could let point here"):
        Origins(only_local=False).check(asked_by_a_page(host))


def test_whoever_is_no_page_reaches_a_server_by_any_name() -> None:
    scope = asked_by_a_page("simulator.example.com")
    scope["headers"] = scope["headers"][:1]
    Origins(only_local=False).check(scope)


@pytest.fixture
def busy(retire: Retire) -> Iterator[Server]:
    """A server whose scenario never comes to an end."""
    server = Server(port=0, controllers=False)
    server.start()
    server.stage.is_playing = lambda: True
    yield server
    retire(server)


def test_who_waits_for_a_turn_hears_that_the_server_ends(busy: Server) -> None:
    http = Http(busy.host, busy.port)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.post, "/simulator/v1/park", {"name": "operator"})
        while not busy.engine.call(lambda: busy.stage.program("operator").parked):
            pass
        busy.stop()
        reply = waiting.result()
    assert (reply.status, reply.message) == (500, "the server is shutting down")
