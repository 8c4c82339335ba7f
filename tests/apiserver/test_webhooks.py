"""Admission webhooks of a served world: asked over https, off the engine thread."""

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from apiserver.http import Http, Reply
from kubescene.api.consultations import MOST_TURNS
from kubescene.apiserver.server import Server
from kubescene.testing.builders import make_pod
from kubescene.types import JsonObject
from webhook_programs import (
    ALLOWED,
    Raw,
    WebhookProgram,
    configuration,
    patch,
    webhook,
    webhook_program,
)

HOOKS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def running() -> Iterator[WebhookProgram]:
    with webhook_program() as program:
        yield program


@pytest.fixture
def program(running: WebhookProgram) -> WebhookProgram:
    running.answers.clear()
    running.asked.clear()
    return running


def put(http: Http, obj: JsonObject) -> None:
    kind = obj["kind"].lower() + "s"
    reply = http.post(f"{HOOKS}/{kind}", obj)
    assert reply.status == 201, reply.message


def config_map(name: str = "a", **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def add(path: str, value: Any) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def test_a_webhook_changes_and_another_sees_what_is_stored(
    http: Http, program: WebhookProgram
) -> None:
    program.answers["/mutate"] = lambda _: patch(add("/data/added", "by-webhook"))
    mutating = webhook("m.example.com", program.config("/mutate"))
    validating = webhook("v.example.com", program.config("/validate"))
    put(http, configuration("Mutating", "m", mutating))
    put(http, configuration("Validating", "v", validating))
    reply = http.post(MAPS, config_map(own="1"))
    assert reply.status == 201
    assert reply.json["data"] == {"own": "1", "added": "by-webhook"}
    asked, checked = program.requests("/mutate")[0], program.requests("/validate")[0]
    assert asked["operation"] == "CREATE"
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert (asked["namespace"], asked["name"]) == ("default", "a")
    assert asked["object"]["data"] == {"own": "1"}
    assert "uid" not in asked["object"]["metadata"]
    assert asked["oldObject"] is None
    assert asked["userInfo"]["username"] == "user"
    assert checked["object"]["data"] == reply.json["data"]
    assert checked["object"]["metadata"]["uid"] == reply.json["metadata"]["uid"]
    assert asked["uid"] != checked["uid"]
    assert program.asked[0][0] == "/mutate?timeout=10s"
    assert not reply.all("warning")


def test_a_refusal_is_told_in_its_words_with_its_warnings(
    http: Http, program: WebhookProgram
) -> None:
    status = {"code": 418, "message": "no tea", "reason": "Teapot"}
    program.answers["/no"] = lambda _: {
        "allowed": False,
        "status": status,
        "warnings": ["it is late"],
    }
    put(http, configuration("Validating", "v", webhook("no.example.com", program.config("/no"))))
    reply = http.post(MAPS, config_map())
    assert reply.status == 418
    assert reply.message == 'admission webhook "no.example.com" denied the request: no tea'
    assert reply.reason == "Teapot"
    assert reply.all("warning") == ['299 - "it is late"']
    assert http.get(f"{MAPS}/a").status == 404


def unreachable() -> JsonObject:
    return {"url": "https://127.0.0.1:1/none"}


def test_who_does_not_answer_refuses_unless_it_may_be_ignored(
    http: Http, program: WebhookProgram
) -> None:
    del program
    put(http, configuration("Validating", "v", webhook("gone.example.com", unreachable())))
    reply = http.post(MAPS, config_map())
    assert reply.status == 500
    assert reply.message == (
        'Internal error occurred: failed calling webhook "gone.example.com": failed to call '
        'webhook: Post "https://127.0.0.1:1/none?timeout=10s": dial tcp 127.0.0.1:1: connect: '
        "connection refused"
    )
    ignored = webhook("gone.example.com", unreachable(), failurePolicy="Ignore")
    replaced = configuration("Validating", "v", ignored)
    assert http.put(f"{HOOKS}/validatingwebhookconfigurations/v", replaced).status == 200
    assert http.post(MAPS, config_map()).status == 201


def test_a_slow_webhook_ends_by_its_time_and_holds_nobody_up(
    http: Http, server: Server, program: WebhookProgram
) -> None:
    late, seen = Event(), Event()

    def wait(_: JsonObject) -> JsonObject:
        seen.set()
        late.wait(60)
        return ALLOWED

    program.answers["/slow"] = wait
    slow = webhook("slow.example.com", program.config("/slow"), timeoutSeconds=1)
    put(http, configuration("Validating", "v", slow))
    with posting(server, MAPS, config_map()) as reply:
        seen.wait(60)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        assert http.post("/api/v1/namespaces/default/secrets", secret).status == 201
        assert http.get(MAPS).json["items"] == []
        told = reply()
    late.set()
    assert told.status == 500
    assert told.message.endswith('/slow?timeout=1s": context deadline exceeded')


def posting(server: Server, path: str, obj: JsonObject) -> Any:
    """A POST that is under way, and how to wait for its reply."""
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import contextmanager

    @contextmanager
    def begun() -> Iterator[Any]:
        with ThreadPoolExecutor(1) as threads:
            client = Http(server.host, server.port)
            future = threads.submit(client.post, path, obj)
            yield lambda: future.result(60)
            future.result(60)
            client.close()

    return begun()


def test_a_webhook_that_calls_back_does_not_wait_for_itself(
    http: Http, server: Server, program: WebhookProgram
) -> None:
    def call_back(review: JsonObject) -> JsonObject:
        name = review["request"]["name"]
        if name.startswith("echo"):
            return ALLOWED
        client = Http(server.host, server.port)
        made = client.post(MAPS, config_map(f"echo-{name}"))
        client.close()
        return {"allowed": made.status == 201}

    program.answers["/back"] = call_back
    put(
        http, configuration("Validating", "v", webhook("back.example.com", program.config("/back")))
    )
    assert http.post(MAPS, config_map()).status == 201
    names = [each["metadata"]["name"] for each in http.get(MAPS).json["items"]]
    assert names == ["a", "echo-a"]


def test_what_became_another_object_meanwhile_is_reviewed_again(
    http: Http, server: Server, program: WebhookProgram
) -> None:
    http.post(MAPS, config_map(count="0"))
    other = Http(server.host, server.port)

    def meddle(review: JsonObject) -> JsonObject:
        if review["request"]["object"]["data"].get("mine") and len(program.asked) == 1:
            meddled = {"metadata": {"labels": {"meddled": "yes"}}, "data": {"count": "1"}}
            assert other.patch(f"{MAPS}/a", meddled).status == 200
        return ALLOWED

    program.answers["/meddle"] = meddle
    hook = webhook("meddle.example.com", program.config("/meddle"))
    put(http, configuration("Validating", "v", hook))
    reply = http.patch(f"{MAPS}/a", {"data": {"mine": "x"}})
    assert reply.status == 200
    assert reply.json["data"] == {"count": "1", "mine": "x"}
    seen = [each["object"]["data"] for each in program.requests("/meddle")]
    assert seen == [{"count": "0", "mine": "x"}, {"count": "1"}, {"count": "1", "mine": "x"}]
    other.close()


def test_what_never_stays_the_same_is_given_up(
    http: Http, server: Server, program: WebhookProgram
) -> None:
    http.post(MAPS, config_map(count="0"))
    other = Http(server.host, server.port)

    def meddle(review: JsonObject) -> JsonObject:
        if review["request"]["object"]["data"].get("mine"):
            count = str(len(program.asked))
            assert other.patch(f"{MAPS}/a", {"data": {"count": count}}).status == 200
        return ALLOWED

    program.answers["/meddle"] = meddle
    hook = webhook("meddle.example.com", program.config("/meddle"))
    put(http, configuration("Validating", "v", hook))
    reply = http.patch(f"{MAPS}/a", {"data": {"mine": "x"}})
    assert reply.status == 409
    assert reply.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )
    mine = [each for each in program.requests("/meddle") if each["object"]["data"].get("mine")]
    assert len(mine) == MOST_TURNS
    assert "mine" not in http.get(f"{MAPS}/a").json["data"]
    other.close()


