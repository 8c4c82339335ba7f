"""Lines of a ``timeline.jsonl``, entered into a ledger without making facts of them.

Only what the ledger needs is decoded, in one pass over the line: a run of 50,000 pods has 160 MB.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.errors import ConfigurationError
from kubescene.results.fact_entries import BINDING
from kubescene.results.ledger import Ledger
from kubescene.results.states import States, node_of
from kubescene.timeline.facts import GENERATED_ID, Outcome

NODE = ("v1", "Node")
POD = ("v1", "Pod")


class Told(msgspec.Struct, frozen=True, gc=False, tag_field="fact", tag=True, rename="camel"):
    """What a line says about any fact."""

    id: str
    step: ScenarioStep
    time: int


class ObjectCreated(Told, frozen=True):
    api_version: str
    kind: str
    name: str
    object: msgspec.Raw
    namespace: str = ""
    uid: str = ""


class ObjectPatched(ObjectCreated, frozen=True):
    subresource: str = ""


class ObjectDeleted(Told, frozen=True):
    api_version: str
    kind: str
    name: str
    namespace: str = ""
    marked: bool = False


class PodEnded(Told, frozen=True):
    namespace: str
    name: str


class PodScheduled(Told, frozen=True):
    namespace: str
    name: str
    node: str = ""
    profile: str = ""
    attempt: int = 1
    evaluated: int = 0
    feasible: int = 0
    message: str = ""
    reason: str = ""
    nominated: str = ""


class PodUnscheduled(PodScheduled, frozen=True):
    pass


class PodPreempted(Told, frozen=True):
    namespace: str
    name: str
    node: str = ""
    preempted_by: str = ""


class Done(Told, frozen=True):
    pass


class Advanced(Told, frozen=True):
    pass


class OperationsIgnored(Told, frozen=True):
    operations: tuple[str, ...]


class ExpectationsEvaluated(Told, frozen=True):
    outcomes: tuple[Outcome, ...]


class NotSimulated(Told, frozen=True):
    warnings: tuple[str, ...]


class ScenarioEnded(Told, frozen=True):
    phase: str
    message: str = ""


Known = (
    ObjectCreated
    | ObjectPatched
    | ObjectDeleted
    | PodEnded
    | PodScheduled
    | PodUnscheduled
    | PodPreempted
    | Done
    | Advanced
    | OperationsIgnored
    | ExpectationsEvaluated
    | NotSimulated
    | ScenarioEnded
)


class Other(msgspec.Struct, frozen=True, gc=False):
    """A line of a kind that results know nothing of."""

    fact: str
    step: ScenarioStep
    time: int


KINDS = frozenset(kind.__name__ for kind in Known.__args__)
_KNOWN: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)
_OTHER = msgspec.json.Decoder(Other)


def decoded(line: bytes) -> Known | Other:
    """What a line tells; raises `msgspec.DecodeError` if it is damaged."""
    try:
        return _KNOWN.decode(line)
    except msgspec.ValidationError:
        other = _OTHER.decode(line)
        if other.fact in KINDS:
            raise
        return other


def told(lines: Iterable[bytes], place: str) -> Iterator[Known | Other]:
    """What the lines after the header tell; `ConfigurationError` names a damaged one."""
    for number, line in enumerate(lines, 2):
        try:
            yield decoded(line)
        except msgspec.DecodeError as error:
            raise damaged(place, number, error) from error


def damaged(place: str, number: int, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{place}, line {number}: {error}: the file is damaged; play the scenario again"
    )


class LineEntries:
    """Keeps a ledger from lines."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._states = States()
        self._enter: dict[type, Callable[..., None]] = {
            ObjectCreated: self._created,
            ObjectPatched: self._patched,
            ObjectDeleted: self._deleted,
            PodEnded: self._pod_ended,
            PodScheduled: self._attempted,
            PodUnscheduled: self._attempted,
            PodPreempted: self._preempted,
            Done: self._asked,
            Advanced: self._asked,
        }
        self._note: dict[type, Callable[..., None]] = {
            OperationsIgnored: self._ignored,
            ExpectationsEvaluated: self._evaluated,
            NotSimulated: self._warned,
            ScenarioEnded: self._ended,
        }

    def read(self, lines: Iterable[bytes], place: str) -> Ledger:
        """The ledger of the lines after the header; `ConfigurationError` names a damaged one."""
        for number, line in enumerate(lines, 2):
            try:
                self.add(decoded(line))
            except (msgspec.DecodeError, ValueError) as error:
                raise damaged(place, number, error) from error
        self.ledger.close()
        return self.ledger

    def add(self, line: Known | Other) -> None:
        """Enter what a line tells; `ValueError` or `msgspec.DecodeError` if it makes no sense."""
        enter = self._enter.get(type(line))
        if enter is not None:
            self.ledger.at(line.step, line.time)
            enter(line)
        elif (note := self._note.get(type(line))) is not None:
            # What is told of the scenario itself happens in no step.
            self.ledger.wait_until(line.time)
            note(line)

    def _created(self, line: ObjectCreated) -> None:
        self._written(line, self.ledger.pod_created)

    def _patched(self, line: ObjectPatched) -> None:
        if line.subresource == BINDING:
            self.ledger.wrote(asked=is_asked(line))
            self.ledger.pod_bound(line.namespace, line.name, node_of(line.object))
        else:
            self._written(line, self.ledger.pod_written)

    def _written(self, line: ObjectCreated, write_pod: Callable[..., None]) -> None:
        self.ledger.wrote(asked=is_asked(line))
        if line.kind == "Pod" and line.api_version == "v1":
            write_pod(line.namespace, line.name, line.uid, self._states.pod(line.object))
        elif line.kind == "Node" and line.api_version == "v1":
            self.ledger.node_written(line.name, self._states.node(line.object))

    def _deleted(self, line: ObjectDeleted) -> None:
        self.ledger.wrote(asked=is_asked(line))
        self.ledger.deleted()
        if (line.api_version, line.kind) == POD:
            self.ledger.pod_deleted(line.namespace, line.name, marked=line.marked)
        elif (line.api_version, line.kind) == NODE:
            self.ledger.node_removed(line.name)

    def _pod_ended(self, line: PodEnded) -> None:
        self.ledger.pod_ended(line.namespace, line.name)

    def _attempted(self, line: PodScheduled) -> None:
        self.ledger.attempted(line.namespace, line.name, line.node, line.message)

    def _preempted(self, line: PodPreempted) -> None:
        self.ledger.preempted(line.namespace, line.name, line.node, line.preempted_by)

    def _asked(self, line: Told) -> None:
        del line
        self.ledger.wrote(asked=True)

    def _ignored(self, line: OperationsIgnored) -> None:
        self.ledger.ignored += line.operations

    def _evaluated(self, line: ExpectationsEvaluated) -> None:
        self.ledger.expectations = line.outcomes

    def _warned(self, line: NotSimulated) -> None:
        self.ledger.warnings += line.warnings

    def _ended(self, line: ScenarioEnded) -> None:
        self.ledger.end(line.phase, line.message)


def is_asked(line: Told) -> bool:
    """Whether an operation asked for it, not a controller."""
    return not line.id.startswith(GENERATED_ID)
