"""Requests against usage: recommendations, nodes and money by arithmetic; sources of usage.

The recommender's numbers are worked out by hand: its buckets grow by 5 % from 0.01 cores and from
10 MB, a percentile is the end of its bucket, and 15 % come on top, cut to whole units. Of 0.2 cores
that is 0.01 * (1.05**15 - 1) / 0.05 = 0.2157, so 215m and 32m: 247m. Of 300 MB it is
10 MB * (1.05**19 - 1) / 0.05 = 305.39 MB, and 351.2 MB with the margin.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

import kubescene
from hand_made import asked, nodes, rows, workload
from kubescene.autoscalers.vertical import histories
from kubescene.autoscalers.vertical.objects import read_vpa
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.durations import HOUR, MINUTE, SECOND
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices, read_prices
from kubescene.types import JsonObject
from kubescene.what_if import WhatIf
from kubescene.what_if.used import COUNTER, recorded_usage

BEGIN = 1_767_225_600
"""The instant of all these clusters, in seconds."""
CPU_OF_200M = 247
MEMORY_OF_300MB = 351_200_000
CPUS, MEMORIES = "Cpu, the largest changes first", "Memory, the largest changes first"


def answer_of(series: list[JsonObject]) -> str:
    """As Prometheus answers to ``query_range``."""
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def series_of(pods: list[str], values: list[tuple[int, str]], **labels: str) -> list[JsonObject]:
    given = {"namespace": "default", "container": "c", **labels}
    return [{"metric": {**given, "pod": pod}, "values": values} for pod in pods]


def constant(amount: str, minutes: int = 120) -> list[tuple[int, str]]:
    return [(BEGIN + 60 * minute, amount) for minute in range(minutes)]


def pods_of(what_if: WhatIf) -> list[str]:
    return [pod["metadata"]["name"] for pod in what_if.world.list("pods")]


def folder_of(tmp_path: Path, pods: list[str], cpu: str, memory: str) -> Path:
    folder = tmp_path / "prometheus"
    folder.mkdir()
    (folder / "cpu.json").write_text(answer_of(series_of(pods, constant(cpu))))
    (folder / "memory.json").write_text(answer_of(series_of(pods, constant(memory))))
    return folder


def test_1_who_asks_for_five_times_what_he_uses_pays_for_another_node(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    what_if = asked(cluster, tmp_path, prices=Prices(default=0.1))
    folder = folder_of(tmp_path, pods_of(what_if), "0.2", "300000000")
    answer = what_if.rightsize([folder])
    # 8 cores need two nodes of 4; 8 times 247m need one.
    assert answer.measures["removable_before"] == 2
    assert answer.measures["removable_after"] == 3
    assert answer.measures["cpu_before"] == 8
    assert answer.measures["cpu_after"] == pytest.approx(8 * CPU_OF_200M / 1000)
    assert answer.measures["memory_after"] == pytest.approx(8 * MEMORY_OF_300MB, rel=1e-3)
    assert answer.measures["saved_an_hour"] == pytest.approx(0.1)
    assert answer.measures["saved_a_month"] == pytest.approx(73)
    # Of the bill, half is for cpu, of which 8 - 1.976 of 16 cores are slack, and half for memory,
    # of which nothing was asked for before.
    slack = 0.4 * ((8 - 1.976) / 16 - 8 * MEMORY_OF_300MB / (64 * 2**30)) / 2
    assert answer.measures["slack_an_hour"] == pytest.approx(slack, abs=1e-4)
    web = "default/web (Deployment)", "c", 8
    assert rows(answer, CPUS) == [(*web, "1000m", "247m", "0%")]
    assert rows(answer, MEMORIES) == [(*web, "0Mi", "335Mi", "0%")]


def test_2_who_uses_more_than_he_asks_for_is_given_more_and_moves_if_he_must(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2, cpu="1")
    cluster.create(workload("Deployment", "web", "100m", replicas=6))
    what_if = asked(cluster, tmp_path)
    folder = folder_of(tmp_path, pods_of(what_if), "0.2", "300000000")
    answer = what_if.rightsize([folder])
    # Four times 247m are a core, less 12m: all six fit; three on each node, as they are.
    assert answer.measures["raised"] == 1
    assert answer.measures["pending"] == 0
    assert answer.measures["removable_before"] == 1
    assert answer.measures["removable_after"] == 0


def test_3_what_does_not_fit_when_it_asks_for_what_it_uses_waits(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2, cpu="1")
    cluster.create(workload("Deployment", "web", "100m", replicas=10))
    what_if = asked(cluster, tmp_path)
    folder = folder_of(tmp_path, pods_of(what_if), "0.2", "300000000")
    answer = what_if.rightsize([folder])
    assert answer.measures["pending"] == 10 - 2 * 4
    assert any("placed anew at once" in each for each in answer.unknown)


def test_4_memory_that_was_used_once_and_is_above_the_new_limit_is_told(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    web = workload("Deployment", "web", "1", replicas=1)
    resources = web["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"]["memory"] = "1Gi"
    resources["limits"] = {"memory": "2Gi"}
    cluster.create(web)
    what_if = asked(cluster, tmp_path)
    day = 24 * 3600
    peaks = [(BEGIN + n * day, "900000000" if n == 0 else "100000000") for n in range(9)]
    file = tmp_path / "memory.json"
    file.write_text(answer_of(series_of(pods_of(what_if), peaks)))
    answer = what_if.rightsize([f"memory={file}"], quantile=0.5)
    # The recommender asks for no less than 250 MiB a pod; the limit stays twice the request.
    assert answer.measures["killed"] == 1
    assert rows(answer, "Used more memory than the new limit") == [
        ("default/web (Deployment)", "c", "858Mi", "500Mi")
    ]
    assert what_if.rightsize([f"memory={file}"], quantile=1.0).measures["killed"] == 0
    assert "cpu_after" in answer.measures  # nothing was measured of it: it stays
    assert answer.measures["cpu_after"] == answer.measures["cpu_before"] == 1


def test_5_checkpoints_and_policies_of_a_snapshot_are_where_recommendations_start(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    cluster.create(workload("Deployment", "web", "1", replicas=2))
    what_if = asked(cluster, tmp_path)
    vpa: JsonObject = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
    recommender = Recommender(read_vpa(vpa))
    recommender.usage.set_pod("p", labels={}, containers=["c"], now=BEGIN * SECOND)
    for minute in range(120):
        recommender.usage.add_cpu("p", "c", 200, BEGIN * SECOND + minute * MINUTE)
    [(name, status)] = recommender.checkpoints(BEGIN * SECOND + 3 * HOUR).items()
    saved = histories.checkpoint_object("web", name, status)
    saved["metadata"]["namespace"] = "default"
    what_if.snapshot.objects.extend([vpa, saved])
    [row] = rows(what_if.rightsize(), CPUS)
    assert row[4] == "247m"
    most = {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "150m"}}]}
    vpa["spec"]["resourcePolicy"] = most
    [row] = rows(what_if.rightsize(), CPUS)
    assert row[4] == "150m"
    # Without a history, what the object's status recommends is taken.
    what_if.snapshot.objects.remove(saved)
    told = [{"containerName": "c", "target": {"cpu": "321m", "memory": "64Mi"}}]
    vpa["status"] = {"recommendation": {"containerRecommendations": told}}
    answer = what_if.rightsize()
    assert rows(answer, CPUS)[0][4:] == ("321m", "-")
    assert rows(answer, MEMORIES)[0][4:] == ("64Mi", "-")


def test_without_usage_nothing_is_answered(cluster: kubescene.Cluster, tmp_path: Path) -> None:
    nodes(cluster, 1)
    cluster.create(workload("Deployment", "web", "1", replicas=1))
    with pytest.raises(ConfigurationError, match="nothing is known of what pods use: name files"):
        asked(cluster, tmp_path).rightsize()


def test_6_opencost_says_whose_pods_those_were_that_are_gone(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    cluster.create(workload("Deployment", "web", "1", replicas=2))
    cluster.create(workload("StatefulSet", "db", "1", replicas=1, serviceName="db"))
    file = tmp_path / "opencost.csv"
    file.write_text(
        "Date,Namespace,ControllerKind,ControllerName,Pod,Container,Labels,CPUCoreUsageAverage,"
        "RAMBytesUsageAverage,TotalCost\n"
        '2026-01-01,default,deployment,web,web-old-1,c,"{""app"":""web""}",0.2,300000000,0.4\n'
        "2026-01-02,default,,,db-7,c,,0.2,300000000,0.4\n"
        "2026-01-01,default,job,gone,gone-1,c,,0.2,300000000,0.4\n"
        "2026-01-01,__idle__,,,,,,0,0,1.6\n"
    )
    answer = asked(cluster, tmp_path).rightsize([file])
    assert answer.measures["covered"] == 2
    told = "\n".join(answer.unknown)
    assert "opencost.csv has averages of whole days, which hide peaks" in told
    assert "left out were 1 rows of what is idle" in told
    assert "left out were 1 containers of pods that no workload here would make" in told
    assert {row[4] for row in answer.tables[0].rows} == {"247m"}


def test_7_own_csv_and_a_series_that_is_there_twice(tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    file.write_text("time,namespace,pod,container,cpu,memory\n0s,a,p,c,200m,1Ki\n60s,a,p,c,,2Ki\n")
    [(user, samples)] = recorded_usage([str(file)], 0, HOUR).samples.items()
    assert user[:3] == ("a", "p", "c")
    assert samples["cpu"] == [(0, 200)]
    assert samples["memory"] == [(0, 1024), (60 * SECOND, 2048)]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("some.json", answer_of([]), r"what was measured\? Name it cpu.json or memory.json"),
        ("cpu.json", "{", "is no answer of Prometheus to query_range"),
        ("cpu.json", answer_of([]), "nobody's usage is in it"),
        (
            "cpu.json",
            answer_of(series_of(["p"], constant("1"), __name__=COUNTER)),
            "only grows: ask for its rate",
        ),
        ("cpu.json", answer_of(series_of(["p"], constant("-1"))), "is negative, or too much"),
        ("cpu.json", answer_of(series_of(["p"], [(1, "x")])), r"values\[0\]: 'x' is no number"),
        ("o.csv", "Date,Pod\n", ":1: there is no column 'Namespace' of OpenCost's"),
        ("u.csv", "time,pod\n0s,p\n", ":2: it has no namespace"),
        (
            "o.csv",
            "Date,Namespace,Pod,Container,CPUCoreUsageAverage,RAMBytesUsageAverage\nx,a,p,c,1,1\n",
            ":2: Date: 'x' is no day such as 2026-03-01",
        ),
        (
            "o.csv",
            "Date,Namespace,Pod,Container,CPUCoreUsageAverage,RAMBytesUsageAverage\n"
            "2026-01-01,a,p,c,much,1\n",
            ":2: CPUCoreUsageAverage: 'much' is no number",
        ),
    ],
)
def test_usage_that_nobody_understands_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=complaint):
        recorded_usage([str(tmp_path / name)], 0, HOUR)


def test_sums_of_pods_and_what_was_asked_for_are_left_out_and_counted(tmp_path: Path) -> None:
    series = [
        *series_of(["p"], [(1, "0.1"), (2, "NaN")]),
        *series_of(["p"], constant("5"), container=""),
        *series_of(["p"], constant("5"), __name__="kube_pod_container_resource_requests"),
        *series_of(["p"], constant("5"), namespace=""),
    ]
    (tmp_path / "cpu.json").write_text(answer_of(series))
    found = recorded_usage([str(tmp_path)], 0, HOUR)
    [(_, samples)] = found.samples.items()
    assert samples == {"cpu": [(SECOND, 100)]}
    assert found.told() == [
        "usage: left out were 1 series of what was asked for, not used, 1 series of whole pods, "
        "1 series without namespace or pod"
    ]


class FakePrometheus(BaseHTTPRequestHandler):
    """Answers queries, and holds whatever else is asked against the client."""

    asked: ClassVar[list[dict[str, list[str]]]] = []
    others: ClassVar[list[str]] = []
    pods: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        query = parse_qs(place.query)
        if place.path != "/prom/api/v1/query_range":
            self.others.append(self.path)
        self.asked.append(query)
        amount = "0.2" if "cpu" in query["query"][0] else "300000000"
        body = answer_of(series_of(self.pods, constant(amount))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            self.others.append(name)
        raise AttributeError(name)

    def log_message(self, *args: object) -> None:
        """Silence."""


@pytest.fixture
def prometheus() -> Iterator[str]:
    FakePrometheus.asked.clear()
    FakePrometheus.others.clear()
    server = HTTPServer(("127.0.0.1", 0), FakePrometheus)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/prom"
    server.shutdown()
    thread.join()
    server.server_close()


def test_8_a_prometheus_is_asked_by_get_and_for_no_more_points_than_it_gives(
    cluster: kubescene.Cluster, tmp_path: Path, prometheus: str
) -> None:
    nodes(cluster, 4)
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    what_if = asked(cluster, tmp_path)
    FakePrometheus.pods[:] = pods_of(what_if)
    answer = what_if.rightsize([prometheus], window="2400h")
    assert answer.measures["removable_after"] == 3
    assert FakePrometheus.others == []
    assert len(FakePrometheus.asked) == 2
    for query in FakePrometheus.asked:
        start, end, step = (int(query[name][0]) for name in ("start", "end", "step"))
        assert end - start == 2400 * 3600
        assert end == what_if.world.clock.now() // SECOND
        assert (end - start) // step + 1 <= 11_000


def test_a_prometheus_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"http://127\.0\.0\.1:9"):
        recorded_usage(["http://127.0.0.1:9"], 0, HOUR)


# -- prices --------------------------------------------------------------------------------------

TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "price"),
    [
        ({TYPE: "m5"}, 0.1),
        ({TYPE: "m5", ZONE: "a"}, 0.12),
        ({TYPE: "m5", "karpenter.sh/capacity-type": "spot"}, 0.03),
        ({TYPE: "m5", "karpenter.sh/capacity-type": "on-demand"}, 0.1),
        ({TYPE: "m5", "eks.amazonaws.com/capacityType": "SPOT", ZONE: "a"}, 0.02),
        ({TYPE: "m5", "cloud.google.com/gke-spot": "true", ZONE: "b"}, 0.03),
        ({TYPE: "m5", "kubernetes.azure.com/scalesetpriority": "spot"}, 0.03),
        ({TYPE: "c5", "karpenter.sh/capacity-type": "spot"}, 0.2),
    ],
)
def test_the_most_exact_price_counts(tmp_path: Path, labels: dict[str, str], price: float) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(
        "instance_type,hourly,capacity_type,zone\n"
        "m5,0.1,,\nm5,0.12,,a\nm5,0.03,spot,\nm5,0.02,spot,a\nc5,0.2,,\n"
    )
    assert float(read_prices(file).of("n", labels)) == price


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("type,hourly\n", ':1: there is no column "instance_type"'),
        ("instance_type,hourly\nm5,dear\n", ":2: hourly: 'dear' is no number"),
        ("instance_type,hourly\nm5,1\nm5,2\n", ":3: m5 has a price already"),
        ("instance_type,hourly\nm5,-1\n", "the price of m5 cannot be -1"),
        ("instance_type,hourly,capacity_type\nm5,1,cheap\n", "is spot or on-demand, not 'cheap'"),
    ],
)
def test_a_price_list_in_csv_says_which_line_is_wrong(
    tmp_path: Path, text: str, complaint: str
) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=complaint):
        read_prices(file)
