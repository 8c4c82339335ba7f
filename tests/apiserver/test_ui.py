"""``/ui``: files with their headers, the one page for every other address, and nothing else."""

import pytest

from apiserver.http import Http
from kubescene.apiserver.ui import POLICY, TYPES
from kubescene.ui.bundling import STATIC


def test_every_address_of_a_page_is_the_one_page(http: Http) -> None:
    index = (STATIC / "app" / "index.html").read_bytes()
    for path in (
        "/ui",
        "/ui/",
        "/ui/cluster?color=state",
        "/ui/pod/default/a%2Fb",
        "/ui/nothing/here",
    ):
        reply = http.get(path)
        assert (reply.status, reply.body) == (200, index)
        assert reply.all("content-type") == ["text/html; charset=utf-8"]


def test_files_have_their_types_and_are_asked_for_once(http: Http) -> None:
    for file in sorted(path for path in STATIC.rglob("*") if path.suffix in TYPES):
        name = file.relative_to(STATIC).as_posix()
        reply = http.get(f"/ui/static/{name}")
        if name.startswith("report/"):
            assert reply.status == 404
            continue
        assert (reply.status, reply.body) == (200, file.read_bytes())
        assert reply.all("content-type") == [TYPES[file.suffix]]
        [etag] = reply.all("etag")
        again = http.request("GET", f"/ui/static/{name}", headers={"If-None-Match": etag})
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["app/../../bundling.py", "..%2Fbundling.py", "app/none.js", "app", "", "/etc/passwd"]
)
def test_no_other_file_is_read(http: Http, path: str) -> None:
    assert http.get(f"/ui/static/{path}").status == 404


def test_the_policy_lets_pages_reach_this_server_alone(http: Http) -> None:
    for path in ("/ui", "/ui/static/app/world.worker.js"):
        reply = http.get(path)
        [policy] = reply.all("content-security-policy")
        assert policy == "; ".join(f"{name} {value}" for name, value in POLICY.items())
        assert "unsafe" not in policy
        assert reply.all("x-content-type-options") == ["nosniff"]
        assert reply.all("referrer-policy") == ["no-referrer"]
    assert set(POLICY.values()) <= {
        "'none'",
        "'self'",
        "'self' data: blob:",
        "'script'",
        "kubescene",
    }


def test_pages_are_read_and_not_written(http: Http) -> None:
    assert http.request("POST", "/ui", b"{}").status == 405
    assert http.request("HEAD", "/ui").body == b""


def test_who_is_not_of_this_machine_gets_no_page(http: Http) -> None:
    assert http.request("GET", "/ui", headers={"Host": "elsewhere.example"}).status == 403


class TestAttempts:
    def test_the_newest_attempts_at_a_pod_are_explained(self, live: Http) -> None:
        node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2", "pods": "9"}}}
        assert live.post("/api/v1/nodes", node).status == 201
        for name, cpu in (("small", "1"), ("large", "8")):
            box = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
            body = {"metadata": {"name": name}, "spec": {"containers": [box]}}
            assert live.post("/api/v1/namespaces/default/pods", body).status == 201
        explained = self.told(live, "default/small")
        assert [(each["node"], each["feasible"]) for each in explained["attempts"]] == [("n", 1)]
        assert len(explained["times"]) == 1
        [large] = self.told(live, "large")["attempts"]
        assert large["verdicts"] == [
            {"node": "n", "rejectedBy": "NodeResourcesFit", "reasons": "Insufficient cpu"}
        ]

    @staticmethod
    def told(live: Http, pod: str) -> dict[str, list[dict[str, object]]]:
        """Once the scheduler has tried it."""
        while True:
            reply = live.get(f"/simulator/v1/explain?pod={pod}")
            assert reply.status == 200
            if reply.json["attempts"]:
                told: dict[str, list[dict[str, object]]] = reply.json
                return told

    def test_a_pod_that_was_never_tried_has_none(self, http: Http) -> None:
        assert http.get("/simulator/v1/explain?pod=nobody").json == {"attempts": [], "times": []}

    def test_a_pod_must_be_named(self, http: Http) -> None:
        assert http.get("/simulator/v1/explain").status == 400


def test_a_traffic_run_may_be_tried_without_being_kept(http: Http) -> None:
    kept = http.post("/run", {})
    tried = http.post("/run?dryRun=All", {})
    assert (kept.status, tried.status) == (200, 200)
    assert tried.body == kept.body
    assert (len(kept.all("location")), tried.all("location")) == (1, [])
    assert [each["id"] for each in http.get("/runs").json["runs"]] == [1]
    refused = http.post("/run?dryRun=All", {"run_for": -1})
    assert (refused.status, "run_for" in refused.message) == (400, True)


class TestKeptRuns:
    def test_a_run_explains_a_pod_and_is_compared_with_itself(self, live: Http) -> None:
        scenarios = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
        example = (STATIC / "app" / "examples" / "preemption.yaml").read_bytes()
        made = live.request("POST", scenarios, example, content_type="application/yaml")
        assert made.status == 201
        while live.get(f"{scenarios}/preemption").json["status"].get("phase") != "Succeeded":
            pass
        [attempt] = live.get("/simulator/v1/runs/scenario-1/explain?pod=batch-1").json["attempts"]
        assert attempt["node"] == "node-1"
        own = live.get("/simulator/v1/scenarios/preemption/explain?pod=batch-1").json["attempts"]
        assert own == [attempt]
        same = live.get("/simulator/v1/compare?a=scenario-1&b=scenario-1").json
        assert same["equal"] is True

    def test_what_cannot_be_compared_is_said(self, http: Http) -> None:
        assert http.get("/simulator/v1/compare?a=scenario-1").status == 400
        assert http.get("/simulator/v1/compare?a=scenario-1&b=scenario-2").status == 404
        assert http.get("/simulator/v1/runs/traffic-1/explain?pod=a").status == 400
        assert http.get("/simulator/v1/runs/scenario-9/explain?pod=a").status == 404
