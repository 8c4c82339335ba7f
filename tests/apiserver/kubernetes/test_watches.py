"""Watches over HTTP: where they begin, what they show, how they end."""

import socket
from itertools import count
from threading import Thread

import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, config_map, pod
from kubescene.apiserver.kubernetes import watches as streaming
from kubescene.apiserver.server import Server

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
WATCH_LIST = (
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
)


def revision(http: Http) -> str:
    return str(http.get(CONFIG_MAPS).json["metadata"]["resourceVersion"])


def relabel(http: Http, name: str, label: str | None) -> None:
    http.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"labels": {"app": label}}})


class TestBeginning:
    @pytest.mark.parametrize("query", ["watch=1", "watch=true&resourceVersion=0", "watch"])
    def test_without_version_existing_objects_come_first(self, http: Http, query: str) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        with http.watch(f"{CONFIG_MAPS}?{query}") as events:
            assert events.take(1) == [("ADDED", "a")]
            http.delete(f"{CONFIG_MAPS}/a")
            assert events.take(1) == [("DELETED", "a")]

    def test_version_replays_all_that_followed(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        since = revision(http)
        http.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
        http.post(CONFIG_MAPS, config_map("b"))
        http.delete(f"{CONFIG_MAPS}/a")
        with http.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}") as events:
            assert events.take(3) == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]

    def test_forgotten_version_is_an_expired_event(self, http: Http, small_window: None) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        for number in range(20):
            http.patch(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
        with http.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion=1") as events:
            event = events.next()
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
            assert event["object"]["reason"] == "Expired"
            assert "too old resource version" in event["object"]["message"]
            assert events.rest() == []

    def test_initial_events_end_with_a_marked_bookmark(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        with http.watch(f"{CONFIG_MAPS}?{WATCH_LIST}") as events:
            assert events.take(1) == [("ADDED", "a")]
            mark = events.next()
            metadata = mark["object"]["metadata"]
            assert (mark["type"], mark["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
            assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert metadata["resourceVersion"] == revision(http)

    def test_path_of_old_watches_still_works(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        with http.watch("/api/v1/watch/namespaces/default/configmaps") as events:
            assert events.take(1) == [("ADDED", "a")]


class TestSelection:
    def test_objects_enter_and_leave_by_label(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        path = f"{CONFIG_MAPS}?watch=1&labelSelector=app%3Dx&resourceVersion={revision(http)}"
        with http.watch(path) as events:
            relabel(http, "a", "x")
            http.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
            relabel(http, "a", "y")
            http.delete(f"{CONFIG_MAPS}/a")
            http.post(CONFIG_MAPS, {"metadata": {"name": "b", "labels": {"app": "x"}}})
            seen = [events.next() for _ in range(4)]
        assert [event["type"] for event in seen] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
        left = seen[2]["object"]["metadata"]
        assert left["labels"] == {"app": "x"}, "the last state that matched"
        assert int(left["resourceVersion"]) > int(seen[1]["object"]["metadata"]["resourceVersion"])

    def test_pods_leave_when_their_phase_does(self, http: Http) -> None:
        http.post(PODS, pod("a"))
        with http.watch(f"{PODS}?watch=1&fieldSelector=status.phase%3DPending") as events:
            http.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
            assert events.take(2) == [("ADDED", "a"), ("DELETED", "a")]

    def test_other_namespaces_are_not_seen(self, http: Http) -> None:
        with http.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={revision(http)}") as events:
            http.post("/api/v1/namespaces/kube-system/configmaps", config_map("other"))
            http.post(CONFIG_MAPS, config_map("mine"))
            assert events.take(1) == [("ADDED", "mine")]


class TestForms:
    def test_table_columns_come_once(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        http.post(CONFIG_MAPS, config_map("b"))
        with http.watch(f"{CONFIG_MAPS}?watch=1", TABLE) as events:
            first, second = events.next()["object"], events.next()["object"]
        assert first["kind"] == "Table"
        assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["columnDefinitions"] == []
        assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["a", "b"]

    def test_many_tables_come_in_pieces_and_in_order(self, http: Http) -> None:
        names = [f"m-{number:03}" for number in range(3 * streaming.FRAMES_IN_A_ROW + 1)]
        for name in names:
            http.post(CONFIG_MAPS, config_map(name))
        with http.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1", TABLE) as events:
            seen = [each["object"]["rows"][0]["cells"][0] for each in events.rest()]
        assert seen == names

    def test_metadata_alone_is_enough_for_some(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a", k="v"))
        with http.watch(f"{CONFIG_MAPS}?watch=1", METADATA) as events:
            event = events.next()
        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert "data" not in event["object"]

    def test_other_version_is_converted(self, http: Http) -> None:
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        body = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 2, "scaleTargetRef": target}}
        http.post(path, body)
        with http.watch(path.replace("v2", "v1") + "?watch=1") as events:
            assert events.next()["object"]["apiVersion"] == "autoscaling/v1"


class TestEnd:
    def test_timeout_ends_the_stream_with_a_bookmark(self, http: Http) -> None:
        path = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true"
        with http.watch(path) as events:
            (last,) = events.rest()
        assert last["type"] == "BOOKMARK"
        assert last["object"]["metadata"]["resourceVersion"] == revision(http)

    def test_bookmarks_come_while_nothing_happens(
        self, http: Http, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(streaming, "BOOKMARK_EVERY_S", 0.05)
        with http.watch(f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true") as events:
            http.post("/api/v1/namespaces/kube-system/secrets", {"metadata": {"name": "s"}})
            newest = revision(http)
            for event in iter(events.next, None):
                assert event["type"] == "BOOKMARK"
                if event["object"]["metadata"]["resourceVersion"] == newest:
                    break

    def test_stopping_server_ends_every_watch(self) -> None:
        server = Server(port=0, controllers=False)
        server.start()
        http = Http(server.host, server.port)
        with http.watch(f"{CONFIG_MAPS}?watch=1") as events:
            server.stop()
            assert events.rest() == []
        http.close()

    def test_silent_client_is_cut_off_and_nobody_waits(self, server: Server, http: Http) -> None:
        server.app.streams.backlog = 20
        subscriptions = server.cluster.store._subscriptions
        own = len(subscriptions)
        http.post(CONFIG_MAPS, config_map("a"))
        lazy = socket.create_connection((server.host, server.port))
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall(f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert lazy.recv(12) == b"HTTP/1.1 200"
        assert len(subscriptions) == own + 1
        large = "x" * 200_000
        for number in count():
            patch = {"data": {"k": f"{large}{number}"}}
            assert http.patch(f"{CONFIG_MAPS}/a", patch).status == 200
            if len(subscriptions) == own or number > 500:
                break
        assert len(subscriptions) == own
        lazy.close()

    def test_departed_clients_leave_nothing_behind(self, server: Server, http: Http) -> None:
        subscriptions = server.cluster.store._subscriptions
        own = len(subscriptions)
        for _ in range(5):
            with http.watch(f"{CONFIG_MAPS}?watch=1"):
                assert len(subscriptions) > own
        for _ in range(200):
            if len(subscriptions) == own:
                break
            http.get("/healthz")
        assert len(subscriptions) == own


def test_many_watches_see_one_history(server: Server, http: Http) -> None:
    seen: list[list[str]] = [[] for _ in range(8)]

    def follow(position: int) -> None:
        with http.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}") as events:
            for _ in range(100):
                seen[position].append(events.next()["object"]["metadata"]["resourceVersion"])

    since = revision(http)
    followers = [Thread(target=follow, args=(position,)) for position in range(8)]
    for follower in followers:
        follower.start()
    http.post(CONFIG_MAPS, config_map("a"))
    for number in range(99):
        http.patch(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
    for follower in followers:
        follower.join()
    first = int(since) + 1
    assert seen == [[str(number) for number in range(first, first + 100)]] * 8
