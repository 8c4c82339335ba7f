"""Isolated mode: one pod after the other, each with one cycle of its own.

Each cycle is judged by itself: after one that differs, the world is made anew and brought to where
the recording stands, so that no difference hides behind an earlier one or causes a later one.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.errors import ApiError
from kubescene.scheduler.options import SchedulerOptions
from kubescene.testing.goldens.comparing import Aspect, Comparison, Tally
from kubescene.testing.goldens.effects import Effects
from kubescene.testing.goldens.matrices import RECORDED, Matrix
from kubescene.testing.goldens.outcomes import Outcome
from kubescene.testing.goldens.recordings import Golden
from kubescene.testing.goldens.worlds import Attempt, World
from kubescene.types import JsonObject

NO_CYCLE = ("gated", "ignored", "bypassed")


class IsolatedReplay:
    """One case, pod by pod."""

    def __init__(self, golden: Golden, options: SchedulerOptions, tally: Tally) -> None:
        self._golden = golden
        self._options = options
        self._tally = tally
        self._comparison = Comparison(golden.id, tally)
        self._world = World(golden.case, options)

    @property
    def differences(self) -> int:
        return self._comparison.differences

    def run(self) -> None:
        self._compare_order(self._golden.result.get("nodeOrder") or [])
        for number, want in enumerate(self._golden.result["attempts"]):
            self._comparison.at = want["pod"] + (" (retry)" if want.get("retry") else "")
            self._tally.attempts += 1
            if not want.get("retry"):
                self._world.create(self._pending(want["pod"]))
            before = self._comparison.differences
            if self._attempt(want):
                return
            if self._comparison.differences > before and not self._catch_up(number + 1):
                return

    def _attempt(self, want: Mapping[str, Any]) -> bool:
        """Compare one attempt; True if the case ends here."""
        if "nodeOrder" in want:
            self._compare_order(want["nodeOrder"])
        if any(want.get(each) for each in NO_CYCLE):
            self._compare_waiting(want)
            return False
        entry = self._world.entry(want["pod"])
        # The victims of a retry are gone: who was kept out while they went is asked anew (PR-14).
        if entry is None or (entry.gated_by and not want.get("retry")):
            self._comparison.failed(Aspect.NO_CYCLE, "gets no cycle", "gets a cycle")
            return False
        try:
            return self._compare(want)
        except Exception as error:
            self._comparison.failed(Aspect.REPLAYED, f"{type(error).__name__}: {error}", "")
            return False

    def _compare(self, want: Mapping[str, Any]) -> bool:
        entry = self._world.entry(want["pod"])
        assert entry is not None
        scheduler = self._world.scheduler
        cycle = scheduler.cycle_of(entry.pod.scheduler_name)
        if RECORDED & want.keys():
            Matrix(cycle, scheduler.nominations, entry.pod, self._comparison).compare(want)
        self._world.extenders.expect(want["outcome"].get("extenders") or ())
        made = self._world.attempt(want["pod"])
        ours = made[0] if len(made) == 1 else None
        if want["outcome"].get("skipped") and not made:
            return False  # It is being deleted, and left alone.
        if not isinstance(ours, Attempt):
            self._comparison.failed(Aspect.CYCLES, [each.pod for each in made], [want["pod"]])
            return False
        theirs = want["outcome"]
        if _is_tie(ours, theirs):
            return True
        Outcome(ours, self._comparison).compare(theirs, _scored(want))
        if "bindError" in theirs:
            Effects(self._world).hold(want["pod"], theirs)
        return False

    def _compare_order(self, theirs: list[str]) -> None:
        self._world.scheduler.nodes.refresh()
        ours = list(self._world.scheduler.nodes.names)
        self._comparison.equal(Aspect.NODE_ORDER, ours, theirs)

    def _compare_waiting(self, want: Mapping[str, Any]) -> None:
        """A pod that gets no cycle: who keeps it out of the queue, or where it is."""
        entry = self._world.entry(want["pod"])
        node = self._world.pod(want["pod"])["spec"].get("nodeName", "")
        ours = "ignored"
        if entry is not None:
            ours = "gated" if entry.gated_by else "attempted"
        elif node:
            ours = "bypassed"
        theirs = next(each for each in NO_CYCLE if want.get(each))
        self._comparison.equal(Aspect.NO_CYCLE, ours, theirs)

    def _pending(self, key: str) -> JsonObject:
        return next(pod for pod in self._golden.case["pending"] if _key(pod) == key)

    def _catch_up(self, attempts: int) -> bool:
        """Make a world in which all went as recorded; False if that cannot be."""
        world = self._world = World(self._golden.case, self._options)
        effects = Effects(world)
        for want in self._golden.result["attempts"][:attempts]:
            if not want.get("retry"):
                world.create(self._pending(want["pod"]))
            try:
                effects.apply(want["pod"], want.get("outcome") or {})
            except ApiError as error:
                text = f"the recorded outcome cannot be applied: {error}"
                self._comparison.failed(Aspect.REPLAYED, text, want["outcome"])
                return False
        return True


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _scored(want: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the real cycle scored: as it is said, or else all feasible nodes if there are some."""
    outcome = want["outcome"]
    if "scored" in outcome:
        return dict(outcome["scored"])
    if "node" in outcome and outcome["feasible"] > 1 and "totals" in want:
        return {"nodes": want["feasible"], "totals": want["totals"]}
    return {"nodes": [], "totals": []}


def _is_tie(ours: Attempt, theirs: Mapping[str, Any]) -> bool:
    """Whether chance decided, and has it otherwise with us."""
    if ours.node and ours.node != theirs.get("node"):
        return ours.node in (theirs.get("ties") or ())
    nominated = ours.decision.nominated
    if nominated and nominated != theirs.get("nominated"):
        return nominated in ((theirs.get("preemption") or {}).get("ties") or ())
    return False
