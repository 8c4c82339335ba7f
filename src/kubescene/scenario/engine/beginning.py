"""How a scenario begins: read and examined, the world emptied, everybody called."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from kubescene.actors import ENGINE
from kubescene.api.kinds import NODE, POD
from kubescene.api.text.encoding import encode
from kubescene.client import Reader
from kubescene.scenario.engine.play import Play
from kubescene.scenario.outside import OutsideKind
from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.spec import ScenarioSpec
from kubescene.scenario.world import Stage
from kubescene.timeline import NotSimulated
from kubescene.timeline.object_facts import state_of
from kubescene.types import JsonObject

Examine: TypeAlias = Callable[[JsonObject, ScenarioSpec], Sequence[str]]
Furnish: TypeAlias = Callable[[], Sequence[str]]
"""Puts into the empty world what is there before the scenario begins; returns warnings."""
CLEARED_AT_ONCE = 500
"""Objects: about ten milliseconds."""

KINDS = (NODE, POD)


class Beginning:
    """Comes before the first major step."""

    def __init__(self, play: Play, examine: Examine | None, furnish: Furnish | None) -> None:
        self._play = play
        self._then = play.tasks.then
        self._examine = examine
        self._furnish = furnish

    def read(self) -> None:
        """Raises `ScenarioError` before anything is touched; else the world is got ready."""
        script, examine = self._play.script, self._examine
        script.read()
        self._play.participants.check(script.spec)
        warnings = examine(self._play.scenario.object, script.spec) if examine else ()
        self._play.participants.check_outside(script.spec)
        self._then(self._begin, tuple(warnings))
        self._then(self._clear)
        self.go_on()

    def go_on(self) -> None:
        """From now on, also after a pause, the world is the scenario's alone."""
        scenario = self._play.scenario
        self._play.world.guard(self._play.gate)
        scenario.phase = ScenarioPhase.RUNNING
        scenario.expectations = ()
        scenario.write()

    def _clear(self) -> None:
        """Take away some of what is there: a large world takes longer than others should wait."""
        if self._play.world.clear(CLEARED_AT_ONCE):
            self._then(self._clear)

    def _begin(self, warnings: tuple[str, ...]) -> None:
        world, recorder = self._play.world, self._play.recorder
        world.begin_anew()
        if self._furnish is not None:
            warnings = (*self._furnish(), *warnings)
            self._furnish = None  # it is large, and done with
        for kept in kept_objects(world.client(ENGINE)):
            recorder.kept(kept)
        self._play.participants.enter(self._play.script.spec)
        if warnings:
            recorder.record(NotSimulated, ENGINE, warnings=warnings)
        if self._play.stage is not None and self._play.participants.outside:
            self._call(self._play.stage)

    def _call(self, stage: Stage) -> None:
        outside = self._play.script.spec.outside
        bags = [each.name for each in outside if each.kind is OutsideKind.BAG]
        self._play.recorder.tell_net_of(bags)
        self._then(self._gather, stage)

    def _gather(self, stage: Stage) -> None:
        """Nothing begins before all programs outside are there and know what exists."""
        if not stage.is_gathered():
            self._play.tasks.waits = True
            self._then(self._gather, stage)


def kept_objects(reader: Reader) -> Iterator[dict[str, Any]]:
    """The fields of an `ObjectKept` for each node and pod, nodes first."""
    for gvk in KINDS:
        for each in reader.list(gvk):
            metadata = {**each["metadata"]}
            metadata.pop("resourceVersion", None)
            yield {
                "gvk": gvk,
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "uid": metadata.get("uid", ""),
                "subresource": "",
                "origin": None,
                "record": state_of(encode({**each, "metadata": metadata}), gvk),
            }
