"""Extenders over HTTP: a fake one in another process, in each of its moods."""

import copy
import pickle
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubescene.cluster import Cluster
from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import read_configuration
from kubescene.scheduler.extenders.extenders import BackgroundCaller
from kubescene.scheduler.extenders.http import HttpExtenderCaller
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject
from scheduler.extender_process import FakeExtender, fake_extender

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeExtender]:
    with fake_extender() as extender:
        yield extender


def config(*extenders: JsonObject) -> JsonObject:
    return {**HEADER, "extenders": [*extenders]}


def world(*extenders: JsonObject, nodes: str = "abc", **options: Any) -> Cluster:
    base = SchedulerOptions(**options)
    cluster = Cluster(scheduler=read_configuration(config(*extenders), base))
    for name in nodes:
        cluster.create(make_node(name).cpu("4").memory("8Gi"))
    return cluster


def filtering(url: str, **more: Any) -> JsonObject:
    return {"urlPrefix": url, "filterVerb": "filter", "httpTimeout": "120s", **more}


def placed(cluster: Cluster, name: str = "p") -> str:
    cluster.create(make_pod(name).cpu("1"))
    return cluster.settle().pod(name).node


# -- what is asked and what is done with the answer --------------------------------------------


@pytest.mark.parametrize("cache_capable", [True, False])
def test_x_2_x_3_an_extender_narrows_the_nodes(fake: FakeExtender, cache_capable: bool) -> None:
    mood = f"good/{cache_capable}"
    cluster = world(filtering(fake.url(mood), nodeCacheCapable=cache_capable))
    assert placed(cluster) == "c"
    (call,) = fake.calls(mood)
    assert call["path"] == f"/{mood}/filter"
    assert [*call["body"]] == ["Pod", "Nodes", "NodeNames"]
    pod = call["body"]["Pod"]
    assert pod["metadata"]["name"] == "p"
    assert "kind" not in pod
    if cache_capable:
        assert (call["body"]["NodeNames"], call["body"]["Nodes"]) == (["a", "b", "c"], None)
    else:
        assert call["body"]["NodeNames"] is None
        sent = call["body"]["Nodes"]["items"]
        assert [node["metadata"]["name"] for node in sent] == ["a", "b", "c"]
        assert sent[0]["status"]["allocatable"]["cpu"] == "4"


def test_x_8_scores_count_ten_times_their_weight(fake: FakeExtender) -> None:
    prefers = {"urlPrefix": fake.url("good/rated/"), "prioritizeVerb": "prioritize", "weight": 5}
    assert placed(world({**prefers, "nodeCacheCapable": True})) == "c"
    assert fake.calls("good/rated")[0]["path"] == "/good/rated/prioritize"


def test_x_10_an_extender_binds_and_is_believed(fake: FakeExtender) -> None:
    binds = {"urlPrefix": fake.url("good/bound"), "bindVerb": "bind"}
    cluster = world(binds)
    assert placed(cluster) == "a"
    (call,) = fake.calls("good/bound")
    uid = cluster.get("pods", "p")["metadata"]["uid"]
    assert call["body"] == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": uid,
        "Node": "a",
    }


