"""Requests at random to every endpoint of a server: objects of every kind, Scenarios, traffic runs.

    python tests/fuzzing.py [REQUESTS] [SEED]

The server runs in this process, with its controllers; with an even seed it keeps its world and its
runs in a directory, as with ``--data-dir``, and the world is opened once more at the end. Told at
the end: how often each status was answered, what was said with a 500, every answer that the server
itself calls an internal error, what its log said, the slowest requests and how much the process has
grown. Exits with 1 if there was an internal error, a line in the log, a server that no longer
serves, or a world on disk that is not the one that was served. The same seed asks the same.
"""

import json
import logging
import resource
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from apiserver.http import CONFIG_MAPS, Http, Reply, config_map
from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import ResourceType
from kubescene.apiserver.server import Server
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.cli.data import WORLD
from kubescene.clock import SECOND, WallClock
from kubescene.cluster import ClusterWorld
from kubescene.cluster.options import ClusterOptions, builtin_controllers
from kubescene.store import Store
from kubescene.store.disk import open_store
from kubescene.traffic.spec import fields
from random_scenarios import API_VERSION, Lot, random_scenario
from registry.confusion import CONFUSED, Confusion
from sparse_objects import own_objects, sparse_objects, variants

CLOCK = WallClock()
INTERNAL = b"the server's log has the details"
SLOWEST = 10
TRIES = 1000
RESET_EVERY = 400
SCENARIOS = f"/apis/{API_VERSION}/scenarios"
EXAMPLES = Path(__file__).parent.parent / "examples"
LONG_EXAMPLES = {"03-thousand-nodes", "15-spike"}
NAMES = ("a", "b", "default", "", "..", "%00", "A_b", "x" * 300, "web-$(INDEX)")
SUBRESOURCES = ("status", "scale", "binding", "eviction", "resize", "log", "exec", "token", "nope")
PARAMETERS = {
    "watch": ("0", "false", "maybe"),
    "labelSelector": ("app=a", "app in (a", "!", "a=b,c notin (d)", "\x00"),
    "fieldSelector": ("metadata.name=a", "spec.nodeName=", "nope=1", "="),
    "limit": ("1", "0", "-1", "99999999999999999999", "x"),
    "continue": ("x", "e30=", ""),
    "resourceVersion": ("0", "1", "x", "-5", "99999999"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "Nope"),
    "dryRun": ("All", "Some"),
    "fieldManager": ("m", "x" * 200, "\n"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "Nope"),
    "force": ("true", "false", "x"),
    "propagationPolicy": ("Foreground", "Orphan", "Background", "Nope"),
    "gracePeriodSeconds": ("0", "-1", "x", "30"),
    "pretty": ("true", "x"),
    "timeoutSeconds": ("0", "x"),
}
ACCEPTS = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "text/html, */*;q=0",
    ";;;",
)
PATCHES = (
    "merge-patch+json",
    "strategic-merge-patch+json",
    "json-patch+json",
    "apply-patch+yaml",
    "nope+json",
)
BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "x/y")
PAGES = (
    "/",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps/v1",
    "/apis/nope/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/openapi/v3/apis/apps/v1",
    "/version",
    "/healthz",
    "/healthz/ping",
    "/livez",
    "/livez/nope",
    "/readyz",
    "/readyz/..",
    "/metrics",
    "/apis/metrics.k8s.io/v1beta1/nodes",
    "/apis/metrics.k8s.io/v1beta1/nodes/a",
    "/apis/metrics.k8s.io/v1beta1/pods?labelSelector=((",
    "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods",
    "/apis/metrics.k8s.io/v1beta1/namespaces/%00/pods/a",
    "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/requests_per_second",
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue?labelSelector=a%3Db",
    "/simulator/v1/export",
    "/simulator/v1/schedulerconfiguration",
    "/simulator/v1/remedies?pod=default/a",
    "/simulator/v1/remedies?pod=%00",
    "/simulator/v1/remedies",
    "/simulator/v1/explain?pod=default/a",
    "/simulator/v1/explain",
    "/simulator/v1/compare?a=scenario-1&b=scenario-1",
    "/simulator/v1/compare?a=scenario-1&b=traffic-1",
    "/simulator/v1/compare?a=%00&b=..",
    "/simulator/v1/sweeps",
    "/simulator/v1/sweeps/sweep-1",
    "/simulator/v1/sweeps/..",
    "/simulator/v1/convert",
    "/simulator/v1/what-if",
    "/ui",
    "/ui/cluster?sel=%00",
    "/ui/static/app/main.js",
    "/ui/static/../../x",
    "/simulator/v1/runs",
    "/simulator/v1/runs?limit=x",
    "/simulator/v1/runs?kind=nope",
    "/simulator/v1/runs/scenario-1",
    "/simulator/v1/runs/traffic-1",
    "/simulator/v1/runs/nope/files/../../x",
    "/simulator/v1/runs/nope/files/%2e%2e%2fx",
    "/simulator/v1/runs/scenario-1/files/summary.json",
    "/simulator/v1/runs/scenario-1/explain?pod=default/a",
    "/simulator/v1/runs/nope/explain?pod=x",
    "/simulator/v1/runs/traffic-1/files/nope",
    "/runs",
    "/runs/1",
    "/runs/1/series",
    "/runs/99999999999999999999",
    "/as/alice/api/v1/pods",
    "/as//api",
    "/ui",
    "/nope",
)
SCENARIO_PAGES = (
    "progress",
    "progress?step=1",
    "progress?step=x",
    "summary",
    "result",
    "timeline",
    "timeline?since=x",
    "timeline?since=2",
    "explanations",
    "explain",
    "explain?pod=default/pod-0",
    "explain?pod=%00/",
)
RUN_PAGES = ("scenario", "over-time", "report", "explain?pod=default/pod-0", "files/timeline.jsonl")
RUN_IDS = ("1", "x", "..", "scenario-1", "scenario-2", "traffic-1", "traffic-2", "scenario-x")


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    headers: dict[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path} {str(self.body)[:600]}"


