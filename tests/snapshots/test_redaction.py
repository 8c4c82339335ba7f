"""What is confidential does not come out, and names only if that is wanted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import kubescene
from dumped import TOKEN, dump, listed, placed, shop
from kubescene.clock import Stream, Streams
from kubescene.cluster import ClusterOptions
from kubescene.snapshots import Snapshot, read_snapshot, restore
from kubescene.snapshots.anonymizing import anonymized
from kubescene.snapshots.redaction import redacted
from kubescene.testing import make_node
from kubescene.types import JsonObject

SAMPLE = Path(__file__).parent / "samples/kubectl-dump.yaml"
KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    file = tmp_path_factory.mktemp("dump") / "cluster.json"
    file.write_bytes(dump(shop()))
    return read_snapshot(file)


def settled(snapshot: Snapshot) -> kubescene.Cluster:
    cluster = kubescene.Cluster(ClusterOptions(start=snapshot.taken_at))
    assert list(restore(cluster.registry, snapshot)) == []
    return cluster.settle()


def test_values_commands_headers_and_annotations_are_taken_out_wherever_a_template_stands() -> None:
    container: JsonObject = {
        "name": "c",
        "command": ["sh", TOKEN],
        "args": [TOKEN],
        "env": [
            {"name": "A", "value": TOKEN},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "db", "key": "k"}}},
        ],
        "livenessProbe": {"exec": {"command": [TOKEN]}, "periodSeconds": 3},
        "readinessProbe": {"httpGet": {"port": 1, "httpHeaders": [{"name": "x", "value": TOKEN}]}},
        "lifecycle": {"preStop": {"exec": {"command": [TOKEN]}}},
    }
    metadata = {
        "name": "x",
        "annotations": {"team/secret": TOKEN, "cluster-autoscaler.kubernetes.io/safe": "false"},
    }
    pod_spec = {"containers": [container], "initContainers": [container], "hostAliases": [TOKEN]}
    template = {"metadata": metadata, "spec": pod_spec}
    status = {"containerStatuses": [{"state": {"terminated": {"message": TOKEN}}}]}
    for obj in (
        {"kind": "Pod", "metadata": metadata, "spec": pod_spec, "status": status},
        {"kind": "Deployment", "metadata": metadata, "spec": {"template": template}},
        {
            "kind": "CronJob",
            "metadata": metadata,
            "spec": {"jobTemplate": {"metadata": metadata, "spec": {"template": template}}},
        },
        {"kind": "PodTemplate", "metadata": metadata, "template": template},
        {"kind": "ConfigMap", "metadata": metadata, "data": {"k": TOKEN}, "binaryData": {"b": "x"}},
    ):
        before = json.dumps(obj)
        text = json.dumps(redacted(obj))
        assert TOKEN not in text, obj["kind"]
        assert "safe" in text
        assert json.dumps(obj) == before
    kept = redacted({"kind": "Pod", "metadata": metadata, "spec": pod_spec})["spec"]
    assert kept["containers"][0]["env"] == [{"name": "A"}, container["env"][1]]
    assert kept["containers"][0]["livenessProbe"] == {
        "exec": {"command": ["redacted"]},
        "periodSeconds": 3,
    }


def test_nothing_confidential_is_in_the_file_unless_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(shop()))
    assert TOKEN in file.read_text()
    assert TOKEN.encode() not in read_snapshot(file).encoded()
    assert TOKEN.encode() in read_snapshot(file, redact=False).encoded()
    document = listed(shop())
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": "aGk="},
    }
    document["items"].append(secret)
    file.write_text(json.dumps(document))
    assert b"aGk=" not in read_snapshot(file, redact=False).encoded()


ALLOWED = re.compile(
    r"kubernetes|k8s|karpenter|kubescene|default|system|scheduler|nvidia|acme"  # csi.acme: a driver
)


def words(value: Any) -> set[str]:
    """All words of a document, of keys and texts."""
    if isinstance(value, dict):
        return {word for each in (*value, *value.values()) for word in words(each)}
    if isinstance(value, list):
        return {word for each in value for word in words(each)}
    if not isinstance(value, str):
        return set()
    return {value, *re.findall(r"[A-Za-z0-9]+", value)}


def random_names(obj: JsonObject, names: dict[str, str], draw: Stream) -> JsonObject:
    """The same object where every word of ours is another one, drawn by chance."""

    def other(found: "re.Match[str]") -> str:
        letters = "abcdefghijkmnpqrstuvwxyz"
        return names.setdefault(
            found[0], "zq" + "".join(letters[draw.below(len(letters))] for _ in range(9))
        )

    ours = re.compile(r"frontend|ledger|collector|report|shop|worker|registry|huge|acme|fast|eu")
    made: JsonObject = json.loads(ours.sub(other, json.dumps(obj)))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_no_name_of_the_source_is_in_an_anonymised_snapshot(tmp_path: Path, seed: int) -> None:
    names: dict[str, str] = {}
    draw = Streams(seed).stream("names")
    document = random_names(listed(shop()), names, draw)
    node = make_node("ip-10-20-30-40.eu.internal").build()
    node["spec"] = {
        "taints": [{"key": "zqtaintkey", "value": "zqtaintvalue", "effect": "NoSchedule"}]
    }
    node["metadata"]["labels"] = {"zqteamlabel/zqownerkey": "zqownervalue"}
    document["items"].append(node)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(document))
    text = anonymized(read_snapshot(file), KEY).encoded().decode()
    assert "zq" in file.read_text()
    driver = {names["acme"]}  # provisioners are the names of programs
    secret = {word for word in words(document) if "zq" in word and len(word) >= 6}
    assert len(secret) > 20
    told = {word for word in secret if word in text}
    assert {each for each in told if not any(name in each for name in driver)} == set()
    assert "10-20-30-40" not in text


def test_the_sample_holds_none_of_its_names_when_it_is_anonymised() -> None:
    text = anonymized(read_snapshot(SAMPLE), KEY).encoded().decode()
    for name in ("team-0", "svc-0", "batch-0", "ip-10-0", "business-critical", "vol-2dd29261"):
        assert name not in text
    assert "kube-system" in text
    assert "ebs.csi.aws.com" in text


def test_an_anonymised_snapshot_is_the_same_cluster_with_other_names(snapshot: Snapshot) -> None:
    plain, other = settled(snapshot), settled(anonymized(snapshot, KEY))
    assert len(placed(plain)) == len(placed(other))
    nodes = [each["metadata"]["name"] for each in plain.list("nodes")]
    renamed = [each["metadata"]["name"] for each in other.list("nodes")]
    assert len(set(renamed)) == len(nodes)
    for cluster in (plain, other):
        before = placed(cluster)
        cluster.advance("10m")
        assert placed(cluster) == before
    loads = [
        sorted(
            sum(node == each for _, node in placed(cluster).values())
            for each in (name["metadata"]["name"] for name in cluster.list("nodes"))
        )
        for cluster in (plain, other)
    ]
    assert loads[0] == loads[1]
    kinds = [
        sorted(each["kind"] for each in json.loads(cluster.export())["items"])
        for cluster in (plain, other)
    ]
    assert kinds[0] == kinds[1]


def test_other_keys_give_other_names_and_the_same_key_the_same(snapshot: Snapshot) -> None:
    first, second = anonymized(snapshot, KEY).encoded(), anonymized(snapshot, KEY).encoded()
    assert first == second
    assert anonymized(snapshot, b"another key of 16").encoded() != first
    assert KEY not in first
