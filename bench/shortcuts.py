"""What each shortcut saves: whole runs with one of them switched off, beside runs with all of them.

    python bench/shortcuts.py [KIND...]

By CPU, the least of a few rounds in turns; kinds are those of `against`. The last row is the plain
way, without any of them. What saves less than 3 % of every kind of run is to go (design note 0052).
"""

import gc
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from against import CASES, scenario_of
from kubescene.garbage import take_charge
from kubescene.runs.local import play
from kubescene.runs.requests import RunRequest
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from measuring import row

ROUNDS = 4
NODES, PODS = 300, 600
KINDS = ("plain", "full", "deployment", "mixed", "spread", "preemption")


def ways() -> dict[str, Shortcuts]:
    """All shortcuts, without one of each, without any."""
    alone = {f"without {name}": ALL.without(name) for name in ALL.names()}
    return {"all": ALL, **alone, "plain": PLAIN}


def seconds(kind: str, shortcuts: Shortcuts) -> float:
    """CPU of one whole run that writes its directory."""
    nodes = NODES // 3 if kind == "preemption" else NODES
    scenario = scenario_of(kind, nodes, PODS).build()
    with TemporaryDirectory() as folder:
        gc.collect()
        began = time.process_time()
        result = play(RunRequest(scenario=scenario, out=Path(folder) / "run", shortcuts=shortcuts))
        took = time.process_time() - began
    assert result.ok, result.message
    return took


def compare(kind: str) -> None:
    least = dict.fromkeys(ways(), float("inf"))
    for _ in range(ROUNDS):
        for name, shortcuts in ways().items():
            least[name] = min(least[name], seconds(kind, shortcuts))
    row(f"{kind}, {NODES} nodes, {PODS} pods", f"{least['all'] * 1e6 / PODS:8.1f} us a pod")
    for name, took in least.items():
        if name != "all":
            row(f"{kind}: {name}", f"{took / least['all']:8.3f} times")


def main(kinds: list[str]) -> int:
    if unknown := [each for each in kinds if each not in CASES]:
        print(f"there is no {', '.join(unknown)}; there are: {', '.join(KINDS)}")
        return 2
    take_charge()
    for kind in kinds or KINDS:
        compare(kind)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
