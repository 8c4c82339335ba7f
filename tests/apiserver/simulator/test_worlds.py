"""The simulator's own API: export, import, reset."""

import json

from apiserver.http import CONFIG_MAPS, PODS, Http, Reply, config_map, pod
from kubescene.apiserver.server import Server
from kubescene.apiserver.simulator.worlds import FEW_ITEMS
from kubescene.clock import ScaledClock, VirtualClock, WallClock, parse_time
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.testing import make_node


def connect(server: Server) -> Http:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return Http(host, int(port))


def test_an_export_can_be_imported_again() -> None:
    with Server(port=0) as one, Server(port=0) as two:
        first, second = connect(one), connect(two)
        first.post(PODS, pod("a"))
        exported = first.get("/simulator/v1/export")
        assert exported.json["kind"] == "List"
        imported = second.post("/simulator/v1/import", exported.body)
        assert imported.json == {"imported": len(exported.json["items"])}
        assert second.get(f"{PODS}/a").json["metadata"]["uid"]
        first.close()
        second.close()


def test_a_bad_import_is_refused_whole() -> None:
    with Server(port=0) as server:
        http = connect(server)
        bad = {"kind": "List", "items": [pod("ok"), {"kind": "Nothing"}]}
        refused = http.post("/simulator/v1/import", bad)
        assert (refused.status, refused.reason) == (400, "BadRequest")
        assert "items[1], Nothing" in refused.message
        assert http.get(f"{PODS}/ok").status == 404
        http.close()


def test_reset_leaves_an_empty_cluster_whose_controllers_work() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node |= {"status": {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "9"}}}
    with Server(port=0) as server:
        http = connect(server)
        http.post(PODS, pod("a"))
        assert http.put("/simulator/v1/reset", {}).json["status"] == "Success"
        assert http.get(PODS).json["items"] == []
        http.post(PODS, pod("b"))
        with http.watch(f"{PODS}?watch=true&resourceVersion=0") as events:
            http.post("/api/v1/nodes", node)
            while events.next()["object"]["status"]["phase"] != "Running":
                pass
        http.close()


def test_other_methods_and_paths_are_refused() -> None:
    with Server(port=0, controllers=False) as server:
        http = connect(server)
        assert http.post("/simulator/v1/reset", {}).status == 405
        assert http.get("/simulator/v1/nothing").status == 404
        http.close()


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
}
SLOW = ClusterOptions(kubelet=KubeletDelays(start=600_000_000_000))
"""Pods start ten minutes after they were bound."""


def test_time_passes_when_a_virtual_world_is_told_so() -> None:
    cluster = ClusterWorld(SLOW, clock=VirtualClock(), server_clock=WallClock())
    with Server(cluster, port=0) as server:
        http = connect(server)
        http.post("/api/v1/nodes", NODE)
        http.post(PODS, pod("a"))
        advance = "/simulator/v1/advance"
        assert http.post(advance, {"duration": "9m"}).json == {"now": "2026-01-01T00:09:00.000000Z"}
        assert http.get(f"{PODS}/a").json["status"]["phase"] == "Pending"
        assert http.post(advance, {"duration": "2m"}).json == {"now": "2026-01-01T00:11:00.000000Z"}
        status = http.get(f"{PODS}/a").json["status"]
        assert (status["phase"], status["startTime"]) == ("Running", "2026-01-01T00:10:00Z")
        http.close()


def test_what_cannot_be_advanced_is_said() -> None:
    with Server(ClusterWorld(clock=VirtualClock()), port=0) as server:
        http = connect(server)
        for body in ({"duration": 5}, {"duration": "soon"}, {}, {"duration": "1s", "by": "me"}):
            assert http.post("/simulator/v1/advance", body).status == 400
        http.close()
    with Server(port=0) as server:
        http = connect(server)
        refused = http.post("/simulator/v1/advance", {"duration": "1s"})
        assert (refused.status, refused.reason) == (409, "Conflict")
        assert "--clock virtual" in refused.message
        http.close()


def test_a_scaled_world_lives_faster_than_its_server() -> None:
    """Ten minutes pass in a moment; leases are dated by the server's clock all the same."""
    cluster = ClusterWorld(SLOW, clock=ScaledClock(6_000), server_clock=WallClock())
    with Server(cluster, port=0) as server:
        http = connect(server)
        http.post("/api/v1/nodes", NODE)
        with http.watch(f"{PODS}?watch=true&resourceVersion=0") as events:
            http.post(PODS, pod("a"))
            while (seen := events.next()["object"])["status"]["phase"] != "Running":
                pass
        created = parse_time(seen["metadata"]["creationTimestamp"])
        started = parse_time(seen["status"]["startTime"])
        assert started - created >= 599_000_000_000
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
        answer = http.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease)
        dated = parse_time(answer.json["metadata"]["creationTimestamp"])
        assert abs(dated - WallClock().now()) < 3600 * 1_000_000_000
        http.close()


