"""Phase 1: what the author does in a major step, one object after the other."""

from collections.abc import Sequence
from itertools import islice

from kubescene.actors import ENGINE
from kubescene.api.options import OperationOrigin
from kubescene.scenario.engine.outstanding import Outstanding, takes_time
from kubescene.scenario.engine.play import Play
from kubescene.scenario.operations import OperationRunner
from kubescene.scenario.operations.creation import BUNCH
from kubescene.scenario.operations.undertakings import State
from kubescene.scenario.spec import Operation, OperationKind

NOTED_ONLY = (OperationKind.DONE, OperationKind.ADVANCE)
"""Operations that write nothing."""


class Operating:
    """Carries out operations in the order of the list."""

    def __init__(self, play: Play, outstanding: Outstanding) -> None:
        self._world = play.world
        self._outstanding = outstanding
        self._recorder = play.recorder
        self._runner = OperationRunner(play.world.client(ENGINE), play.world.scheme)
        self._then = play.tasks.then

    def operate(self, operations: Sequence[Operation], index: int = 0, instance: int = 0) -> None:
        """Carry out one operation, of one with several objects one of them or a bunch."""
        if index == len(operations):
            return
        if not instance and (created := self._create_alike(operations, index)):
            self._then(self.operate, operations, index + created, 0)
            return
        operation, following, instances = operations[index], instance + 1, 1
        if operation.kind in NOTED_ONLY:
            self._note(operation)
        elif takes_time(operation):
            self._then(self.operate, operations, index + 1, 0)
            self._outstanding.begin(operation)
            self._go_on()
            return
        else:
            instances = self._runner.run(operation, instance)
            if not instances:
                told = f"the selector matches no {operation.body['typeMeta']['kind']}"
                self._outstanding.tell(operation, State.WARNING, told)
        if following < instances:
            following += self._create_more(operation, following)
        if following < instances:
            self._then(self.operate, operations, index, following)
        else:
            self._then(self.operate, operations, index + 1, 0)

    def _go_on(self) -> None:
        """What was begun goes on, one moment after the other, as far as it can at once."""
        if self._outstanding.is_halfway:
            self._then(self._go_on)
            self._outstanding.go_on()

    def _create_alike(self, operations: Sequence[Operation], index: int) -> int:
        """Create the pods of operations together that say nothing else; of how many of them."""
        create, shared = self._world.creates_alike, operations[index].shared_body
        if create is None or shared is None or not shared.is_of_pods:
            return 0
        return self._runner.run_alike(islice(operations, index, index + BUNCH), create)

    def _create_more(self, operation: Operation, first: int) -> int:
        """Create the next instances of a counted create together; how many of them."""
        create = self._world.creates_alike
        return 0 if create is None else self._runner.run_more(operation, first, create)

    def _note(self, operation: Operation) -> None:
        told = self._recorder
        tell = told.done if operation.kind is OperationKind.DONE else told.advanced
        tell(OperationOrigin.of(operation.id, operation.body))
