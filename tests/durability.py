"""Kill a server again and again while many write, and look what is left.

    python tests/durability.py ROUNDS [SEED]

Each round starts ``kubescene serve`` on the folder that the one before left behind, has several
clients create, change and delete objects, sometimes while a Scenario is played, and kills it
(SIGKILL) at any moment. Whatever a client was told is there afterwards; of its last, unanswered
request either all or nothing is. Revisions never go back, and a Scenario that was played has
failed, with what it had told by then.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

MAPS = "/api/v1/namespaces/default/configmaps"
SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
WRITERS = 4
NAMES_EACH = 12
STARTED_WITHIN_S = 120
LONGEST_ROUND_S = 0.8
UNDER_WAY = {"Running", "Paused", "Pending"}
Told = str | None
"""The text of a ConfigMap; None if there is none."""


@dataclass
class Writer:
    """Who writes objects that nobody else writes, and what they were told."""

    number: int
    chance: random.Random
    kept: dict[str, Told] = field(default_factory=dict)
    unanswered: tuple[str, Told] | None = None
    answered: int = 0

    def write(self, port: int) -> None:
        """Until the server is gone."""
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            while True:
                self._once(connection)
        except (OSError, HTTPException):
            return
        finally:
            connection.close()

    def _once(self, connection: HTTPConnection) -> None:
        name = f"map-{self.number}-{self.chance.randrange(NAMES_EACH)}"
        text = f"{self.chance.randrange(10**9)}" * self.chance.choice([1, 20, 500])
        known = self.kept.get(name)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        if known is None:
            self._send(connection, "POST", MAPS, name, text, {**body, "data": {"text": text}})
        elif self.chance.random() < 0.3:
            self._send(connection, "DELETE", f"{MAPS}/{name}", name, None, None)
        else:
            whole = {**body, "data": {"text": text}}
            self._send(connection, "PUT", f"{MAPS}/{name}", name, text, whole)

    def _send(
        self, connection: HTTPConnection, verb: str, path: str, name: str, text: Told, body: Any
    ) -> None:
        self.unanswered = name, text
        data = None if body is None else json.dumps(body)
        connection.request(verb, path, data, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        if reply.status == 403:  # a scenario has the world
            self.unanswered = None
            return
        assert reply.status in (200, 201), (verb, path, reply.status)
        self.kept[name] = text
        self.unanswered = None
        self.answered += 1


def scenario(name: str) -> dict[str, Any]:
    """One that takes longer than a round."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-$(INDEX)"},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod-$(INDEX)", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    }
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": {
            "operations": [
                {"step": 1, "createOperation": {"object": node, "count": 50}},
                {"step": 2, "createOperation": {"object": pod, "count": 4000}},
                {"step": 3, "doneOperation": {}},
            ]
        },
    }


class Served:
    """The server of one round."""

    def __init__(self, folder: Path) -> None:
        self.log = (folder / "server.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kubescene", "serve", "--port", "0", "--data-dir", str(folder)],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Serving on "), (folder / "server.log").read_text()
        self.port = int(line.rsplit(":", 1)[1])
        self._await_answers()

    def _await_answers(self) -> None:
        until = time.monotonic() + STARTED_WITHIN_S
        while True:
            try:
                self.get("/readyz")
                return
            except OSError:
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.02)

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            kind = "merge-patch+json" if verb == "PATCH" else "json"
            connection.request(verb, path, data, {"Content-Type": f"application/{kind}"})
            text = connection.getresponse().read()
            return json.loads(text) if text.startswith(b"{") else text
        finally:
            connection.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


def texts(served: Served) -> dict[str, Told]:
    """What the writers wrote, as it is there."""
    listed = {it["metadata"]["name"]: it for it in served.get(MAPS)["items"]}
    return {name: it["data"]["text"] for name, it in listed.items() if name.startswith("map-")}


def adopt(served: Served, writers: list[Writer]) -> None:
    """A scenario empties the world at its start; how far it came nobody was told."""
    found = texts(served)
    for writer in writers:
        mine = f"map-{writer.number}-"
        writer.kept = {name: text for name, text in found.items() if name.startswith(mine)}
        writer.unanswered = None


def check(served: Served, writers: list[Writer]) -> None:
    """Nothing acknowledged is lost, nothing is half there."""
    found = texts(served)
    for writer in writers:
        if writer.unanswered is not None:
            name, text = writer.unanswered
            if found.get(name) == text:
                writer.kept[name] = text
            writer.unanswered = None
        for name, text in writer.kept.items():
            said, there = shortened(text), shortened(found.get(name))
            assert found.get(name) == text, f"{name}: told {said}, found {there}"
            found.pop(name, None)
    assert not found, f"nobody wrote {sorted(found)}"


def shortened(text: Told) -> str:
    return "nothing" if text is None else f"{text[:20]} ({len(text)} digits)"


def play(rounds: int, seed: int, folder: Path) -> int:
    """So many rounds; how many requests were answered."""
    chance = random.Random(seed)
    writers = [Writer(number, random.Random(f"{seed}/{number}")) for number in range(WRITERS)]
    newest = 0
    for number in range(rounds):
        served = Served(folder)
        try:
            revision = int(served.get(MAPS)["metadata"]["resourceVersion"])
            assert revision > newest, (revision, newest)
            check_scenarios(served)
            if number and played(number - 1):
                adopt(served, writers)
            else:
                check(served, writers)
            if played(number):
                made = served.ask("POST", SCENARIOS, scenario(f"round-{number}"))
                assert made.get("kind") == "Scenario", made
                wait_begun(served, f"round-{number}")
                time.sleep(chance.random() * LONGEST_ROUND_S)
            else:
                write_for(served, writers, chance.random() * LONGEST_ROUND_S)
            newest = revision
        finally:
            served.kill()
    return sum(writer.answered for writer in writers)


def wait_begun(served: Served, name: str) -> None:
    """One that has not begun on disk when the server is killed is played by the next one.

    What is read may not be on disk yet; what was there before a write that is answered is.
    """
    place = f"{SCENARIOS}/{name}"
    while served.get(place).get("status", {}).get("phase", "") in ("", "Pending"):
        time.sleep(0.01)
    noted = served.ask("PATCH", place, {"metadata": {"annotations": {"seen": "running"}}})
    assert noted["kind"] == "Scenario", noted


def played(number: int) -> bool:
    """Whether a scenario is played in this round."""
    return number % 5 == 4


def write_for(served: Served, writers: list[Writer], seconds: float) -> None:
    threads = [threading.Thread(target=each.write, args=(served.port,)) for each in writers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    served.process.kill()
    for thread in threads:
        thread.join()


def check_scenarios(served: Served) -> None:
    """Those that were under way have failed, and have told all that was acknowledged."""
    for each in served.get(SCENARIOS)["items"]:
        status = each["status"]
        assert status["phase"] not in UNDER_WAY, status["phase"]
        if status["phase"] == "Failed":
            assert "restarted while the Scenario was running" in status["message"], status
        timeline = status["scenarioResult"]["timeline"]
        step = status.get("stepStatus", {}).get("step")
        if step is not None and step["major"] > 1:
            assert len(timeline["1"]) == 50, len(timeline["1"])
            ids = [event["id"] for event in timeline.get("2", ())]
            assert len(ids) == len(set(ids))
        served.ask("DELETE", f"{SCENARIOS}/{each['metadata']['name']}")


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 50
    seed = int(arguments[1]) if len(arguments) > 1 else 0
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        answered = play(rounds, seed, Path(folder))
        took = time.monotonic() - begun
    print(f"{rounds} rounds, {answered:,} requests answered, nothing lost; {took:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
