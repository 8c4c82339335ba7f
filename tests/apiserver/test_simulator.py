"""The simulator's own API: export, import, reset."""

from apiserver.http import Http, pod
from kubescene.apiserver.server import Server

PODS = "/api/v1/namespaces/default/pods"


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
