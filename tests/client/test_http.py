"""What only a client over HTTP has to deal with: servers that go, lie, forget and dawdle."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import orjson
import pytest

from client.scripted import (
    CORE,
    LAST_CHUNK,
    LATER_S,
    WATCH_HEAD,
    Answer,
    ScriptedServer,
    answer,
    chunk,
    config_map,
    event,
    listed,
    watch,
)
from client.worlds import HttpWorld, pump_until
from kubescene.actors import Actor
from kubescene.api.options import NO_OPTIONS, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http import Endpoint, HttpClient, streams
from kubescene.clock import SECOND
from kubescene.cluster import ClusterWorld
from kubescene.errors import (
    ApiError,
    ConfigurationError,
    ConflictError,
    ForbiddenError,
    InternalError,
    NotFoundError,
    TooManyRequestsError,
    UnreachableError,
    UnseenWriteError,
)

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
PATH = "/api/v1/configmaps"
IN_DEFAULT = "/api/v1/namespaces/default/configmaps"
A = ObjectRef(CONFIG_MAP, "a", "default")


class Heard(list[Change]):
    """A handler that remembers."""

    def __call__(self, change: Change) -> None:
        self.append(change)

    @property
    def told(self) -> list[str]:
        return [f"{it.type} {it.record.name}" for it in self]


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.add("/api/v1", answer(CORE))
    yield server
    server.close()


@pytest.fixture
def client(scripted: ScriptedServer) -> Iterator[HttpClient]:
    client = HttpClient(scripted.url, Actor("tester"), timeout_s=120, patience_s=120)
    yield client
    client.close()


def hear(client: HttpClient, count: int) -> Heard:
    """Watch until so many changes were heard."""
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    pump_until(client, lambda: len(heard) >= count)
    return heard


def plain(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# -- servers that go and come back ---------------------------------------------------------------


def restarted(world: HttpWorld, cluster: Any = None) -> None:
    """Stop the server of a world and serve on the same port again."""
    port = world.server.port
    world.server.stop()
    world.server = Server(cluster or world.cluster, port=port, controllers=False)
    world.server.start()


def test_a_watch_goes_on_when_the_server_comes_back(served: HttpWorld) -> None:
    watching, user, heard = served.client("watching"), served.client("user"), Heard()
    watching.watch(CONFIG_MAP, heard)
    user.create(plain("a"))
    pump_until(watching, lambda: heard.told == ["ADDED a"])
    restarted(served)
    user.create(plain("b"))
    user.delete(A)
    pump_until(watching, lambda: len(heard) == 3)
    assert heard.told == ["ADDED a", "ADDED b", "DELETED a"]


def test_what_was_forgotten_is_told_as_a_difference(served: HttpWorld) -> None:
    watching, user, heard = served.client("watching"), served.client("user"), Heard()
    watching.watch(CONFIG_MAP, heard)
    for name in ("a", "b", "c", "d"):
        user.create(plain(name))
    pump_until(watching, lambda: len(heard) == 4)
    server, cluster = served.server, served.cluster
    server.stop()
    cluster.store.own()
    cluster.store.history.window = 1
    cluster.delete("configmaps", "a")
    cluster.patch("configmaps", "b", {"data": {"x": "1"}})
    cluster.delete("configmaps", "d")
    cluster.create(plain("e"))
    cluster.create(plain("d"))
    served.server = Server(cluster, port=server.port, controllers=False)
    served.server.start()
    pump_until(watching, lambda: len(heard) >= 9)
    assert heard.told[4:] == ["DELETED a", "DELETED d", "MODIFIED b", "ADDED e", "ADDED d"]
    gone, _, changed, *_ = heard[4:]
    assert (gone.previous, changed.previous) == (heard[0].record, heard[1].record)
    assert gone.revision == cluster.store.revision
    # And it goes on from there.
    user.create(plain("f"))
    pump_until(watching, lambda: heard.told[-1] == "ADDED f")


def test_a_server_with_another_history_is_noticed(served: HttpWorld) -> None:
    watching, user, heard = served.client("watching"), served.client("user"), Heard()
    watching.watch(CONFIG_MAP, heard)
    for number in range(9):
        user.create(plain(f"old-{number}"))
    pump_until(watching, lambda: len(heard) == 9)
    restarted(served, ClusterWorld())
    assert served.client("user").create(plain("new")).revision < heard[-1].revision
    pump_until(watching, lambda: len(heard) == 19)
    assert heard.told[9:] == [*(f"DELETED old-{n}" for n in range(9)), "ADDED new"]


def test_a_server_that_stays_away_is_told_of(served: HttpWorld) -> None:
    client = served.client(patience_s=0.3)
    client.watch(CONFIG_MAP, Heard())
    url = served.server.url
    served.server.stop()
    with pytest.raises(UnreachableError, match=f"GET {url}.*configmaps.*Check that the API server"):
        client.pump(10)


def test_nobody_there_is_an_error_that_says_where(served: HttpWorld) -> None:
    client, url = served.client(), served.server.url
    served.server.stop()
    with pytest.raises(UnreachableError, match=f"GET {url}/as/tester/api/v1: .*refused"):
        client.get(A)


# -- watches -------------------------------------------------------------------------------------


EVENTS = b"".join(
    (
        event("ADDED", config_map("a", 11)),
        event("MODIFIED", config_map("a", 12, x="ü" * 40)),
        event("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": "20"}}),
        event("DELETED", config_map("a", 21)),
    )
)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_events_may_be_cut_anywhere(
    scripted: ScriptedServer, client: HttpClient, size: int
) -> None:
    pieces = [EVENTS[at : at + size] for at in range(0, len(EVENTS), size)]
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", Answer((WATCH_HEAD, *map(chunk, pieces)), "hold"))
    heard = hear(client, 3)
    assert heard.told == ["ADDED a", "MODIFIED a", "DELETED a"]
    assert heard[1].object["data"] == {"x": "ü" * 40}
    assert heard[2].previous == heard[1].record


def test_a_line_may_be_a_megabyte_long(scripted: ScriptedServer, client: HttpClient) -> None:
    large = event("ADDED", config_map("a", 11, x="x" * 1_000_000))
    pieces = [large[at : at + 1000] for at in range(0, len(large), 1000)]
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", Answer((WATCH_HEAD, *map(chunk, pieces)), "hold"))
    assert len(hear(client, 1)[0].object["data"]["x"]) == 1_000_000


def test_an_endless_line_ends_the_watch(
    scripted: ScriptedServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubescene.client.http.watch_connections.MAX_LINE", 1000)
    endless = Answer((WATCH_HEAD, chunk(b"x" * 2000)), "hold")
    scripted.add(PATH, listed([], 10), MUCH_LATER)
    scripted.add(f"WATCH {PATH}", endless, watch(event("ADDED", config_map("a", 11))))
    assert hear(client, 1).told == ["ADDED a"]


MUCH_LATER = listed([], 1000)
"""What a server says that is asked how far it has come."""

FIRST = EVENTS[: EVENTS.index(b"\n") + 1]
CUT = EVENTS[: len(FIRST) + 30]


@pytest.mark.parametrize(
    "broken",
    [
        Answer((WATCH_HEAD, chunk(CUT)), "close"),
        Answer((WATCH_HEAD, chunk(CUT), LAST_CHUNK)),
        Answer((WATCH_HEAD, chunk(CUT)[:-3]), "close"),
        Answer((WATCH_HEAD, chunk(FIRST), b"no chunk\r\n"), "hold"),
        watch(FIRST, b"no event\n"),
        watch(FIRST, event("NONSENSE", {})),
        watch(FIRST, event("MODIFIED", {"metadata": {}})),
        watch(
            FIRST,
            event("ERROR", {"kind": "Status", "code": 500, "message": "etcd is ill"}),
        ),
    ],
    ids=[
        "mid-line",
        "mid-line in good order",
        "mid-chunk",
        "bad chunk",
        "bad line",
        "bad type",
        "bad object",
        "error",
    ],
)
def test_a_broken_watch_goes_on_from_the_last_whole_event(
    scripted: ScriptedServer, client: HttpClient, broken: Answer
) -> None:
    scripted.add(PATH, listed([], 10), MUCH_LATER)
    scripted.add(f"WATCH {PATH}", broken, watch(event("MODIFIED", config_map("a", 12))))
    assert hear(client, 2).told == ["ADDED a", "MODIFIED a"]
    watches = [it.query["resourceVersion"] for it in scripted.asked if "watch" in it.query]
    assert watches == ["10", "11"]
    assert [it.query.get("limit") for it in scripted.asked if "watch" not in it.query] == [
        None,  # discovery
        "500",
        "1",  # has the server another history now?
    ]


def test_bookmarks_say_where_to_go_on(scripted: ScriptedServer, client: HttpClient) -> None:
    mark = event("BOOKMARK", {"metadata": {"resourceVersion": "50"}})
    scripted.add(PATH, listed([], 10), MUCH_LATER)
    scripted.add(
        f"WATCH {PATH}", watch(mark, then="end"), watch(event("ADDED", config_map("a", 60)))
    )
    hear(client, 1)
    first, second = (it.query for it in scripted.asked if "watch" in it.query)
    assert (first["resourceVersion"], second["resourceVersion"]) == ("10", "50")
    assert first["allowWatchBookmarks"] == "true"
    assert int(first["timeoutSeconds"]) > 0


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


@pytest.mark.parametrize(
    "gone",
    [watch(event("ERROR", GONE)), answer(GONE, 410), answer({**GONE, "reason": "Gone"}, 410)],
    ids=["event", "status", "reason of old servers"],
)
def test_410_lists_anew(scripted: ScriptedServer, client: HttpClient, gone: Answer) -> None:
    before = [config_map("a", 5), config_map("b", 6), config_map("c", 7)]
    after = [config_map("b", 6), config_map("c", 30), config_map("a", 31, uid="another")]
    scripted.add(PATH, listed(before, 10), listed(after, 40))
    scripted.add(f"WATCH {PATH}", gone, watch(event("ADDED", config_map("d", 41))))
    heard = hear(client, 7)
    assert heard.told == [
        *("ADDED a", "ADDED b", "ADDED c"),
        *("DELETED a", "MODIFIED c", "ADDED a", "ADDED d"),
    ]
    assert heard[3].object["metadata"]["resourceVersion"] == "40"
    assert heard[3].object["metadata"]["uid"] == "uid-a"


def test_a_kind_in_which_nothing_happens_may_expire_again_and_again(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As Events of a kube-apiserver: without bookmarks, and etcd forgets every five minutes."""
    monkeypatch.setattr(streams, "STABLE", int(LATER_S * SECOND) // 4)
    gone, quiet = answer(GONE, 410), watch(then="later")
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", *[gone, quiet] * 3, watch(event("ADDED", config_map("a", 11))))
    client = HttpClient(scripted.url, Actor("tester"), patience_s=LATER_S / 2)
    with closing(client):
        assert hear(client, 1).told == ["ADDED a"]
    assert caplog.messages == []


def test_a_watch_that_goes_back_is_listed_anew(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    scripted.add(PATH, listed([config_map("a", 8)], 10), listed([config_map("b", 2)], 6))
    scripted.add(f"WATCH {PATH}", watch(event("ADDED", config_map("b", 5))), watch())
    assert hear(client, 3).told == ["ADDED a", "DELETED a", "ADDED b"]


def test_a_refused_watch_is_an_error_at_once(scripted: ScriptedServer, client: HttpClient) -> None:
    refusal = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not watch"}
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", answer(refusal, 403))
    client.watch(CONFIG_MAP, Heard())
    with pytest.raises(ForbiddenError, match="you may not watch"):
        client.pump(5)


def test_nothing_is_delivered_outside_of_pump(scripted: ScriptedServer, client: HttpClient) -> None:
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", watch(event("ADDED", config_map("a", 11))))
    scripted.add(f"{IN_DEFAULT}/a", answer(config_map("a", 11)))
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    for _ in range(3):
        client.get(A)
    assert heard.told == []
    pump_until(client, lambda: heard.told == ["ADDED a"])


def test_a_handler_that_raises_keeps_nobody_from_hearing(served: HttpWorld) -> None:
    client, heard = served.client(), Heard()

    def broken(change: Change) -> None:
        raise LookupError(change.record.name)

    client.watch(CONFIG_MAP, broken)
    client.watch(CONFIG_MAP, heard)
    client.create(plain("a"))
    record = client.create(plain("b"))
    for name in ("a", "b"):
        with pytest.raises(LookupError, match=name):
            client.wait_seen(record.revision)
    client.wait_seen(record.revision)
    assert heard.told == ["ADDED a", "ADDED b"]


def test_a_write_that_does_not_come_back_is_told_of(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", watch())
    scripted.add(f"POST {IN_DEFAULT}", answer(config_map("a", 11), 201))
    impatient = HttpClient(scripted.url, Actor("tester"), patience_s=0.1)
    impatient.watch(CONFIG_MAP, Heard())
    record = impatient.create(plain("a"))
    with pytest.raises(UnseenWriteError, match=r"default/a: revision 11 .* within 0.1 s"):
        impatient.wait_seen(record.revision)
    impatient.close()


def test_a_dry_run_is_never_waited_for(scripted: ScriptedServer, client: HttpClient) -> None:
    dry, done = answer(config_map("a", 999), 201), answer(config_map("a", 11), 201)
    scripted.add(PATH, listed([], 10))
    scripted.add(f"WATCH {PATH}", watch(event("ADDED", config_map("a", 11))))
    scripted.add(f"POST {IN_DEFAULT}", dry, done)
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    client.create(plain("a"), options=WriteOptions(dry_run=True))
    client.wait_seen(client.create(plain("a")).revision)
    assert heard.told == ["ADDED a"]


def test_a_pod_that_was_deleted_at_once_is_waited_for(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    """kube-apiserver answers with the last state of the pod, whose revision is an old one."""
    last = config_map("a", 8)
    at_once = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    scripted.add(PATH, listed([config_map("a", 8)], 10))
    scripted.add(f"WATCH {PATH}", watch(event("DELETED", config_map("a", 11))))
    marked = {**last, "metadata": {**last["metadata"], **at_once}}
    scripted.add(f"DELETE {IN_DEFAULT}/a", answer(marked))
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    client.wait_seen(client.delete(A).revision)
    assert heard.told == ["ADDED a", "DELETED a"]


def test_a_kind_that_discovery_shows_late_is_followed(
    scripted: ScriptedServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubescene.client.http.watches.DISCOVERY_RETRY", 1_000_000)
    group, verbs = "apiextensions.k8s.io", ["list", "watch"]
    crds = {"name": "customresourcedefinitions", "kind": "CustomResourceDefinition"}
    gadgets = {"name": "gadgets", "kind": "Gadget", "namespaced": True, "verbs": verbs}
    definition = config_map("gadgets.example.com", 5) | {
        "spec": {"group": "example.com", "names": {"plural": "gadgets"}},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }
    early = {"name": group, "versions": [{"version": "v1"}]}
    late = {"name": "example.com", "versions": [{"version": "v1"}]}
    scripted.add("/api", answer({"versions": []}))
    scripted.add("/apis", *[answer({"groups": [early]})] * 3, answer({"groups": [early, late]}))
    scripted.add(f"/apis/{group}/v1", answer({"resources": [{**crds, "verbs": verbs}]}))
    scripted.add("/apis/example.com/v1", answer({"resources": [gadgets]}))
    scripted.add(f"/apis/{group}/v1/{crds['name']}", listed([definition], 10))
    scripted.add(f"WATCH /apis/{group}/v1/{crds['name']}", watch())
    scripted.add("/apis/example.com/v1/gadgets", listed([config_map("g", 7)], 10))
    scripted.add("WATCH /apis/example.com/v1/gadgets", watch())
    heard = Heard()
    client.watch_all(heard)
    pump_until(client, lambda: heard.told == ["ADDED gadgets.example.com", "ADDED g"])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_a_name_never_leads_elsewhere(
    scripted: ScriptedServer, client: HttpClient, name: str
) -> None:
    with pytest.raises(NotFoundError):
        client.delete(ObjectRef(CONFIG_MAP, name, "default"))
    with pytest.raises(NotFoundError):
        client.create({**plain("a"), "metadata": {"name": "a", "namespace": name or ".."}})
    assert scripted.requests("DELETE") == scripted.requests("POST") == []


# -- lists and records ---------------------------------------------------------------------------


def test_lists_come_in_pages(served: HttpWorld) -> None:
    user, client = served.client("user"), served.client(page_size=2)
    for name in ("e", "b", "d", "a", "c"):
        user.create(plain(name))
    assert [it["metadata"]["name"] for it in client.list(CONFIG_MAP)] == list("abcde")
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    assert heard.told == [f"ADDED {name}" for name in "ebdac"]


def test_a_list_that_expires_between_pages_is_asked_for_as_a_whole(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    whole = listed([config_map("a", 5), config_map("b", 6)], 12)
    scripted.add(PATH, listed([config_map("a", 5)], 10, token="more"), answer(GONE, 410), whole)
    assert [it["metadata"]["name"] for it in client.list(CONFIG_MAP)] == ["a", "b"]
    assert [it.query.get("limit") for it in scripted.asked[1:]] == ["500", "500", None]


def test_items_of_a_list_learn_their_kind(scripted: ScriptedServer, client: HttpClient) -> None:
    scripted.add(PATH, listed([config_map("a", 5)], 10))
    (found,) = client.list(CONFIG_MAP)
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (
        "v1",
        "ConfigMap",
        "a",
    )


def test_what_exists_is_told_by_second_of_creation_then_by_revision(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    old = config_map("z", 90)
    old["metadata"]["creationTimestamp"] = "2025-12-31T23:59:59Z"
    scripted.add(PATH, listed([config_map("a", 7), config_map("b", 6), old], 100))
    scripted.add(f"WATCH {PATH}", watch())
    assert hear(client, 3).told == ["ADDED z", "ADDED b", "ADDED a"]


# -- requests ------------------------------------------------------------------------------------


def test_writes_say_everything_about_themselves(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    scripted.add(f"POST {IN_DEFAULT}", answer(config_map("a", 11), 201))
    scripted.add(f"DELETE {IN_DEFAULT}/a", answer(config_map("a", 12)))
    client.create(plain("a"))
    strict = WriteOptions(strict=True, dry_run=True, field_manager="me", force=True)
    client.create(plain("a"), options=strict)
    options = DeleteOptions(7, "u", "11", "Orphan", dry_run=True)
    client.delete(A, options=options)
    _, first, second, third = scripted.asked
    assert first.query == {"fieldManager": "tester", "fieldValidation": "Ignore"}
    assert second.query == {"fieldManager": "me", "fieldValidation": "Strict", "dryRun": "All"}
    assert orjson.loads(third.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 7,
        "preconditions": {"uid": "u", "resourceVersion": "11"},
        "propagationPolicy": "Orphan",
        "dryRun": ["All"],
    }
    assert first.headers["user-agent"].startswith("kubescene/")


def test_an_origin_cannot_be_told(client: HttpClient) -> None:
    origin = OperationOrigin("op", b"{}")
    with pytest.raises(ValueError, match="cannot be told over HTTP"):
        client.delete(A, origin=origin)
    with pytest.raises(ValueError, match="cannot be told over HTTP"):
        client.create(plain("a"), options=WriteOptions(origin=origin))
    assert NO_OPTIONS.origin is None


def test_the_path_of_the_address_is_kept(scripted: ScriptedServer) -> None:
    scripted.add("/as/alice/api/v1", answer(CORE))
    scripted.add(f"/as/alice{IN_DEFAULT}/a", answer(config_map("a", 1)))
    client = HttpClient(f"{scripted.url}/as/alice/", Actor("alice"))
    assert client.get(A)["metadata"]["name"] == "a"
    client.close()


BUSY = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "later"}


def test_what_is_put_off_is_asked_again(scripted: ScriptedServer, client: HttpClient) -> None:
    later = answer(BUSY, 429, Retry_After="0")
    scripted.add(f"POST {IN_DEFAULT}", later, later, answer(config_map("a", 11), 201))
    assert client.create(plain("a")).revision == 11
    assert len(scripted.requests("POST")) == 3


def test_a_budget_that_says_later_is_not_asked_again(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    cause = {"reason": "DisruptionBudget", "message": "still being processed"}
    busy = {**BUSY, "details": {"retryAfterSeconds": 10, "causes": [cause]}}
    scripted.add(f"POST {IN_DEFAULT}", answer(busy, 429, Retry_After="10"))
    with pytest.raises(TooManyRequestsError) as caught:
        client.create(plain("a"))
    assert (caught.value.retry_after_s, caught.value.causes[0].reason) == (10, "DisruptionBudget")
    assert len(scripted.requests("POST")) == 1


@pytest.mark.parametrize("headers", [{}, {"Retry_After": "3600"}, {"Retry_After": "soon"}])
def test_what_is_refused_for_now_is_told(
    scripted: ScriptedServer, client: HttpClient, headers: dict[str, str]
) -> None:
    scripted.add(f"POST {IN_DEFAULT}", answer(BUSY, 429, **headers))
    with pytest.raises(TooManyRequestsError, match="later"):
        client.create(plain("a"))
    assert len(scripted.requests("POST")) == 1


def test_a_read_is_asked_again_when_the_connection_breaks(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    nothing = Answer((), "close")
    scripted.add(f"{IN_DEFAULT}/a", nothing, nothing, answer(config_map("a", 5)))
    assert client.get(A)["metadata"]["name"] == "a"


def test_a_write_is_never_repeated(scripted: ScriptedServer, client: HttpClient) -> None:
    scripted.add(f"POST {IN_DEFAULT}", Answer((), "close"), answer(config_map("a", 5)))
    with pytest.raises(UnreachableError, match="whether it was carried out is not known"):
        client.create(plain("a"))
    assert len(scripted.requests("POST")) == 1
    assert client.create(plain("a")).revision == 5


def test_a_connection_that_was_closed_while_idle_is_noticed(
    scripted: ScriptedServer, client: HttpClient
) -> None:
    scripted.add(f"{IN_DEFAULT}/a", answer(config_map("a", 5), then="close"))
    scripted.add(f"POST {IN_DEFAULT}", answer(config_map("a", 6), 201))
    client.get(A)
    assert scripted.dropped.wait(120)
    assert client.create(plain("a")).revision == 6


def test_a_slow_server_is_not_waited_for_for_ever(scripted: ScriptedServer) -> None:
    scripted.add("GET /slow/api/v1", Answer((b"HTTP/1.1 200 OK\r\nContent-Le",), "hold"))
    client = HttpClient(f"{scripted.url}/slow", Actor("tester"), timeout_s=0.2)
    with pytest.raises(UnreachableError, match="timed out"):
        client.get(A)
    assert len(scripted.asked) == 1
    client.close()


@pytest.mark.parametrize(
    "said",
    [
        Answer((b"SSH-2.0-OpenSSH_9.2\r\n\r\n",), "close"),
        answer(b"<html>"),
        answer(b"[]"),
        answer(b'{"metadata":{}}'),
        answer(config_map("a", 5) | {"metadata": {"name": "a", "resourceVersion": "x5"}}),
        Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",), "close"),
    ],
    ids=["other protocol", "other format", "no object", "no name", "odd version", "cut off"],
)
def test_an_answer_without_sense_is_an_error(
    scripted: ScriptedServer, client: HttpClient, said: Answer
) -> None:
    scripted.add(f"PUT {IN_DEFAULT}/a", said)
    with pytest.raises(UnreachableError, match=f"PUT {scripted.url}{IN_DEFAULT}/a: "):
        client.update(plain("a"))


def test_an_answer_is_bounded(
    scripted: ScriptedServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client._requests, "_max_reply", 1000)
    scripted.add(f"{IN_DEFAULT}/a", answer(config_map("a", 5, x="x" * 2000)))
    with pytest.raises(UnreachableError, match="longer than 1000 bytes"):
        client.get(A)


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "message"),
    [
        (404, {"kind": "Status", "reason": "NotFound", "message": "m"}, NotFoundError, 404, "m"),
        (409, {"kind": "Status", "code": 409, "message": "m"}, ConflictError, 409, "m"),
        (418, {"kind": "Status", "reason": "Teapot", "message": "m"}, ApiError, 418, "m"),
        (504, {"kind": "Status", "reason": "Timeout", "message": "m"}, ApiError, 504, "m"),
        (500, b"boom", InternalError, 500, "boom"),
        (502, b"<html>\nbad gateway", ApiError, 502, "<html> bad gateway"),
        (503, b"", ApiError, 503, "the server answered 503 and nothing else"),
        (301, b"", ApiError, 301, "the server answered 301 and nothing else"),
    ],
)
def test_every_refusal_keeps_its_code_and_text(
    scripted: ScriptedServer,
    client: HttpClient,
    status: int,
    body: Any,
    kind: type[ApiError],
    code: int,
    message: str,
) -> None:
    scripted.add(f"PUT {IN_DEFAULT}/a", answer(body, status))
    with pytest.raises(ApiError) as caught:
        client.update(plain("a"))
    error = caught.value
    assert (type(error), error.code, error.message) == (kind, code, message)
    assert error.to_status()["code"] == code


# -- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8001", "ftp://a", "http://", "http://u:p@h", "http://h?x=y"]
)
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Endpoint(url)


def test_a_token_is_not_sent_in_clear() -> None:
    with pytest.raises(ConfigurationError, match="in clear"):
        Endpoint("http://127.0.0.1:8001", token="secret")


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(Endpoint("https://127.0.0.1:8001", token="secret"))
