"""An operator in a process of its own: a ConfigMap labelled ``fan-out: N`` gets N children.

Usage: fan_out.py SERVER [--park] [--die-after N] [--hang-after N] [--spin-after N] [--label NAME].
Each loop handles one ConfigMap; with ``--park`` it says when a loop is over.
"""

import argparse
import contextlib
import sys
import threading
from pathlib import Path

from kubescene.actors import Actor
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.http import HttpClient
from kubescene.errors import AlreadyExistsError

sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))
from kubescene_scenario import check_scenario_step_phase

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
NAME = "fan-out"


class FanOut:
    """Makes the children that are missing."""

    def __init__(self, server: str, options: argparse.Namespace) -> None:
        self._server = server
        self._options = options
        self._queue: dict[str, int] = {}
        self._children: set[str] = set()
        self._written = 0
        self._client = HttpClient(server, Actor(NAME))
        self._client.watch(CONFIG_MAP, self._heard)

    def _heard(self, change: Change) -> None:
        name, wanted = change.record.name, change.record.labels.get(self._options.label)
        if change.type is ChangeType.DELETED:
            self._children.discard(name)
        elif wanted is None:
            self._children.add(name)
        else:
            self._queue[name] = int(wanted)

    def run(self) -> None:
        if self._options.park:
            # Before the first loop: from now on it is known to park.
            check_scenario_step_phase(NAME, self._server)
        while True:
            self._client.pump(0.5)
            while self._queue:
                name = next(iter(self._queue))
                self._reconcile(name, self._queue.pop(name))
                if self._options.park:
                    check_scenario_step_phase(NAME, self._server)

    def _reconcile(self, parent: str, wanted: int) -> None:
        for index in range(wanted):
            child = f"{parent}-{index}"
            if child not in self._children:
                self._create(child)

    def _create(self, name: str) -> None:
        if self._options.die_after == self._written:
            sys.exit("fan-out: nothing makes sense any more")
        if self._options.hang_after == self._written:
            threading.Event().wait()
        while self._options.spin_after == self._written:
            pass
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        with contextlib.suppress(AlreadyExistsError):
            self._client.create(body)
        self._children.add(name)
        self._written += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--park", action="store_true")
    parser.add_argument("--label", default=NAME)
    parser.add_argument("--die-after", type=int, default=-1)
    parser.add_argument("--hang-after", type=int, default=-1)
    parser.add_argument("--spin-after", type=int, default=-1)
    options = parser.parse_args()
    FanOut(options.server, options).run()


if __name__ == "__main__":
    main()