def test_x_9_an_extender_sees_the_victims(fake: FakeExtender) -> None:
    preempts = {"urlPrefix": fake.url("good/victims"), "preemptVerb": "preempt"}
    cluster = world({**preempts, "nodeCacheCapable": True}, nodes="a")
    cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"} | HIGH)
    assert placed(cluster, "low") == "a"
    uid = cluster.get("pods", "low")["metadata"]["uid"]
    urgent = make_pod("urgent").cpu("4").build()
    urgent["spec"]["priorityClassName"] = "high"
    cluster.create(urgent)
    assert cluster.settle().pod("urgent").node == "a"
    (call,) = fake.calls("good/victims")
    victims = {"a": {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}
    assert call["body"]["NodeNameToMetaVictims"] == victims
    assert call["body"]["NodeNameToVictims"] is None


HIGH = {"metadata": {"name": "high"}, "value": 1000}


def test_x_3_only_pods_with_a_managed_resource_are_sent(fake: FakeExtender) -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    cluster = world(filtering(fake.url("good/managed"), managedResources=managed))
    placed(cluster, "plain")
    assert fake.calls("good/managed") == []
    pod = make_pod("gpu").cpu("1").build()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    cluster.create(pod)
    assert cluster.settle().pod("gpu").node == "c"  # no node has a GPU
    assert len(fake.calls("good/managed")) == 1


def test_connections_are_used_again(fake: FakeExtender) -> None:
    cluster = world(filtering(fake.url("good/again"), nodeCacheCapable=True))
    for number in range(5):
        placed(cluster, f"p{number}")
    assert len({call["port"] for call in fake.calls("good/again")}) == 1


def test_a_connection_that_was_closed_meanwhile_is_replaced(fake: FakeExtender) -> None:
    cluster = world(filtering(fake.url("restless"), nodeCacheCapable=True))
    assert [placed(cluster, f"p{number}") for number in range(3)] == ["c"] * 3


# -- bad moods ---------------------------------------------------------------------------------

MOODS = {
    "slow": 'Post "{url}/filter": context deadline exceeded '
    "(Client.Timeout exceeded while awaiting headers)",
    "dripping": 'Post "{url}/filter": context deadline exceeded '
    "(Client.Timeout exceeded while awaiting headers)",
    "broken": "failed filter with extender at URL {url}/filter, code 500",
    "confused": "invalid character '<' looking for beginning of value",
    "torn": "unexpected EOF",
    "wrong": "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult",
    "lying": 'extender "{url}" claims a filtered node "nowhere" which is not found in the input '
    "node list",
    "complaining": "backend down",
    "gone": 'Post "{url}/filter": ',
}
LATE = {"slow", "dripping"}


def bad(url: str, mood: str) -> JsonObject:
    """Only of those who come too late it is known that they will not answer in time."""
    wait = {"httpTimeout": "300ms"} if mood in LATE else {}
    return filtering(url, nodeCacheCapable=True, **wait)


@pytest.mark.parametrize(("mood", "text"), MOODS.items(), ids=MOODS)
def test_x_6_a_bad_extender_fails_the_attempt_and_is_named(
    fake: FakeExtender, mood: str, text: str
) -> None:
    url = fake.url(mood)
    cluster = world(bad(url, mood))
    assert placed(cluster) == ""
    condition = cluster.pod("p").condition("PodScheduled")
    assert condition is not None
    assert condition["reason"] == "SchedulerError"
    assert condition["message"].startswith(text.format(url=url))


@pytest.mark.parametrize("mood", MOODS)
def test_x_6_an_ignorable_one_is_done_without(fake: FakeExtender, mood: str) -> None:
    assert placed(world({**bad(fake.url(mood), mood), "ignorable": True})) == "a"


def test_an_answer_without_end_is_cut_off(fake: FakeExtender) -> None:
    extender = filtering(fake.url("endless"), nodeCacheCapable=True)
    cluster = world(extender, extender_caller=HttpExtenderCaller(max_answer=1_000_000))
    assert placed(cluster) == ""
    assert "the answer has more than 1000000 bytes" in cluster.pod("p").why_pending


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
    cluster = world(filtering(url))
    assert placed(cluster) == ""
    assert cluster.pod("p").why_pending == f'Post "{url}/filter": Connection refused'


@pytest.mark.parametrize("url", ["ftp://somewhere", "nonsense", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    cluster = world(filtering(url))
    assert placed(cluster) == ""
    assert "unsupported protocol scheme" in cluster.pod("p").why_pending


# -- TLS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=fake", "-addext", "subjectAltName=IP:127.0.0.1,DNS:extender.test"]
    files = ["-out", cert, "-keyout", key]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return cert, key


def test_x_1_tls(certificate: tuple[str, str], tmp_path: Path) -> None:
    with fake_extender(*certificate) as fake:
        url = fake.url("good")
        known = {"tlsConfig": {"caFile": certificate[0]}}
        named = {"tlsConfig": {"caFile": certificate[0], "serverName": "extender.test"}}
        wrong_name = {"tlsConfig": {"caFile": certificate[0], "serverName": "other.test"}}
        unsafe = {"tlsConfig": {"insecure": True}}
        anybody = {"enableHTTPS": True}
        for tls in (known, named, unsafe, anybody):
            assert placed(world(filtering(url, nodeCacheCapable=True, **tls))) == "c"
        for tls in ({}, wrong_name):
            cluster = world(filtering(url, nodeCacheCapable=True, **tls))
            assert placed(cluster) == ""
            assert "certificate verify failed" in cluster.pod("p").why_pending
    with pytest.raises(SchedulerConfigurationError) as caught:
        world(filtering(url, tlsConfig={"caFile": str(tmp_path / "missing.pem")}))
    assert caught.value.path == "extenders[0].tlsConfig"
    with pytest.raises(SchedulerConfigurationError, match="with the insecure flag is not allowed"):
        world(filtering(url, tlsConfig={"caFile": certificate[0], "insecure": True}))


# -- values ------------------------------------------------------------------------------------


def test_options_with_extenders_can_be_copied_and_sent(fake: FakeExtender) -> None:
    cluster = world(filtering(fake.url("good/copied"), nodeCacheCapable=True))
    placed(cluster, "first")
    options = pickle.loads(pickle.dumps(cluster.options.scheduler))
    assert options.extenders == cluster.options.scheduler.extenders
    assert copy.deepcopy(options.extender_caller) is options.extender_caller
    fork = cluster.fork()
    assert placed(fork, "second") == placed(cluster, "second") == "c"


def test_calls_go_to_the_background_and_come_back() -> None:
    plain = SchedulerOptions()
    served = plain.in_background()
    assert isinstance(served.extender_caller, BackgroundCaller)
    assert served.in_background() is served
    assert isinstance(served.at_once().extender_caller, HttpExtenderCaller)
    assert plain.at_once() is plain