def test_generated_names_stay_while_webhooks_are_asked(http: Http, program: WebhookProgram) -> None:
    hooks = [webhook(f"v{each}.example.com", program.config(f"/{each}")) for each in range(3)]
    put(http, configuration("Validating", "v", *hooks))
    mutating = webhook("m.example.com", program.config("/m"))
    put(http, configuration("Mutating", "m", mutating))
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    reply = http.post(MAPS, obj)
    assert reply.status == 201
    made = reply.json["metadata"]
    assert [len(program.requests(f"/{each}")) for each in range(3)] == [1, 1, 1]
    for each in range(3):
        (asked,) = program.requests(f"/{each}")
        assert asked["object"]["metadata"]["uid"] == made["uid"]
        assert asked["name"] == made["name"]
    (asked,) = program.requests("/m")
    assert "name" not in asked
    assert "name" not in asked["object"]["metadata"]


def test_conditions_and_selectors_say_who_is_asked(http: Http, program: WebhookProgram) -> None:
    condition = {"name": "big", "expression": "object.data.size == 'big'"}
    by_condition = webhook("c.example.com", program.config("/c"), matchConditions=[condition])
    by_label = webhook(
        "l.example.com",
        program.config("/l"),
        objectSelector={"matchLabels": {"asked": "yes"}},
    )
    by_place = webhook(
        "n.example.com",
        program.config("/n"),
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "other"}},
    )
    put(http, configuration("Validating", "v", by_condition, by_label, by_place))
    http.post(MAPS, config_map("a", size="big"))
    http.post(MAPS, config_map("b", size="small"))
    labelled = config_map("c", size="small")
    labelled["metadata"]["labels"] = {"asked": "yes"}
    assert http.post(MAPS, labelled).status == 201
    asked = [(path.partition("?")[0], it["request"]["name"]) for path, it in program.asked]
    assert asked == [("/c", "a"), ("/l", "c")]
    refused = http.post(MAPS, config_map("d"))
    assert refused.status == 403
    assert refused.message.startswith('configmaps "d" is forbidden: expression ')


