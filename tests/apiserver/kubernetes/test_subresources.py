"""Status, scale, binding, eviction, reviews and the like."""

import pytest

from apiserver.http import PODS, Http, pod
from apiserver.kubernetes.test_writes import DEPLOYMENTS, WIDGETS, define_widgets, deployment
from kubescene.types import JsonObject

REVIEWS = "/apis/authorization.k8s.io/v1"


class TestStatus:
    def test_status_is_written_apart_from_the_rest(self, http: Http) -> None:
        http.post(PODS, pod("a"))
        patch = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
        reply = http.patch(f"{PODS}/a/status", patch)
        assert reply.status == 200
        assert reply.json["status"]["phase"] == "Running"
        assert "nodeName" not in reply.json["spec"]

    def test_status_is_not_written_with_the_rest(self, http: Http) -> None:
        created = http.post(PODS, pod("a")).json
        created["status"]["phase"] = "Failed"
        assert http.put(f"{PODS}/a", created).json["status"]["phase"] == "Pending"
        assert http.put(f"{PODS}/a/status", created).json["status"]["phase"] == "Failed"

    def test_kinds_without_status_have_no_such_path(self, http: Http) -> None:
        assert http.get("/api/v1/namespaces/default/configmaps/a/status").status == 404


class TestScale:
    def test_scale_shows_replicas_and_selector(self, http: Http) -> None:
        http.post(DEPLOYMENTS, deployment("d"))
        scale = http.get(f"{DEPLOYMENTS}/d/scale").json
        assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
        assert scale["spec"] == {"replicas": 1}
        assert scale["status"] == {"replicas": 0, "selector": "app=d"}

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_scale_changes_only_the_replicas(self, http: Http, method: str) -> None:
        before = http.post(DEPLOYMENTS, deployment("d")).json
        if method == "PUT":
            scale = http.get(f"{DEPLOYMENTS}/d/scale").json
            reply = http.put(f"{DEPLOYMENTS}/d/scale", {**scale, "spec": {"replicas": 3}})
        else:
            reply = http.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}})
        assert (reply.status, reply.json["spec"]) == (200, {"replicas": 3})
        after = http.get(f"{DEPLOYMENTS}/d").json
        assert after["spec"] == {**before["spec"], "replicas": 3}
        assert after["metadata"]["generation"] == 2

    def test_zero_is_a_number_of_replicas(self, http: Http) -> None:
        http.post(DEPLOYMENTS, deployment("d"))
        assert http.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}}).json["spec"] == {}
        assert http.get(f"{DEPLOYMENTS}/d").json["spec"]["replicas"] == 0

    @pytest.mark.parametrize(
        ("patch", "status"),
        [
            ({"spec": {"replicas": -1}}, 422),
            ({"spec": {"replicas": "many"}}, 400),
            ({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}}, 409),
        ],
        ids=["negative", "text", "stale"],
    )
    def test_senseless_scale_is_refused(self, http: Http, patch: object, status: int) -> None:
        http.post(DEPLOYMENTS, deployment("d"))
        assert http.patch(f"{DEPLOYMENTS}/d/scale", patch).status == status
        assert http.get(f"{DEPLOYMENTS}/d").json["spec"]["replicas"] == 1

    def test_custom_kinds_say_where_their_replicas_are(self, http: Http) -> None:
        define_widgets(http)
        http.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 2}})
        status = {"status": {"size": 1, "selector": "app=w"}}
        assert http.patch(f"{WIDGETS}/w/status", status).status == 200
        scale = http.get(f"{WIDGETS}/w/scale").json
        assert (scale["spec"], scale["status"]) == (
            {"replicas": 2},
            {"replicas": 1, "selector": "app=w"},
        )
        http.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 7}})
        assert http.get(f"{WIDGETS}/w").json["spec"] == {"size": 7}


class TestBinding:
    @pytest.mark.parametrize("path", [f"{PODS}/a/binding", "/api/v1/namespaces/default/bindings"])
    def test_pod_is_assigned_once(self, http: Http, path: str) -> None:
        http.post(PODS, pod("a"))
        body = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": "a"}}
        reply = http.post(path, body)
        assert (reply.status, reply.json["status"]) == (201, "Success")
        assert http.get(f"{PODS}/a").json["spec"]["nodeName"] == "n1"
        assert http.post(path, body).status == 409

    def test_binding_needs_a_target(self, http: Http) -> None:
        http.post(PODS, pod("a"))
        reply = http.post(f"{PODS}/a/binding", {"target": {}})
        assert reply.status in (400, 422)
        assert "nodeName" not in http.get(f"{PODS}/a").json["spec"]


BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def eviction(name: str = "a", **more: object) -> dict[str, object]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}