def test_controllers_act_before_time_moves() -> None:
    cluster = ClusterWorld(SLOW, clock=VirtualClock(), server_clock=WallClock())
    with Server(cluster, port=0) as server:
        http = connect(server)
        http.post("/api/v1/nodes", {**NODE, "status": {"capacity": {"cpu": "99", "pods": "99"}}})
        for number in range(30):
            http.post(PODS, pod(f"p{number}"))
        http.post("/simulator/v1/advance", {"duration": "1h"})
        phases = {item["status"]["phase"] for item in http.get(PODS).json["items"]}
        assert phases == {"Running"}
        http.close()


def test_time_has_an_end() -> None:
    with Server(ClusterWorld(clock=VirtualClock()), port=0) as server:
        http = connect(server)
        answers = [http.post("/simulator/v1/advance", {"duration": "2500000h"}) for _ in range(30)]
        assert (answers[-1].status, answers[0].status) == (400, 200)
        assert "beyond the year 9999" in answers[-1].message
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        assert http.post("/api/v1/namespaces/default/configmaps", config_map).status == 201
        http.close()


def test_controllers_see_a_large_import_as_a_whole(live_server: Server, live: Http) -> None:
    """Pods that come later in the list are known when their ReplicaSet is first looked at."""
    labels, count = {"app": "a"}, 2 * FEW_ITEMS
    template = {"metadata": {"labels": labels}, "spec": pod("any")["spec"]}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": "default", "uid": "r-1"},
        "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": template},
        "status": {"replicas": count},
    }
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "r",
        "uid": "r-1",
        "controller": True,
    }
    items = [owner]
    for number in range(count):
        made = pod(f"r-{number}")
        made["metadata"] |= {
            "namespace": "default",
            "labels": labels,
            "ownerReferences": [reference],
        }
        items.append({**made, "status": {"phase": "Running"}})
    assert live.post("/simulator/v1/import", {"items": items}).json == {"imported": count + 1}
    assert live.post(CONFIG_MAPS, config_map("after")).status == 201
    for _ in range(20):
        live_server.engine.call(lambda: None)
    assert len(live.get("/api/v1/namespaces/default/pods").json["items"]) == count


def test_controllers_go_on_after_a_large_import_without_another_command(live: Http) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod("any")["spec"]}
    wanted = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    items = [wanted]
    for number in range(2 * FEW_ITEMS):
        each = config_map(f"c-{number}")
        items.append({**each, "metadata": {**each["metadata"], "namespace": "default"}})
    assert live.post("/simulator/v1/import", {"items": items}).status == 200
    while not live.get(PODS).json["items"]:  # reading is no command
        pass


def test_owners_of_fields_that_cannot_be_read_are_not_imported(http: Http) -> None:
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": "x"}},
    }
    item = config_map("a", a="1")
    item["metadata"] |= {"namespace": "default", "managedFields": [entry]}
    assert http.post("/simulator/v1/import", {"kind": "List", "items": [item]}).status == 200
    reply = http.patch(f"{CONFIG_MAPS}/a", {"data": {"a": "2"}})
    assert reply.status == 200, reply.body


def test_manifests_are_taken_as_people_have_them(http: Http) -> None:
    """One object, several documents, Lists among them; one that is bad, and nothing is taken."""

    def put(text: str) -> Reply:
        path, kind = "/simulator/v1/import", "application/yaml"
        return http.request("POST", path, text.encode(), content_type=kind)

    node = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n"
    assert put(node % "a").json == {"imported": 1}
    assert put('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}').status == 200
    inner = json.dumps({"kind": "List", "items": [make_node("e").build()]})
    several = f"# two\n{node % 'c'}---\n---\n{node % 'd'}---\n{inner}\n"
    assert put(several).json == {"imported": 3}
    nodes = {each["metadata"]["name"] for each in http.get("/api/v1/nodes").json["items"]}
    assert nodes == set("abcde")
    bad = put(f"{node % 'f'}---\napiVersion: v1\nkind: Nod\nmetadata: {{name: g}}\n")
    assert bad.status == 400
    assert "items[1]" in bad.json["message"]
    for text in ("just words", "- 1", "", "a: [", "---\n1\n---\n2\n"):
        assert put(text).status == 400
    assert len(http.get("/api/v1/nodes").json["items"]) == 5
