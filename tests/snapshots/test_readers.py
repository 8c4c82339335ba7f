"""Every form in which people have their clusters is read; what is wrong with a file is named."""

import gzip
import io
import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubescene
from dumped import dump, items, placed, shop
from kubescene.errors import KubesceneError, SnapshotError
from kubescene.snapshots import Snapshot, read_snapshot, restore, sources
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.snapshots.readers.kubectl import KubectlReader
from kubescene.snapshots.readers.table import reader_for, readers
from kubescene.snapshots.snapshot import snapshot_of
from kubescene.snapshots.sources import SnapshotSource
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from registry.confusion import CONFUSED

SAMPLES = Path(__file__).parent / "samples"
NODE = make_node("n").cpu("4").build()


@pytest.fixture(scope="module")
def world() -> kubescene.Cluster:
    return shop()


def format_of(path: Path) -> str:
    return reader_for(SnapshotSource(path)).name


def refusal(path: Path, text: bytes) -> str:
    path.write_bytes(text)
    with pytest.raises(KubesceneError) as caught:
        read_snapshot(path)
    return str(caught.value).replace(str(path), "FILE")


def member(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def names(snapshot: Snapshot, kind: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in snapshot.objects if obj["kind"] == kind]


def test_a_dump_of_kubectl_is_read_and_what_is_left_out_counted() -> None:
    snapshot = read_snapshot(SAMPLES / "kubectl-dump.yaml")
    assert format_of(SAMPLES / "kubectl-dump.yaml") == "kubectl"
    assert snapshot.left_out == Counter({("Secret", "confidential"): 1})
    assert snapshot.counts()["Pod"] == 4
    text = snapshot.encoded()
    assert b"s3cr3t" not in text
    assert b'"kind":"Secret","meta' not in text


def test_an_export_of_kube_scheduler_simulator_is_read_with_its_configuration() -> None:
    snapshot = read_snapshot(SAMPLES / "kss-export.json")
    assert format_of(SAMPLES / "kss-export.json") == "kube-scheduler-simulator"
    assert snapshot.counts() == {"Namespace": 1, "Node": 1, "Pod": 1, "PriorityClass": 1}
    assert snapshot.scheduler_config == {"profiles": [{"schedulerName": "default-scheduler"}]}


def test_instants_of_a_kwok_snapshot_are_relative_to_it() -> None:
    snapshot = read_snapshot(SAMPLES / "kwok-recording.yaml")
    assert format_of(SAMPLES / "kwok-recording.yaml") == "kwok"
    (node,) = snapshot.objects
    assert node["metadata"]["creationTimestamp"] == "2025-12-31T00:00:00Z"
    told = (
        "3 recorded changes follow the snapshot: they are not in it; `replayOperation` plays them"
    )
    assert told in snapshot.remarks


def test_json_and_yaml_of_the_same_dump_are_the_same_snapshot(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    from kubescene.api.text.yaml_text import dump_yaml

    (tmp_path / "a.json").write_bytes(dump(world))
    (tmp_path / "a.yaml").write_text(dump_yaml(json.loads(dump(world))))
    assert read_snapshot(tmp_path / "a.json") == read_snapshot(tmp_path / "a.yaml")


def test_lists_of_the_api_need_not_say_what_their_items_are(tmp_path: Path) -> None:
    bare = {name: part for name, part in NODE.items() if name not in ("kind", "apiVersion")}
    listed = {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": [bare]}
    (tmp_path / "nodes.json").write_text(json.dumps(listed))
    (node,) = read_snapshot(tmp_path / "nodes.json").objects
    assert (node["apiVersion"], node["kind"]) == ("v1", "Node")


def cluster_info(world: kubescene.Cluster) -> dict[str, JsonObject]:
    """What ``kubectl cluster-info dump`` asks for, by file."""
    nodes: JsonObject = {"kind": "NodeList", "apiVersion": "v1", "items": items(world, "nodes")}
    files = {"nodes.json": nodes}
    plurals = {
        "services": "v1",
        "daemonsets": "apps/v1",
        "deployments": "apps/v1",
        "replicasets": "apps/v1",
        "pods": "v1",
    }
    kinds = {"daemonsets": "DaemonSet", "replicasets": "ReplicaSet"}
    for namespace in ("default", "shop"):
        for plural, version in plurals.items():
            own = [o for o in items(world, plural) if o["metadata"]["namespace"] == namespace]
            kind = kinds.get(plural, plural[:-1].capitalize())
            files[f"{namespace}/{plural}.json"] = {
                "kind": f"{kind}List",
                "apiVersion": version,
                "items": own,
            }
        empty = {"kind": "ReplicationControllerList", "apiVersion": "v1", "items": []}
        files[f"{namespace}/replication-controllers.json"] = empty
    return files


def test_a_folder_of_cluster_info_dump_is_read_without_its_logs(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    for name, document in cluster_info(world).items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(document))
    logs = tmp_path / "shop" / "frontend"
    logs.mkdir()
    (logs / "logs.txt").write_text("kind: Pod\nmetadata: {name: not-a-pod}\n")
    (logs / "pods.json").write_text("{")
    assert format_of(tmp_path) == "cluster-info-dump"
    (logs / "pods.json").unlink()
    snapshot = read_snapshot(tmp_path)
    assert sorted(names(snapshot, "Pod")) == sorted(
        pod["metadata"]["name"] for pod in world.list("pods")
    )
    assert "3 Pods of StatefulSets that are not in it: nobody would make them again" in (
        snapshot.remarks
    )


def test_cluster_info_dump_on_standard_output_is_read_without_its_logs(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    text = ""
    for document in cluster_info(world).values():
        text += json.dumps(document, indent=4) + "\n"
    text += "==== START logs for container app of pod shop/frontend ====\n"
    text += '{"kind": "Pod"\n==== END logs for container app of pod shop/frontend ====\n'
    (tmp_path / "dump.txt").write_text(text)
    assert format_of(tmp_path / "dump.txt") == "cluster-info-dump"
    assert len(names(read_snapshot(tmp_path / "dump.txt"), "Pod")) == len(placed(world))


def velero(world: kubescene.Cluster, path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        member(archive, "metadata/version", b"1.1.0")
        for plural in ("nodes", "pods", "deployments.apps", "replicasets.apps"):
            for obj in items(world, plural.partition(".")[0]):
                metadata = obj["metadata"]
                space = metadata.get("namespace")
                place = f"namespaces/{space}" if space else "cluster"
                data = json.dumps(obj).encode()
                member(archive, f"resources/{plural}/{place}/{metadata['name']}.json", data)
                again = f"resources/{plural}/v1-preferredversion/{place}/{metadata['name']}.json"
                member(archive, again, b"{ not read")
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        place = "resources/secrets/namespaces/shop/s.json"
        member(archive, place, json.dumps(secret).encode())


def test_a_backup_of_velero_is_read_from_its_classic_paths(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    velero(world, tmp_path / "backup.tar.gz")
    assert format_of(tmp_path / "backup.tar.gz") == "velero"
    snapshot = read_snapshot(tmp_path / "backup.tar.gz")
    assert len(names(snapshot, "Pod")) == len(placed(world))
    assert snapshot.left_out == Counter({("Secret", "confidential"): 1})


def test_must_gather_has_pods_twice_and_the_newer_one_counts(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes = tmp_path / "quay-io/cluster-scoped-resources/core/nodes"
    nodes.mkdir(parents=True)
    for obj in items(world, "nodes"):
        (nodes / f"{obj['metadata']['name']}.yaml").write_text(json.dumps(obj))
    core = tmp_path / "quay-io/namespaces/shop/core"
    core.mkdir(parents=True)
    pods = [o for o in items(world, "pods") if o["metadata"]["namespace"] == "shop"]
    older = json.loads(json.dumps(pods))
    older[0]["metadata"]["resourceVersion"] = "1"
    older[0]["spec"]["nodeName"] = "worker-5"
    listed = {"apiVersion": "v1", "kind": "PodList", "items": older}
    (core / "pods.yaml").write_text(json.dumps(listed))
    alone = tmp_path / "quay-io/namespaces/shop/pods" / pods[0]["metadata"]["name"]
    alone.mkdir(parents=True)
    (alone / f"{alone.name}.yaml").write_text(json.dumps(pods[0]))
    (alone / "current.log").write_text("{")
    assert format_of(tmp_path) == "must-gather"
    snapshot = read_snapshot(tmp_path)
    assert len(names(snapshot, "Pod")) == len(pods)
    assert snapshot.left_out["Pod", "it is given twice, and older"] == 1
    (first,) = [o for o in snapshot.objects if o["metadata"]["name"] == alone.name]
    assert first["spec"]["nodeName"] == pods[0]["spec"]["nodeName"]


def test_several_files_together_are_one_cluster(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(NODE))
    (tmp_path / "pods.yaml").write_text(json.dumps(make_pod("p").on("n").build()))
    snapshot = read_snapshot(tmp_path / "nodes.json", tmp_path / "pods.yaml")
    assert snapshot.counts() == {"Node": 1, "Pod": 1}
    assert read_snapshot(tmp_path).counts() == snapshot.counts()


def test_a_reader_of_somebody_else_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from kubescene.snapshots.readers import table as package

    class Mine(KubectlReader):
        name = "mine"

    class Point:
        value = "mine:Mine"

        def load(self) -> type:
            return Mine

    monkeypatch.setattr(package, "offered", lambda group: [Point()])
    assert readers()[0].name == "mine"
    assert format_of(SAMPLES / "kubectl-dump.yaml") == "mine"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "FILE: there is no object in it that a snapshot holds"),
        (b'{"apiVersion":"v1","kind":"List","items":[{"kind":', "FILE:1: not valid JSON"),
        (b"apiVersion: v1\nkind: List\nitems: [", "FILE:4:1: not valid YAML"),
        (b"PK\x03\x04....", "FILE: it is a zip archive: unpack it into a folder"),
        (b"\x1f\x8b\x08\x00half", "FILE: it cannot be unpacked"),
        (gzip.compress(json.dumps(NODE).encode())[:-12], "FILE: it cannot be unpacked"),
        (b"a: \x00", "FILE: this is not a text file"),
        (b"\x80\x81\x82:", "this is not text in UTF-8"),
        (b"a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" * 1, "FILE: there is no object"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "not valid JSON"),
        (b'{"pods": 3, "nodes": [], "pvs": []}', "FILE: pods must be a list"),
        (b'{"pods": [3], "nodes": [], "pvs": []}', "pods[0]: must be an object"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(
    tmp_path: Path, text: bytes, complaint: str
) -> None:
    assert complaint in refusal(tmp_path / "file", text)


def test_aliases_that_would_become_large_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "alias" in refusal(tmp_path / "bomb.yaml", "\n".join(lines).encode())


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 1_000_000)
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * 3_000_000))
    with pytest.raises(SnapshotError, match="it holds more than 1000000 bytes"):
        read_snapshot(bomb)
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as archive:
        member(archive, "logs/not-read.log", b" " * 3_000_000)
        member(archive, "a.json", json.dumps(NODE).encode())
    with pytest.raises(SnapshotError, match="it holds more than 1000000 bytes"):
        read_snapshot(tmp_path / "bomb.tar.gz")


def test_links_and_paths_that_leave_the_archive_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text(json.dumps(make_node("outside").build()))
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "outside.json")
        archive.addfile(link)
        member(archive, "../up.json", json.dumps(make_node("up").build()).encode())
        member(archive, "/root.json", json.dumps(make_node("root").build()).encode())
        member(archive, "in.json", json.dumps(NODE).encode())
    assert names(read_snapshot(path), "Node") == ["n"]


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text(json.dumps(make_node("outside").build()))
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "in.json").write_text(json.dumps(NODE))
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "up").symlink_to(tmp_path)
    assert names(read_snapshot(folder), "Node") == ["n"]


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        member(archive, "in.json", json.dumps(NODE).encode() + b" " * 20_000)
    path.write_bytes(path.read_bytes()[:8_000])
    with pytest.raises(SnapshotError, match=r"x\.tar"):
        read_snapshot(path)


def test_objects_that_nobody_here_would_take_are_told_with_the_reason(tmp_path: Path) -> None:
    old = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "old", "namespace": "default"},
    }
    (tmp_path / "x.json").write_text(json.dumps({"kind": "List", "items": [NODE, old]}))
    cluster = kubescene.Cluster()
    (told,) = restore(cluster.registry, read_snapshot(tmp_path / "x.json"))
    assert told.startswith("1 x PodDisruptionBudget cannot be restored here, such as old: ")
    assert [node["metadata"]["name"] for node in cluster.list("nodes")] == ["n"]