def test_whoever_wants_is_asked_again_after_somebodys_change(
    http: Http, program: WebhookProgram
) -> None:
    program.answers["/second"] = lambda _: patch(add("/data/second", "2"))
    again = {"reinvocationPolicy": "IfNeeded"}
    put(
        http,
        configuration(
            "Mutating",
            "m",
            webhook("first.example.com", program.config("/first"), **again),
            webhook("once.example.com", program.config("/once")),
            webhook("second.example.com", program.config("/second"), **again),
        ),
    )
    assert http.post(MAPS, config_map(own="1")).status == 201
    assert [path.partition("?")[0] for path, _ in program.asked] == [
        "/first",
        "/once",
        "/second",
        "/first",
    ]
    assert program.requests("/first")[1]["object"]["data"]["second"] == "2"


def test_deletions_bindings_and_dry_runs_are_asked_about(
    http: Http, program: WebhookProgram
) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
    hook = webhook(
        "all.example.com",
        program.config("/all"),
        rules=[{**rule, "resources": ["pods", "pods/binding", "pods/eviction"]}],
    )
    put(http, configuration("Validating", "v", hook))
    pods = "/api/v1/namespaces/default/pods"
    http.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert http.post(f"{pods}?dryRun=All", make_pod("dry").build()).status == 201
    assert http.post(pods, make_pod("p").build()).status == 201
    bound = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    assert http.post(f"{pods}/p/binding", bound).status == 201
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert http.post(f"{pods}/p/eviction", evicted).status == 201
    assert http.delete(f"{pods}/p?gracePeriodSeconds=0").status == 200
    asked = [
        (it["operation"], it.get("subResource", ""), it["name"], it["dryRun"])
        for it in program.requests()
    ]
    assert asked == [
        ("CREATE", "", "dry", True),
        ("CREATE", "", "p", False),
        ("CREATE", "binding", "p", False),
        ("CREATE", "eviction", "p", False),
        ("DELETE", "", "p", False),
    ]
    last = program.requests()[-1]
    assert last["object"] is None
    assert last["oldObject"]["metadata"]["name"] == "p"


