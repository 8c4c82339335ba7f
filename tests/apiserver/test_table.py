"""One table of all that can be asked."""

from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.http import PODS, Http, pod
from kubescene.actors import Actor
from kubescene.apiserver.access import Attributes, Permission
from kubescene.apiserver.app import ApiServer
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, text_response
from kubescene.apiserver.server import Server
from kubescene.apiserver.table import ANY, Route, RouteTable, reading, takes
from kubescene.errors import ApiError
from stopping import Retire


def asked(path: str, method: str = "GET") -> Request:
    scope: dict[str, Any] = {"method": method, "path": path, "headers": []}
    return Request(scope, None, None)  # type: ignore[arg-type]  # nobody reads or sends


async def answer(request: Request) -> Response:
    return text_response(request.path)


@pytest.fixture
def table() -> RouteTable:
    made = RouteTable(lambda path: None)
    made.add(*reading("/", answer), *reading("/version", answer), slash=True)
    made.add(Route("GET", "/runs/{id:int}", answer), Route("POST", "/runs/{id:int}", answer))
    made.add(Route("GET", "/s/{name}/x", answer), Route(ANY, "/all/{rest...}", answer))
    made.add(Route("PUT", "/reset", answer), refuse=takes("simulator"))
    return made


@pytest.mark.parametrize(
    ("path", "pattern", "params"),
    [
        ("/version", "/version", {}),
        ("/version/", "/version", {}),
        ("", "/", {}),
        ("//", "/", {}),
        ("/runs/12", "/runs/{id:int}", {"id": "12"}),
        ("/s/a/x", "/s/{name}/x", {"name": "a"}),
        ("/s//x", "/s/{name}/x", {"name": ""}),
        ("/all/a/b\n/", "/all/{rest...}", {"rest": "a/b\n/"}),
    ],
)
def test_a_path_finds_its_row(
    table: RouteTable, path: str, pattern: str, params: dict[str, str]
) -> None:
    request = asked(path)
    entry = table.find(request)
    assert entry is not None
    assert (entry.pattern, request.params) == (pattern, params)


@pytest.mark.parametrize(
    "path",
    [
        "/reset/",
        "/runs/",
        "/runs/x",
        "/runs/{id:int}",
        "/runs/1234567890123456789",
        "/s/a/b/x",
        "/s/a/x/",
        "/all",
        "/versions",
    ],
)
def test_a_path_that_no_row_has_finds_none(table: RouteTable, path: str) -> None:
    assert table.find(asked(path)) is None


@pytest.mark.parametrize(
    ("path", "method", "told"),
    [
        ("/version", "POST", "the server does not allow this method on the requested resource"),
        ("/reset", "GET", "/reset takes PUT, not GET"),
    ],
)
def test_another_method_is_refused_in_the_words_of_the_rows(
    table: RouteTable, path: str, method: str, told: str
) -> None:
    request = asked(path, method)
    entry = table.find(request)
    assert entry is not None
    with pytest.raises(ApiError, match=told) as refused:
        entry.route(request)
    assert refused.value.code == 405


def test_a_row_stands_in_the_table_once(table: RouteTable) -> None:
    with pytest.raises(ValueError, match="PUT /reset is in the table already"):
        table.add(Route("PUT", "/reset", answer))


def test_the_root_lists_what_there_is(http: Http) -> None:
    paths = http.get("/").json["paths"]
    assert {"/api", "/apis", "/run", "/runs", "/simulator/v1/export", "/version"} <= set(paths)
    assert paths == sorted(paths)


class Guard:
    """Lets ``alice`` do nothing but read, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Attributes]] = []

    def permission(self, actor: Actor, verb: str, target: Attributes) -> Permission:
        self.asked.append((actor.name, verb, target))
        return Permission(actor.name != "alice" or verb in ("get", "list", "watch"))


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture
def guarded(guard: Guard, retire: Retire) -> Iterator[Http]:
    server = Server(port=0, controllers=False, authorizer=guard)
    server.start()
    http = Http(server.host, server.port)
    yield http
    http.close()
    retire(server)


def test_an_authorizer_is_asked_for_every_request(guarded: Http, guard: Guard) -> None:
    guarded.get(f"{PODS}?watch=1&timeoutSeconds=1")
    guarded.get(f"{PODS}/a/status")
    guarded.delete(PODS)
    guarded.get("/version")
    pods = ("", "v1", "pods")
    assert guard.asked == [
        ("user", "watch", Attributes(*pods, "", "default")),
        ("user", "get", Attributes(*pods, "status", "default", "a")),
        ("user", "deletecollection", Attributes(*pods, "", "default")),
        ("user", "get", Attributes(path="/version")),
    ]


def test_what_an_authorizer_refuses_is_not_carried_out(guarded: Http) -> None:
    reply = guarded.post(f"/as/alice{PODS}", pod("a"))
    assert reply.status == 403
    assert 'User "alice" cannot create resource "pods" in API group ""' in reply.message
    assert guarded.post("/as/alice/run", {}).status == 403
    assert guarded.get(f"/as/alice{PODS}").json["items"] == []
    assert guarded.post(PODS, pod("a")).status == 201


@pytest.mark.parametrize(("user", "allowed"), [("alice", False), ("bob", True)])
def test_reviews_ask_the_same_authorizer(
    guarded: Http, guard: Guard, user: str, allowed: bool
) -> None:
    group = "/apis/authorization.k8s.io/v1"
    question = {"verb": "create", "resource": "pods", "namespace": "n"}
    review = {"spec": {"user": user, "resourceAttributes": question}}
    reply = guarded.post(f"{group}/subjectaccessreviews", review)
    assert reply.json["status"]["allowed"] is allowed
    assert guard.asked[-1] == (user, "create", Attributes(resource="pods", namespace="n"))


def test_every_row_names_a_handler_and_a_known_method(server: Server) -> None:
    app: ApiServer = server.app
    methods = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", ANY}
    assert {route.method for route in app.table} <= methods
    assert all(callable(route.handler) for route in app.table)