@pytest.mark.parametrize("part", ["apiVersion", "kind", "name", "uid", "controller", None])
@pytest.mark.parametrize("kind", ["Pod", "ReplicaSet"])
def test_a_reference_to_an_owner_may_be_of_any_form(kind: str, part: str | None) -> None:
    """Whose parts are not text makes an object one that is left out, and told."""
    labels = {"app": "web", "pod-template-hash": "abc"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    for value in CONFUSED:
        owner: Any = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet" if kind == "Pod" else "Deployment",
            "name": "web-abc" if kind == "Pod" else "web",
            "uid": "gone" if kind == "Pod" else "u",
            "controller": True,
        }
        owner = value if part is None else {**owner, part: value}
        metadata = {"name": "web-abc", "namespace": "default", "uid": "s", "labels": labels}
        obj = {
            "apiVersion": "v1" if kind == "Pod" else "apps/v1",
            "kind": kind,
            "metadata": {**metadata, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "c", "image": "x"}]} if kind == "Pod" else spec,
        }
        snapshot = snapshot_of([FoundObjects(iter([obj, web, NODE]))])
        told = [*snapshot.unknowns, *restore(kubescene.Cluster().registry, snapshot)]
        assert all(isinstance(each, str) for each in told)
        if part not in ("controller", None) and not isinstance(value, str | None):
            reason = f"its metadata.ownerReferences[].{part} is of the wrong type"
            assert snapshot.left_out[kind, reason] == 1


