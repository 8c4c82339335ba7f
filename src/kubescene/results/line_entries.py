"""Lines of a ``timeline.jsonl``, entered into a ledger without making facts of them.

Only what the ledger needs is decoded, in one pass over the line: a run of 50,000 pods has 160 MB.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.errors import ConfigurationError
from kubescene.results.fact_entries import BINDING, STATUS
from kubescene.results.ledger import Ledger
from kubescene.results.pod_resources import NOTHING
from kubescene.results.states import States, bound_to, phase_of, taken_apart
from kubescene.timeline.facts import GENERATED_ID, CustomFact, Outcome, is_built_in
from kubescene.timeline.lines import DAMAGED, LineReader, kind_named

NODE = ("v1", "Node")
POD = ("v1", "Pod")
NO_READER = LineReader([])


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


class ObjectKept(ObjectCreated, frozen=True):
    pass


class ObjectPatched(ObjectCreated, frozen=True):
    subresource: str = ""
    body: msgspec.Raw = NOTHING


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
    | ObjectKept
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


def told(lines: Iterable[bytes], place: str) -> Iterator[Known]:
    """What the lines after the header tell, those of kinds that results know nothing of left out.

    `ConfigurationError` names a damaged one.
    """
    for number, line in enumerate(lines, 2):
        try:
            yield _KNOWN.decode(line)
        except DAMAGED as error:
            if not is_other(line):
                raise damaged(place, number, error) from error


def custom_facts(lines: Iterable[bytes], place: str) -> Iterator[CustomFact]:
    """What controllers and plugins of users told; the other lines are not taken apart."""
    for number, line in enumerate(lines, 2):
        try:
            if not is_built_in(kind_named(line)):
                yield CustomFact.from_line(line, NO_READER)
        except DAMAGED as error:
            raise damaged(place, number, error) from error


def is_other(line: bytes) -> bool:
    """Whether a line that cannot be read is only of a kind that results know nothing of."""
    try:
        return _OTHER.decode(line).fact not in KINDS
    except DAMAGED:
        return False


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
            ObjectKept: self._kept,
            OperationsIgnored: self._ignored,
            ExpectationsEvaluated: self._evaluated,
            NotSimulated: self._warned,
            ScenarioEnded: self._ended,
        }

    def read(self, lines: Iterable[bytes], place: str) -> Ledger:
        """The ledger of the lines after the header; `ConfigurationError` names a damaged one."""
        decode, add = _KNOWN.decode, self.add
        for number, line in enumerate(lines, 2):
            try:
                add(decode(line))
            except ValueError as error:
                if not is_other(line):
                    raise damaged(place, number, error) from error
        self.ledger.close()
        return self.ledger

    def add(self, line: Known) -> None:
        """Enter what a line tells; `ValueError` or `msgspec.DecodeError` if it makes no sense."""
        kind = type(line)
        enter = self._enter.get(kind)
        if enter is not None:
            self.ledger.at(line.step, line.time)
            enter(line)
        else:
            # What is told of the scenario itself happens in no step.
            self.ledger.wait_until(line.time)
            self._note[kind](line)

    def _created(self, line: ObjectCreated) -> None:
        self._written(line, self.ledger.pod_created)

    def _patched(self, line: ObjectPatched) -> None:
        if line.subresource == BINDING:
            self.ledger.wrote(asked=is_asked(line))
            node = bound_to(bytes(line.body), line.object)
            self.ledger.pod_bound(line.namespace, line.name, node)
        elif line.subresource != STATUS or not self._reported(line):
            self._written(line, self.ledger.pod_written)

    def _reported(self, line: ObjectPatched) -> bool:
        """Whether a write of a status is entered, which is quick for a pod that is known."""
        if line.kind != "Pod" or not self.ledger.has_pod(line.namespace, line.name, line.uid):
            return False
        self.ledger.wrote(asked=is_asked(line))
        pod = taken_apart(line.object)
        labels = self._states.labels(pod)
        self.ledger.pod_reported(line.namespace, line.name, phase_of(pod), labels)
        return True

    def _written(self, line: ObjectCreated, write_pod: Callable[..., None]) -> None:
        self.ledger.wrote(asked=is_asked(line))
        self._enter_object(line, write_pod)

    def _kept(self, line: ObjectKept) -> None:
        self.ledger.begin(line.time)
        self._enter_object(line, self.ledger.pod_created)

    def _enter_object(self, line: ObjectCreated, write_pod: Callable[..., None]) -> None:
        if line.kind == "Pod" and line.api_version == "v1":
            state = self._states.told_pod(bytes(line.object))
            write_pod(line.namespace, line.name, line.uid, state)
        elif line.kind == "Node" and line.api_version == "v1":
            self.ledger.node_written(line.name, self._states.node(taken_apart(line.object)))

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