class Fuzzer:
    """Makes requests; the same seed makes the same ones in the same order."""

    def __init__(self, seed: int) -> None:
        self._lot = Lot(seed)
        self._scheme = builtin_scheme()
        self._confusion = Confusion(seed, self._scheme)
        self._kinds = [
            self._scheme.of_kind(it.api_version, it.kind) for it in self._confusion.kinds
        ]
        self._sparse = [each.object for each in sparse_objects()]
        self._own = [each.object for whole in own_objects() for each in variants(whole)]
        controllers = builtin_controllers(ClusterOptions())
        offered = [each.load() for each in controllers.offers]
        self._plurals = {
            each["spec"]["names"]["kind"]: each["spec"]["names"]["plural"]
            for each in (*controllers.definitions, *offered)
        }
        self._examples = [
            yaml.safe_load(each.read_text())
            for each in sorted(EXAMPLES.glob("*/scenario.yaml"))
            if each.parent.name not in LONG_EXAMPLES
        ]
        self._makers: tuple[Callable[[], Asked], ...] = (
            *[self._write] * 5,
            *[self._sparse_object] * 2,
            *[self._own_object] * 2,
            *[self._read] * 3,
            self._page,
            self._garbage,
            self._scenario,
            self._traffic_run,
            self._simulator,
        )

    def next(self) -> Asked:
        return self._lot.of(*self._makers)()

    def _write(self) -> Asked:
        kind = self._lot.of(*self._kinds)
        sample = self._confusion.sample(kind.gvk, self._lot.of("a", "b"))
        right = self._lot.happens(30)
        body = sample if right else self._confusion.confused(sample)
        collection, one = self._collection(kind), f"{self._collection(kind)}/{self._name()}"
        match self._lot.below(6):
            case 0 | 1:
                return Asked("POST", collection + self._query(), body, headers=self._headers())
            case 2:
                return Asked("PUT", one + self._query(), body)
            case 3:
                where = f"{one}/{self._lot.of(*SUBRESOURCES)}" + self._query()
                method = self._lot.of("POST", "PUT", "PATCH", "GET", "DELETE")
                return Asked(method, where, body)
            case 4:
                return Asked("DELETE", self._lot.of(one, one, collection) + self._query(), None)
            case _:
                return self._patch(one, sample, body)

    def _patch(self, path: str, sample: dict[str, Any], body: dict[str, Any]) -> Asked:
        kind = self._lot.of(*PATCHES)
        sent: Any = self._confusion.patch(sample)
        if kind.startswith("json"):
            sent = self._confusion.operations()
        elif kind.startswith("apply"):
            path += f"{self._lot.of('', '/status')}?fieldManager=m&force={self._lot.of('true', '')}"
            sent = body
        return Asked("PATCH", path, sent, f"application/{kind}")

    def _sparse_object(self) -> Asked:
        obj = self._lot.of(*self._sparse)
        kind = self._scheme.of_kind(obj["apiVersion"], obj["kind"])
        return Asked("POST", self._collection(kind), obj)

    def _own_object(self) -> Asked:
        """Of the kinds that come with Kubescene: sparse, or with something wrong, or changed."""
        obj = json.loads(json.dumps(self._lot.of(*self._own)))
        space = obj["metadata"].get("namespace")
        below = f"namespaces/{space}/" if space else ""
        collection = f"/apis/{obj['apiVersion']}/{below}{self._plurals[obj['kind']]}"
        one = f"{collection}/{obj['metadata']['name']}"
        method = self._lot.of("POST", "POST", "PUT", "PATCH", "GET", "DELETE")
        if method == "POST":
            return Asked(method, collection, obj if self._lot.happens(60) else self._spoilt(obj))
        if method == "PATCH":
            status = self._lot.of("", "/status")
            patch = {"status": self._value()} if status else self._spoilt(obj)
            return Asked(method, one + status, patch, "application/merge-patch+json")
        return Asked(method, one, self._spoilt(obj) if method == "PUT" else None)

    def _read(self) -> Asked:
        kind = self._lot.of(*self._kinds)
        path = self._lot.of(self._collection(kind), f"{self._collection(kind)}/{self._name()}")
        if self._lot.below(300) == 0:
            return Asked("GET", f"{path}?watch=1&timeoutSeconds=1", headers=self._headers())
        method = self._lot.of("GET", "GET", "GET", "HEAD", "OPTIONS", "NOPE")
        return Asked(method, path + self._query(), headers=self._headers())

    def _page(self) -> Asked:
        method = self._lot.of("GET", "GET", "GET", "HEAD", "POST", "DELETE")
        body = self._value() if method == "POST" else None
        return Asked(method, self._lot.of(*PAGES), body, headers=self._headers())

    def _garbage(self) -> Asked:
        """Bytes that are cut off or mixed up, where an object belongs."""
        kind = self._lot.of(*self._kinds)
        text = json.dumps(self._confusion.sample(kind.gvk, "a")).encode()
        at = self._lot.below(len(text))
        cut = self._lot.of(
            text[:at],
            text[:at] + bytes([self._lot.below(256)]) + text[at + 1 :],
            b"k8s\x00" + text[:at],
            b"[" * 1_000,
            b'{"a":1,"a":2}',
            b"\xff\xfe",
            b"a: &x [*x]",
        )
        where = self._lot.of(self._collection(kind), "/run", "/simulator/v1/import", SCENARIOS)
        return Asked("POST", where, cut, self._lot.of(*BODY_TYPES))

    def _scenario(self) -> Asked:
        name = self._lot.of("s", "t", "u")
        match self._lot.below(8):
            case 0:
                body = random_scenario(self._lot.below(10_000), pods=6, nodes=3)
                body["metadata"] = {"name": name}
            case 6:
                body = json.loads(json.dumps(self._lot.of(*self._examples)))
                body["metadata"] = {"name": name}
                body["spec"] = self._spoilt(body["spec"])
            case 1 | 2:
                body = self._spoilt(random_scenario(self._lot.below(10_000), pods=3, nodes=2))
                body["metadata"] = self._lot.of({"name": name}, {"name": name, "labels": 1})
            case 3:
                return Asked("DELETE", f"{SCENARIOS}/{name}")
            case 4:
                patch = [{"op": "add", "path": "/spec/operations/-", "value": self._value()}]
                return Asked("PATCH", f"{SCENARIOS}/{name}", patch, "application/json-patch+json")
            case 7:  # more often to go on: what stands still ends only when it is deleted
                verb = self._lot.of("hold", "release", "release")
                return Asked("POST", f"/simulator/v1/scenarios/{name}/{verb}", self._value())
            case _:
                page = self._lot.of(*SCENARIO_PAGES)
                return Asked("GET", f"/simulator/v1/scenarios/{name}/{page}")
        return Asked("POST", SCENARIOS, body)

    def _traffic_run(self) -> Asked:
        body: dict[str, Any] = {
            "run_for": self._lot.of(5, 20, 60) * SECOND,
            "initial_number_of_replicas": self._lot.of(0, 1, 3),
            "launch_delay": self._lot.of(0, 1, 5) * SECOND,
            "tick_interval": self._lot.of(1, 2, 15) * SECOND,
            "request_timeout_nanos": self._lot.of(0, 1, 10) * SECOND,
            "request_cpu_time_millis": self._lot.of(0, 10, 500),
            "request_io_time_millis": self._lot.of(0, 10),
            "traffic_pattern": self._lot.of("golang_rand_uniform", "step", "ramp", "nope"),
            "uniform_config": {"number_of_requests": self._lot.of(0, 5, 200)},
            "step_config": {"rps": self._lot.of(0, 5, 20), "step_after": SECOND},
            "ramp_config": {"delta_v": self._lot.of(0, 1), "max_rps": self._lot.of(1, 10)},
        }
        return Asked("POST", "/run", body if self._lot.happens(40) else self._spoilt(body))

    def _simulator(self) -> Asked:
        kind = self._lot.of(*self._kinds)
        items = [self._confusion.confused(self._confusion.sample(kind.gvk, "a"))]
        return self._lot.of(
            Asked("POST", "/simulator/v1/import", {"kind": "List", "items": items}),
            Asked("POST", "/simulator/v1/import", self._value()),
            Asked("POST", "/simulator/v1/advance", {"duration": self._lot.of("1s", "x", 5)}),
            Asked("POST", "/simulator/v1/park", self._value()),
            Asked("POST", "/simulator/v1/park", {"name": "nobody"}),
            Asked("POST", "/simulator/v1/schedulerconfiguration", self._configuration()),
            Asked("PUT", "/simulator/v1/reset", self._value()),
            Asked("DELETE", f"/simulator/v1/runs/{self._lot.of(*RUN_IDS)}"),
            *[Asked("GET", self._run_page()) for _ in range(3)],
            Asked("POST", f"/runs/{self._lot.of('1', '7')}/repeat", self._value()),
            Asked("POST", "/simulator/v1/convert", self._convertible()),
        )

    def _convertible(self) -> Any:
        arrivals = {"pattern": "step", "step": {"rps": self._lot.of(0, 5, "x")}}
        spec = {"duration": self._lot.of("10s", "x"), "traffic": arrivals}
        spoilt = self._spoilt(spec) if self._lot.happens(50) else spec
        head = {"apiVersion": fields.API_VERSION, "kind": fields.KIND}
        made = {**head, "metadata": {"name": "run"}, "spec": spoilt}
        return made if self._lot.happens(80) else self._value()

    def _run_page(self) -> str:
        return f"/simulator/v1/runs/{self._lot.of(*RUN_IDS)}/{self._lot.of(*RUN_PAGES)}"

    def _configuration(self) -> dict[str, Any]:
        profile = {"schedulerName": "default-scheduler", "plugins": {"filter": {"disabled": []}}}
        whole = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
            "percentageOfNodesToScore": 50,
        }
        return self._spoilt(whole)

    def _spoilt(self, document: dict[str, Any]) -> dict[str, Any]:
        """With one value of the wrong type, somewhere."""
        here: Any = document
        while True:
            keys = sorted(here) if isinstance(here, dict) else range(len(here))
            key = self._lot.of(*keys)
            if not isinstance(here[key], dict | list) or not here[key] or self._lot.happens(20):
                here[key] = self._value()
                return document
            here = here[key]

    def _value(self) -> Any:
        return json.loads(json.dumps(self._lot.of(*CONFUSED)))

    def _name(self) -> str:
        return quote(self._lot.of("a", "a", "b", *NAMES), safe="%.")

    def _collection(self, kind: ResourceType) -> str:
        version = kind.api_version
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if not kind.namespaced:
            return f"{root}/{kind.plural}"
        space = self._lot.of("default", "default", "default", "nowhere")
        return f"{root}/namespaces/{space}/{kind.plural}"

    def _query(self) -> str:
        if self._lot.happens(60):
            return ""
        names = [self._lot.of(*PARAMETERS) for _ in range(1 + self._lot.below(3))]
        return "?" + "&".join(f"{it}={quote(self._lot.of(*PARAMETERS[it]))}" for it in names)

    def _headers(self) -> dict[str, str] | None:
        if self._lot.happens(70):
            return None
        return self._lot.of(
            {"Accept": self._lot.of(*ACCEPTS)},
            {"Impersonate-User": self._lot.of("alice", "")},
            {"Authorization": "Bearer x"},
            {"Accept-Encoding": self._lot.of("gzip", "nope")},
            {"Content-Encoding": "gzip"},
            {"Origin": "http://elsewhere.example"},
        )


