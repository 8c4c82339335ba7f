"""Records cases of workload controllers with the real kube-controller-manager.

``python tests/golden/recorder.py CASES.jsonl > RECORDED.jsonl`` plays cases (``objects`` and
``steps`` with what is done, see README.md) with kube-apiserver, etcd and kube-controller-manager,
and writes what is seen after each step. ``--random FAMILY:SEED...`` makes cases up, and
``--compare`` plays each in a world of ours, too, and tells what differs.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.random_cases import random_case
from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient, read_kubeconfig
from kubescene.clock import SECOND, WallClock, format_time
from kubescene.errors import AlreadyExistsError
from kubescene.testing.goldens import Golden, GoldenTally, replay
from kubescene.testing.goldens.comparisons import GoldenDifference
from kubescene.testing.goldens.workload_views import KINDS
from kubescene.testing.goldens.workloads import CasePlayer, least_permuted
from kubescene.types import JsonObject
from real_programs import require_program
from remote.api_servers import RealServer

FOLLOWED = (*KINDS, "ConfigMap", "Event", "Namespace", "Secret", "Service", "ServiceAccount")
QUIET = {"job": 25 * SECOND // 10, "cronjob": 15 * SECOND // 10}
USUALLY_QUIET = SECOND
PATIENCE = 60 * SECOND
RECORDING_USER = Actor("recorder")
CONTROLLERS_OFF = (
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "node-ipam-controller",
    "horizontal-pod-autoscaler-controller",
    "service-lb-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
)
ONE_AT_A_TIME = (
    *("deployment", "replicaset", "statefulset", "daemonset", "job", "cron-job", "rc"),
    *("endpoint", "service-endpoint", "gc", "resource-quota"),
)


@contextmanager
def real_controllers(folder: Path) -> Iterator[RealServer]:
    """An API server, and the real controllers as the recordings have them."""
    manager = require_program("kube-controller-manager")
    server = RealServer(folder, "--disable-admission-plugins=TaintNodesByCondition")
    try:
        with (folder / "manager.log").open("w") as log:
            program = subprocess.Popen(
                [
                    str(manager),
                    f"--kubeconfig={server.kubeconfig}",
                    f"--controllers=*,{','.join(f'-{each}' for each in CONTROLLERS_OFF)}",
                    f"--service-account-private-key-file={folder / 'server.key'}",
                    f"--root-ca-file={folder / 'ca.crt'}",
                    "--leader-elect=false",
                    "--secure-port=0",
                    "--kube-api-qps=2000",
                    "--kube-api-burst=2000",
                    *(f"--concurrent-{each}-syncs=1" for each in ONE_AT_A_TIME),
                ],
                stdout=log,
                stderr=log,
            )
        try:
            yield server
        finally:
            program.terminate()
            program.wait()
    finally:
        server.stop()


class RealCaseWorld:
    """A `CaseWorld` of a real API server: what is there is what its watches have told."""

    def __init__(self, client: HttpClient, namespace: str, quiet: int) -> None:
        self.namespace = namespace
        self._client = client
        self._quiet = quiet
        self._clock = WallClock()
        self._changed_at = 0
        self._known: dict[str, dict[str, JsonObject]] = {kind: {} for kind in FOLLOWED}
        self._scheme = builtin_scheme()
        for kind in FOLLOWED:
            client.watch(self._gvk(kind), partial(self._note, kind))

    def _gvk(self, kind: str) -> GroupVersionKind:
        # Events are read as the API group of v1 has them.
        return (
            GroupVersionKind("", "v1", kind) if kind == "Event" else self._scheme.resolve(kind).gvk
        )

    def _note(self, kind: str, change: Change) -> None:
        own = change.record.name if kind == "Namespace" else change.record.namespace
        if own != self.namespace:
            return
        self._changed_at = self._clock.now()
        uid = change.object["metadata"]["uid"]
        if change.type is ChangeType.DELETED:
            self._known[kind].pop(uid, None)
        else:
            self._known[kind][uid] = change.object

    def now(self) -> int:
        return self._clock.now()

    def rest(self, until: int) -> None:
        del until
        begin = self._changed_at = self._clock.now()
        while (now := self._clock.now()) < self._changed_at + self._quiet:
            assert now < begin + PATIENCE, "controllers do not come to rest"
            self._client.pump(0.05)

    def wait(self, until: int) -> None:
        """Until this instant; whoever does not know it yet waits for rest."""
        if self._clock.now() >= until:
            self.rest(until)
        while self._clock.now() < until:
            self._client.pump(0.05)
        self._client.pump(0.0)

    def objects(self, kind: str) -> Iterator[JsonObject]:
        yield from [*self._known[kind].values()]

    def get(self, kind: str, name: str) -> JsonObject:
        return self._client.get(self._ref(kind, name))

    def create(self, obj: JsonObject) -> None:
        try:
            self._client.create(obj)
        except AlreadyExistsError:
            # Nodes are shared by all cases, and the account may have come this very moment.
            if obj["kind"] not in ("Node", "ServiceAccount", "ConfigMap"):
                raise

    def patch(
        self, kind: str, name: str, body: Any, patch_type: str, subresource: str = ""
    ) -> None:
        how = PatchType[patch_type.upper()]
        self._client.patch(self._ref(kind, name), body, patch_type=how, subresource=subresource)

    def delete(self, kind: str, name: str, options: DeleteOptions) -> None:
        self._client.delete(self._ref(kind, name), options=options)

    def evict(self, pod: str) -> None:
        self._client.evict(self._ref("Pod", pod))

    def bind(self, pod: str, node: str) -> None:
        self._client.bind(ObjectRef(POD, pod, self.namespace), node)

    def _ref(self, kind: str, name: str) -> ObjectRef:
        found = self._scheme.resolve(kind)
        return ObjectRef(found.gvk, name, self.namespace if found.namespaced else "")


def recorded(case: JsonObject, server: RealServer, attempt: int = 0) -> JsonObject:
    """The case with what is seen after each of its steps in a namespace of its own."""
    client = HttpClient(read_kubeconfig(server.kubeconfig), RECORDING_USER)
    world = RealCaseWorld(
        client, f"{case['id']}-{attempt}", QUIET.get(case["family"], USUALLY_QUIET)
    )
    try:
        begin = world.now() // SECOND * SECOND
        played = {**deepcopy(case), "now": format_time(begin)}
        steps = []
        player = CasePlayer(played, world)
        for step, seen in zip(played["steps"], player.play(), strict=True):
            # The last instant of its rest: what is due later is the next step's.
            seconds = round((world.now() - begin) / SECOND, 1)
            steps.append({"do": step["do"], "see": seen, "t": seconds})
        sees = least_permuted([each["see"] for each in steps], played.get("alike") or [])
        for step, see in zip(steps, sees, strict=True):
            step["see"] = refusals_sorted(see)
        return {**played, "steps": steps}
    finally:
        client.close()


REFUSALS = re.compile(r"(.* is forbidden: )\[(.*)\]", re.DOTALL)
NEXT_REFUSAL = re.compile(r", (?=minimum |maximum |\S+ max limit )")


def refusals_sorted(see: JsonObject) -> JsonObject:
    """What is seen with several refusals of one message in order: the real one is chance."""
    for answer in see.get("answers") or ():
        if found := REFUSALS.fullmatch(answer.get("message") or ""):
            told = ", ".join(sorted(NEXT_REFUSAL.split(found[2])))
            answer["message"] = f"{found[1]}[{told}]"
    return see


def differences(case: JsonObject) -> Sequence[GoldenDifference]:
    """What a world of ours made otherwise of a recorded case."""
    tally = GoldenTally(case["family"])
    replay(Golden(case, {}), tally)
    return tally.first


def sees(case: JsonObject) -> list[JsonObject]:
    return [each["see"] for each in case["steps"]]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="cases, a line each")
    parser.add_argument("--random", nargs="*", default=[], metavar="FAMILY:SEED")
    parser.add_argument("--compare", action="store_true", help="tell what is otherwise with us")
    parser.add_argument("--parallel", type=int, default=4, help="so many cases at a time")
    given = parser.parse_args(arguments)
    cases = [json.loads(line) for file in given.files for line in file.read_text().splitlines()]
    for each in given.random:
        family, _, seed = each.partition(":")
        cases.append(random_case(family, int(seed)))
    unequal = 0
    with (
        TemporaryDirectory() as folder,
        real_controllers(Path(folder)) as server,
        ThreadPoolExecutor(given.parallel) as threads,
    ):
        for found in threads.map(partial(recorded, server=server), cases):
            print(json.dumps(found), flush=True)
            for each in differences(found) if given.compare else ():
                unequal += 1
                print(f"{found['id']}: {each}", file=sys.stderr, flush=True)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
