"""A cluster that runs is only read, with no more rights than are printed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from client.scripted import ScriptedServer, answer
from commands import kubescene as command
from dumped import dump, items, shop
from kubescene.apiserver.server import Server
from kubescene.client.http import Endpoint
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.client.http.wire import WireRequest
from kubescene.clock import VirtualClock
from kubescene.cluster import Cluster, ClusterWorld
from kubescene.errors import KubesceneError, SnapshotError
from kubescene.snapshots import read_snapshot
from kubescene.snapshots.live import KINDS, ReadingRequests, cluster_role
from kubescene.types import JsonObject


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


def path_of(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def script(server: ScriptedServer, objects: dict[str, list[JsonObject]], forbidden: str) -> None:
    """Answers as an API server that has all kinds, and in two pages each."""
    rows: dict[tuple[str, str], list[JsonObject]] = {}
    for gvk, plural in KINDS:
        row: JsonObject = {"name": plural, "kind": gvk.kind, "verbs": ["get", "list", "watch"]}
        row["namespaced"] = True
        rows.setdefault(gvk[:2], []).append(row)
        path = f"{path_of(*gvk[:2])}/{plural}"
        if plural == forbidden:
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
            server.add(path, answer(status, 403))
            continue
        listed = objects.get(plural, [])
        half = len(listed) // 2
        kind = {"kind": f"{gvk.kind}List", "apiVersion": gvk.api_version}
        for part, token in ((listed[:half], "more"), (listed[half:], "")):
            metadata = {"resourceVersion": "5", **({"continue": token} if token else {})}
            server.add(path, answer({**kind, "metadata": metadata, "items": part}))
    for (group, version), resources in rows.items():
        server.add(path_of(group, version), answer({"resources": resources}))


def test_nothing_but_lists_of_what_the_printed_role_allows_is_asked(
    scripted: ScriptedServer, tmp_path: Path
) -> None:
    world = shop()
    plurals = {plural for _, plural in KINDS}
    objects = {plural: items(world, plural) for plural in plurals if items_there(world, plural)}
    script(scripted, objects, forbidden="priorityclasses")
    kubeconfig, out = tmp_path / "kubeconfig", tmp_path / "shop.json"
    kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(scripted.url)))
    done = command("snapshot", "--kubeconfig", kubeconfig, "--out", out)
    assert done.returncode == 0, done.stderr
    assert {asked.method for asked in scripted.asked} == {"GET"}
    (printed,) = yaml.safe_load_all(command("snapshot", "--cluster-role").stdout)
    assert printed == cluster_role()
    allowed = {
        f"{path_of(group, version)}/{plural}"
        for rule in printed["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        for version in ("v1", "v2")
        if rule["verbs"] == ["list"]
    }
    asked = {each.path for each in scripted.asked}
    discovery = re.compile(r"/api/v1|/apis/[^/]+/[^/]+")
    assert {path for path in asked if not discovery.fullmatch(path)} <= allowed
    assert not any("watch" in each.query for each in scripted.asked)
    assert "priorityclasses may not be listed, and are not in it" in done.stderr
    mine = tmp_path / "dump.json"
    mine.write_bytes(dump(world))
    expected = read_snapshot(mine)
    taken = read_snapshot(out)
    assert (
        taken.counts().items()
        >= {kind: n for kind, n in expected.counts().items() if kind != "PriorityClass"}.items()
    )


def items_there(world: Cluster, plural: str) -> bool:
    try:
        return bool(items(world, plural))
    except KubesceneError:
        return False


def test_a_request_that_would_write_is_refused_before_it_is_sent(
    scripted: ScriptedServer,
) -> None:
    requests = ReadingRequests(Endpoint(scripted.url), VirtualClock(), timeout_s=60)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(SnapshotError, match="a snapshot only reads"):
            requests.send(WireRequest(method, "/api/v1/pods"))
    assert scripted.asked == []


def test_a_server_of_ours_begins_with_a_snapshot_and_gives_it_back(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(shop()))
    from kubescene.cli.serve import restored

    world = ClusterWorld()
    told = list(restored(world, file))
    assert told[0] == f"The cluster of {file}: {len(read_snapshot(file).objects):,} objects"
    server = Server(world, port=0)
    with server:
        kubeconfig, out = tmp_path / "kubeconfig", tmp_path / "again.json"
        kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(server.url)))
        done = command("snapshot", "--kubeconfig", kubeconfig, "--out", out)
    assert done.returncode == 0, done.stderr
    before, again = read_snapshot(file), read_snapshot(out)
    pods = {o["metadata"]["uid"]: o["spec"] for o in before.objects if o["kind"] == "Pod"}
    assert pods == {o["metadata"]["uid"]: o["spec"] for o in again.objects if o["kind"] == "Pod"}