MEMBERS = (
    *("metadata", "spec", "status", "name", "namespace", "ownerReferences", "labels", "time"),
    *("template", "containers", "volumes", "kind", "conditions", "uid", "controller", "nodeName"),
    *("annotations", "managedFields", "env", "selector"),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("v1", "Node"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "ControllerRevision"),
        ("v1", "ConfigMap"),
        ("kubescene.dev/v1alpha1", "SnapshotInfo"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ]
)


@given(kind=KINDS, metadata=JUNK, spec=JUNK, status=JUNK, name=st.booleans())
def test_objects_of_any_form_are_restored_or_told(
    kind: tuple[str, str], metadata: object, spec: object, status: object, name: bool
) -> None:
    if name and isinstance(metadata, dict):
        metadata = {**metadata, "name": "x", "namespace": "default"}
    obj = {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
    try:
        snapshot = snapshot_of([FoundObjects(iter([obj, NODE]))])
    except KubesceneError:
        return
    told = [*snapshot.unknowns, *restore(kubescene.Cluster().registry, snapshot)]
    assert all(isinstance(each, str) for each in told)


def test_lists_that_are_too_deep_and_sizes_that_lie_are_refused_at_once(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text('{"kind":"List","items":' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(SnapshotError, match=r"deep\.json: not valid JSON: depth limit exceeded"):
        read_snapshot(deep)
    member = tarfile.TarInfo("resources/pods/namespaces/a/p.json")
    member.size = 1 << 40
    lying = tmp_path / "lying.tar"
    lying.write_bytes(member.tobuf(format=tarfile.GNU_FORMAT) + b"{}")
    with pytest.raises(SnapshotError, match=r"bytes: resources/.*/p\.json claims 1099511627776"):
        read_snapshot(lying)