def test_what_controllers_write_is_asked_about_as_well(
    live: Http, live_server: Server, program: WebhookProgram
) -> None:
    """A webhook that calls back while a controller waits for it is answered, too."""

    def label(review: JsonObject) -> JsonObject:
        client = Http(live_server.host, live_server.port)
        name = review["request"]["uid"]
        assert client.post(MAPS, config_map(name)).status == 201
        client.close()
        return patch(add("/metadata/annotations", {"injected": "yes"}))

    program.answers["/pods"] = label
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    put(
        live,
        configuration(
            "Mutating", "m", webhook("p.example.com", program.config("/pods"), rules=[rule])
        ),
    )
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }
    assert live.post("/apis/apps/v1/namespaces/default/replicasets", replicas).status == 201
    with live.watch("/api/v1/namespaces/default/pods?watch=true&resourceVersion=0") as events:
        found: dict[str, JsonObject] = {}
        while len(found) < 3:
            obj = events.next()["object"]
            found[obj["metadata"]["name"]] = obj["metadata"].get("annotations", {})
    assert all(each["injected"] == "yes" for each in found.values())
    user = program.requests("/pods")[0]["userInfo"]["username"]
    assert user == "system:serviceaccount:kube-system:replicaset-controller"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"url": "https://203.0.113.7/hook"}, "203.0.113.7 is not a loopback address"),
        (
            {"service": {"namespace": "default", "name": "hook", "path": "/x"}},
            'Post "https://hook.default.svc:443/x?timeout=10s": no Service is behind default/hook',
        ),
    ],
)
def test_nobody_is_called_elsewhere(http: Http, config: JsonObject, told: str) -> None:
    put(http, configuration("Validating", "v", webhook("far.example.com", config)))
    reply = http.post(MAPS, config_map())
    assert reply.status == 500
    assert told in reply.message


ODD: dict[str, tuple[JsonObject | Raw, str]] = {
    "nonsense": (Raw(200, b"hello"), "couldn't get version/kind; json parse error"),
    "error": (
        Raw(500, b"oops", "text/plain"),
        'an error on the server ("oops") has prevented the request',
    ),
    "moved": (Raw(301, b""), "the server responded with the status code 301"),
    "absent": (Raw(404, b""), "the server could not find the requested resource"),
    "other uid": (
        {"allowed": True, "uid": "x"},
        'invalid webhook response: expected response.uid="',
    ),
    "patch": (
        {"allowed": True, "patch": "W10="},
        "validating webhook may not return response.patch",
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_answer_that_is_none_is_no_permission(
    http: Http, program: WebhookProgram, odd: str
) -> None:
    answer, told = ODD[odd]
    program.answers["/odd"] = lambda _: answer
    put(http, configuration("Validating", "v", webhook("odd.example.com", program.config("/odd"))))
    reply = http.post(MAPS, config_map())
    assert reply.status == 500
    assert told in reply.message


def test_whoever_is_certified_by_somebody_else_is_not_believed(
    http: Http, program: WebhookProgram
) -> None:
    with webhook_program() as other:
        config = {**program.config("/x"), "url": other.config("/x")["url"]}
        put(http, configuration("Validating", "v", webhook("x.example.com", config)))
        reply: Reply = http.post(MAPS, config_map())
        assert not other.asked
    assert "tls: failed to verify certificate: x509: " in reply.message