class Told(logging.Handler):
    """What the server's log says."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


class Findings:
    """What was answered."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.internal: list[tuple[Asked, str]] = []
        self.in_words: Counter[str] = Counter()
        """What other 500s said: words of kube-apiserver, say."""
        self.slowest: list[tuple[float, str]] = []
        self.lines: list[str] = []
        self.is_alive = False
        self.is_kept = True

    def note(self, asked: Asked, reply: Reply, took_s: float) -> None:
        self.statuses[reply.status] += 1
        if INTERNAL in reply.body:
            self.internal.append((asked, reply.body.decode(errors="replace")[:400]))
        elif reply.status == 500 and reply.body:
            self.in_words[reply.body.decode(errors="replace")[80:200]] += 1
        self.slowest = sorted([*self.slowest, (took_s, str(asked)[:160])], reverse=True)[:SLOWEST]

    @property
    def is_fine(self) -> bool:
        return self.is_alive and self.is_kept and not self.internal and not self.lines


def fuzz(requests: int, seed: int, progress: Callable[[int], None] = lambda _: None) -> Findings:
    """Ask so many requests of a server of its own."""
    fuzzer, findings, told = Fuzzer(seed), Findings(), Told()
    logging.getLogger().addHandler(told)
    folder = TemporaryDirectory()
    server = server_in(Path(folder.name)) if seed % 2 == 0 else Server(port=0)
    server.start()
    http = Http(server.host, server.port)
    try:
        for number in range(requests):
            if number % RESET_EVERY == 0:
                clean_up(http)
                progress(number)
            http = ask(server, http, fuzzer.next(), findings)
        clean_up(http)
        findings.is_alive = any(takes_writes(http, number) for number in range(TRIES))
    finally:
        http.close()
        server.stop()
        if seed % 2 == 0:
            with closing(open_store(Path(folder.name) / WORLD)) as opened:
                findings.is_kept = contents(opened) == contents(server.cluster.store)
        folder.cleanup()
        logging.getLogger().removeHandler(told)
    findings.lines = told.lines
    return findings


