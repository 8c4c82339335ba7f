"""An autoscaler that is a command: it runs in another process and may be written in any language.

One process serves any number of runs, at once and one after the other. It is started when the
autoscaler is made, so that it can say what it is. When it has died, or did not answer in time, the
runs that were with it fail; the next run begins with a new process. Within a run nothing is ever
started again: what the old process knew is gone.

The command is for whoever started the program to give. It never comes from a file or a request.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple, NoReturn, TypeVar

from kubescene.autoscalers.interfaces import (
    HPA_TYPES,
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.process.connections import Connection
from kubescene.autoscalers.process.messages import (
    PLUGIN,
    capabilities_of,
    event_message,
    horizontal_of,
    stat_message,
    vertical_of,
)
from kubescene.errors import ConfigurationError

OF_2019 = frozenset({Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION})
"""What a plugin can do that does not know the question: there was nothing else to do."""

A = TypeVar("A")
_Horizontal = PLUGIN["HorizontalRecommendation"].request
_Vertical = PLUGIN["VerticalRecommendation"].request
_Scale = PLUGIN["Scale"].request


class Nature(NamedTuple):
    """What a plugin says that it is. ``legacy``: it speaks the protocol of 2019."""

    types: tuple[str, ...]
    capabilities: frozenset[Capability]
    legacy: bool


class ProcessAutoscaler(AutoscalerPlugin):
    """The autoscaler behind a command, such as ``ProcessAutoscaler("python my_autoscaler.py")``.

    ``types`` overrules the types of objects that it says it takes; one of 2019 says nothing, and
    gets what is meant for an HPA. A process has ``start_s`` seconds until it can be called, and
    ``call_s`` for every answer. Raises `AutoscalerError` with the command and its last words.
    """

    def __init__(
        self,
        command: str,
        *,
        types: Sequence[str] = (),
        start_s: float = 60.0,
        call_s: float = 30.0,
    ) -> None:
        self.command = command
        self._given = tuple(types)
        self._start_s = start_s
        self._call_s = call_s
        self._lock = Lock()
        self._runs: dict[str, Connection] = {}
        self._current: Connection | None = None
        connection, self._nature = self._started()
        self._current = connection
        self.types = self._nature.types
        self.capabilities = self._nature.capabilities

    def event(self, request: EventRequest) -> None:
        told = f"Event {request.type.name} {type(request.object).__name__}"
        about_itself = isinstance(request.object, Autoscaler)
        if about_itself and request.type is EventType.CREATE:
            self._begin(request.partition)
        connection = self._of(request.partition)
        try:
            connection.call("Event", event_message(request), told)
        finally:
            if about_itself and request.type is EventType.DELETE:
                self._over(request.partition)

    def stat(self, request: StatRequest) -> None:
        self._of(request.partition).call("Stat", stat_message(request), "Stat")

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        connection = self._of(request.partition)
        name = "HorizontalRecommendation"
        if self._nature.legacy:
            asked = _Scale(partition=request.partition, time=request.time_nanos)
            answer = HorizontalRecommendationResponse(connection.call("Scale", asked, "Scale").rec)
        else:
            asked = _Horizontal(partition=request.partition, time_nanos=request.time_nanos)
            answer = read(connection, horizontal_of, connection.call(name, asked, name), name)
        if answer.rec < 0:
            raise connection.child.failed(f"{answer.rec} is no number of pods", name)
        return answer

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        connection = self._of(request.partition)
        name = "VerticalRecommendation"
        asked = _Vertical(partition=request.partition, time_nanos=request.time_nanos)
        answer = read(connection, vertical_of, connection.call(name, asked, name), name)
        for each in answer.rec:
            least = min(each.lower_bound, each.upper_bound, each.target)
            if least < 0:
                raise connection.child.failed(f"{least} is no amount of {each.resource_name}", name)
        return answer

    def close(self) -> None:
        """End the process. A run that begins later starts a new one."""
        with self._lock:
            connections = {id(each): each for each in (*self._runs.values(), self._current) if each}
            self._current = None
        for each in connections.values():
            each.end()

    @property
    def connection(self) -> Connection:
        """The process that the next run begins with; started if there is none that is well."""
        with self._lock:
            if self._current is None or not self._current.is_well():
                self._retire()
                self._current, nature = self._started()
                self._check_same(nature)
            return self._current

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise ConfigurationError(
            f"a run or a world with the autoscaler {self.command!r} cannot be copied: it is "
            "another process"
        )

    def _begin(self, partition: str) -> None:
        connection = self.connection
        with self._lock:
            self._runs.setdefault(partition, connection)

    def _of(self, partition: str) -> Connection:
        # Who wants no events is not told that a run begins: its first question says so.
        if Capability.EVENT not in self.capabilities and partition not in self._runs:
            self._begin(partition)
        try:
            return self._runs[partition]
        except KeyError:
            raise ConfigurationError(
                f"no autoscaler was created in partition {partition!r}"
            ) from None

    def _over(self, partition: str) -> None:
        with self._lock:
            connection = self._runs.pop(partition, None)
            used = connection is self._current or connection in self._runs.values()
        if connection is not None and not used:
            connection.end()

    def _retire(self) -> None:
        """Let the current process go: at once, or when its last run is over."""
        gone, self._current = self._current, None
        if gone is not None and gone not in self._runs.values():
            gone.end()

    def _started(self) -> tuple[Connection, Nature]:
        connection = Connection(self.command, start_s=self._start_s, call_s=self._call_s)
        try:
            return connection, nature_of(connection, self._given)
        except BaseException:
            connection.end()
            raise

    def _check_same(self, nature: Nature) -> None:
        if nature != self._nature:
            raise ConfigurationError(
                f"autoscaler {self.command!r} has become another one: it takes "
                f"{', '.join(nature.types)} now"
            )


def nature_of(connection: Connection, given: tuple[str, ...]) -> Nature:
    able = connection.ask("GetCapabilities")
    kind = connection.ask("PluginType")
    if able is None:
        return Nature(given or HPA_TYPES, OF_2019, legacy=True)
    types = given or ((tuple(kind.types) or (kind.rec,)) if kind is not None else ())
    if not all(types) or not types:
        raise connection.child.failed("it names no type of objects that it takes", "PluginType")
    capabilities = capabilities_of(able.rec)
    if not capabilities:
        raise connection.child.failed("it has no capability", "GetCapabilities")
    return Nature(types, capabilities, legacy=False)


def read(connection: Connection, reader: Callable[[Any], A], got: Any, name: str) -> A:
    """An answer as a value; what is in it may still be nonsense."""
    try:
        return reader(got)
    except ValueError as error:
        raise connection.child.failed(f"its answer cannot be read: {error}", name) from error