def run_guarded_pod(http: Http, *budgets: str) -> None:
    http.post(PODS, {**pod("a"), "metadata": {"name": "a", "labels": {"app": "a"}}})
    ready = {"type": "Ready", "status": "True"}
    http.patch(f"{PODS}/a/status", {"status": {"phase": "Running", "conditions": [ready]}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    for name in budgets:
        assert http.post(BUDGETS, {"metadata": {"name": name}, "spec": spec}).status == 201


class TestEviction:
    @pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1"])
    def test_eviction_deletes_the_pod(self, http: Http, version: str) -> None:
        http.post(PODS, pod("a"))
        reply = http.post(f"{PODS}/a/eviction", {**eviction(), "apiVersion": version})
        assert (reply.status, reply.json["status"]) == (201, "Success")
        assert http.get(f"{PODS}/a").status == 404

    def test_a_budget_that_was_not_counted_yet_says_when_to_come_back(self, http: Http) -> None:
        run_guarded_pod(http, "guard")
        reply = http.post(f"{PODS}/a/eviction", eviction())
        assert (reply.status, reply.reason) == (429, "TooManyRequests")
        assert reply.all("retry-after") == ["10"]
        assert reply.json["details"]["causes"][0]["reason"] == "DisruptionBudget"

    def test_a_used_up_budget_does_not_say_when(self, http: Http) -> None:
        run_guarded_pod(http, "guard")
        counted = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1}
        http.patch(f"{BUDGETS}/guard/status", {"status": counted})
        reply = http.post(f"{PODS}/a/eviction", eviction())
        assert (reply.status, reply.all("retry-after")) == (429, [])
        assert "needs 1 healthy pods and has 1 currently" in str(reply.json["details"])

    def test_two_budgets_fail_inside_a_success(self, http: Http) -> None:
        """As kube-apiserver answers: client-go looks at the Status, not at the status line."""
        run_guarded_pod(http, "one", "two")
        reply = http.post(f"{PODS}/a/eviction", eviction())
        assert reply.status == 201
        assert (reply.json["status"], reply.json["code"]) == ("Failure", 500)
        assert "reason" not in reply.json
        assert "more than one PodDisruptionBudget" in reply.message

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (eviction("b"), 400),
            ({**eviction(), "metadata": None}, 400),
            ({**eviction(), "kind": "Pod"}, 400),
            (eviction(deleteOptions="now"), 400),
            (
                eviction(deleteOptions={"ignoreStoreReadErrorWithClusterBreakingPotential": True}),
                422,
            ),
            (eviction(deleteOptions={"preconditions": {"uid": "x"}}), 409),
        ],
        ids=["name", "nameless", "kind", "options", "unsafe", "uid"],
    )
    def test_senseless_evictions_are_refused(self, http: Http, body: object, status: int) -> None:
        http.post(PODS, pod("a"))
        assert http.post(f"{PODS}/a/eviction", body).status == status
        assert http.get(f"{PODS}/a").status == 200

    @pytest.mark.parametrize("where", ["query", "body"])
    def test_a_dry_run_leaves_the_pod(self, http: Http, where: str) -> None:
        http.post(PODS, pod("a"))
        query = "?dryRun=All" if where == "query" else ""
        options: dict[str, object] = {"dryRun": ["All"]} if where == "body" else {}
        assert http.post(f"{PODS}/a/eviction{query}", eviction(deleteOptions=options)).status == 201
        assert http.get(f"{PODS}/a").status == 200


def test_log_of_a_pod_without_a_node_is_empty_text(http: Http) -> None:
    http.post(PODS, pod("a"))
    reply = http.get(f"{PODS}/a/log?container=c")
    assert (reply.status, reply.body) == (204, b"")
    assert reply.all("content-type") == ["text/plain; charset=utf-8"]
    assert http.get(f"{PODS}/b/log").status == 404


def test_what_is_not_simulated_says_so(http: Http) -> None:
    http.post(PODS, pod("a"))
    reply = http.post(f"{PODS}/a/exec", {})
    assert (reply.status, reply.reason) == (405, "MethodNotAllowed")
    assert "not simulated" in reply.message


@pytest.mark.parametrize(
    "path",
    [
        f"{REVIEWS}/selfsubjectaccessreviews",
        f"{REVIEWS}/subjectaccessreviews",
        f"{REVIEWS}/namespaces/default/localsubjectaccessreviews",
    ],
)
def test_everything_is_allowed(http: Http, path: str) -> None:
    body = {"spec": {"user": "me", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    reply = http.post(path, body)
    assert (reply.status, reply.json["status"]["allowed"]) == (201, True)


@pytest.mark.parametrize(
    "path",
    [f"{REVIEWS}/subjectaccessreviews", f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"],
)
@pytest.mark.parametrize(
    "spec",
    [{"groups": True}, {"user": []}, {"extra": 1}, {"resourceAttributes": "pods"}],
    ids=str,
)
def test_questions_are_of_the_types_of_their_fields(
    http: Http, path: str, spec: JsonObject
) -> None:
    reply = http.post(path, {"spec": spec})
    assert (reply.status, reply.reason) == (400, "BadRequest"), reply.body
    assert "cannot be handled as a" in reply.message


@pytest.mark.parametrize(
    ("prefix", "name"), [("", "user"), ("/as/alice", "alice"), ("/as/team%20a%2Fb", "team a/b")]
)
def test_prefix_of_the_url_says_who_asks(http: Http, prefix: str, name: str) -> None:
    path = f"{prefix}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert http.post(path, {}).json["status"]["userInfo"]["username"] == name


def test_controllers_bring_a_pod_to_run(live: Http) -> None:
    node = {
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    assert live.post("/api/v1/nodes", node).status == 201
    with live.watch(f"{PODS}?watch=1") as events:
        live.post(PODS, pod("a"))
        for event in iter(events.next, None):
            if event["object"]["status"]["phase"] == "Running":
                break
    assert live.get(f"{PODS}/a").json["spec"]["nodeName"] == "n1"
