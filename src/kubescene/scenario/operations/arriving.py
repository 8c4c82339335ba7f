"""``createOperation`` with ``arrivals``: objects come one after the other while time passes."""

from kubescene.api.options import OperationOrigin
from kubescene.api.text.encoding import encode
from kubescene.clock import LAST_INSTANT
from kubescene.durations import go_duration
from kubescene.errors import ApiError
from kubescene.scenario.operations.creation import BUNCH, IndexedTemplate, told
from kubescene.scenario.operations.evictions import counted
from kubescene.scenario.operations.runner import refusal
from kubescene.scenario.operations.undertakings import OperationContext, State
from kubescene.scenario.options import write_options
from kubescene.scenario.reading.arrival_plans import read_plan, with_amounts
from kubescene.scenario.spec import Operation


class ArrivingObjects:
    """An `Undertaking`. An object that the API refuses ends the scenario."""

    def __init__(self, operation: Operation, setting: OperationContext) -> None:
        self._operation = operation
        self._setting = setting
        self._plan = read_plan(operation.body)
        self._template = IndexedTemplate(operation.body["object"])
        self._options = write_options(operation.body.get("createOptions"))
        left_out = ("count", "arrivals")
        self._asked = {k: v for k, v in operation.body.items() if k not in left_out}
        self._begin = setting.clock.now()
        self._came = 0
        self._next = self._after(0)
        self.is_over = self.is_halfway = False

    @property
    def due(self) -> int | None:
        instant = LAST_INSTANT + 1 if self._next is None else self._begin + self._next
        return instant if instant <= LAST_INSTANT else None

    def go_on(self) -> None:
        now, last = self._setting.clock.now(), self._came + BUNCH
        while (self._next is not None and self._begin + self._next <= now) and self._came < last:
            self._create(self._came)
            self._came += 1
            self._next = self._after(self._next)
        self.is_halfway = self._next is not None and self._begin + self._next <= now
        if self._next is None and not self.is_over:
            self.is_over = True
            self._tell(State.COMPLETED, f"{counted(self._came, 'object')} came")

    def tell_unfinished(self) -> None:
        if self._next is not None:
            wait = go_duration(self._begin + self._next - self._setting.clock.now())
            came = counted(self._came, "object")
            self._tell(State.UNFINISHED, f"{came} came; the next one would come in {wait}")

    def _after(self, before: int) -> int | None:
        return self._plan.next(self._came, before, self._setting.streams, self._operation.id)

    def _create(self, index: int) -> None:
        operation, setting = self._operation, self._setting
        amounts = self._plan.amounts_of(index, setting.streams, operation.id)
        obj = with_amounts(self._template.instance(index), amounts)
        origin = OperationOrigin(f"{operation.id}[{index}]", encode({**self._asked, "object": obj}))
        try:
            setting.client.create(obj, options=told(self._options, origin))
        except ApiError as error:
            raise refusal(operation, error) from error

    def _tell(self, state: State, message: str) -> None:
        self._setting.tell(self._operation, state, message)