def server_in(folder: Path) -> Server:
    """One that keeps its world and its runs."""
    options = ClusterOptions(events=True, furnished=True)
    world = ClusterWorld(options, clock=WallClock(), store=open_store(folder / WORLD))
    return Server(world, port=0, traffic=TrafficPages(folder))


def contents(store: Store) -> list[bytes]:
    return sorted(bytes(record.data) for record in store.all_records())


def takes_writes(http: Http, number: int) -> bool:
    """Whether everybody may write; a scenario that was deleted needs a moment to give it back."""
    return http.post(CONFIG_MAPS, config_map(f"written-{number}")).status == 201


def ask(server: Server, http: Http, asked: Asked, findings: Findings) -> Http:
    """Ask, and note the answer; the connection for the next one."""
    method, path, body, content_type, headers = asked
    begun = CLOCK.now()
    try:
        reply = http.request(method, path, body, content_type=content_type, headers=headers)
    except (HTTPException, ConnectionError, UnicodeError):  # it hung up, or was never asked
        http.close()
        return Http(server.host, server.port)
    findings.note(asked, reply, (CLOCK.now() - begun) / SECOND)
    return http


def clean_up(http: Http) -> None:
    """An empty world, so that what was made before does not get in the way of what comes."""
    http.request("DELETE", SCENARIOS)
    http.request("PUT", "/simulator/v1/reset")


def main() -> int:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def progress(number: int) -> None:
        print(f"\r{number:,} of {requests:,}", end="", file=sys.stderr, flush=True)

    findings = fuzz(requests, seed, progress)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print("\nanswers:", dict(sorted(findings.statuses.items())), f"grown by {grown // 1024} MB")
    for words, count in findings.in_words.most_common():
        print(f"{count} times 500 in words: {words}")
    for took_s, text in findings.slowest:
        print(f"{took_s:8.3f} s  {text}")
    for asked, body in findings.internal:
        print("INTERNAL", asked, body)
    for line in findings.lines:
        print("LOG", line)
    if not findings.is_kept:
        print("THE WORLD ON DISK IS NOT THE ONE THAT WAS SERVED")
    print("the server serves" if findings.is_alive else "THE SERVER NO LONGER SERVES")
    return 0 if findings.is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
