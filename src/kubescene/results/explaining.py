"""Why a pod went where it went: its attempts from the log, with what was explained of each."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import orjson

from kubescene.api.text.encoding import encode
from kubescene.clock import SECOND, ScenarioStep
from kubescene.errors import ConfigurationError
from kubescene.instruments.attempts import (
    ExtenderRecord,
    PreemptionRecord,
    SchedulingAttempt,
    WaitRecord,
)
from kubescene.results.explanations import (
    ExplainedLine,
    ExplanationFile,
    ExplanationMemory,
    Explanations,
)
from kubescene.results.mapped_files import Mapped, line_at, line_number, mapped, occurrences
from kubescene.results.output import EXPLANATIONS_FILE, INDEX_FILE, TIMELINE_FILE
from kubescene.results.pod_index import TIMELINE, PodIndex, index_of
from kubescene.timeline import PodAttempt, PodScheduled, PodUnscheduled, TimelineLog
from kubescene.timeline.compacting import Index, unfolded, written_out
from kubescene.timeline.explanations import WrittenAttempt, name_of
from kubescene.timeline.facts import DAMAGED
from kubescene.timeline.files import read_header
from kubescene.timeline.lines import line_decoder
from kubescene.timeline.pod_facts import read_result

_ATTEMPT = line_decoder(PodScheduled, PodUnscheduled)
ATTEMPTS = (b'{"fact":"PodScheduled",', b'{"fact":"PodUnscheduled",')


class NodeVerdict(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One node in one attempt: rejected by a plugin, or scored by all of them.

    ``raw`` is what plugins said before it was normalised and weighted.
    """

    node: str
    rejected_by: str = ""
    reasons: str = ""
    scores: tuple[int, ...] = ()
    total: int | None = None
    raw: tuple[int, ...] = ()


class ExplainedAttempt(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One attempt at one pod. ``plugins`` names the columns of the verdicts' scores.

    Those scores are weighted, by ``weights``. Without verdicts, the run did not keep why;
    ``evaluated`` and ``feasible`` count nodes, ``time_s`` is virtual time since the run began.
    ``preemption`` tells whether others could make room,
    ``extenders`` what those said, ``waits`` what the pod waited for with a node promised,
    ``traceback`` where a plugin raised.
    """

    pod: str
    step: str
    node: str
    message: str
    time_s: float = 0
    plugins: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    verdicts: tuple[NodeVerdict, ...] = ()
    evaluated: int = 0
    feasible: int = 0
    explained: bool = False
    preemption: PreemptionRecord | None = None
    extenders: tuple[ExtenderRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    traceback: str = ""

    @property
    def is_unscored(self) -> bool:
        """Whether a single node fitted, which is taken without scoring."""
        return self.explained and bool(self.node) and self.feasible == 1 and not self.plugins

    def verdict_on(self, node: str) -> NodeVerdict | None:
        return next((each for each in self.verdicts if each.node == node), None)

    def __repr__(self) -> str:
        outcome = f"bound to {self.node}" if self.node else self.message
        return f"<attempt at {self.pod}, step {self.step}: {outcome}>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import attempt_html

        return attempt_html(self)


class ExplainedAttempts(list[ExplainedAttempt]):
    """The attempts at one pod, in order; a notebook shows them as tables."""

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import attempts_html

        return attempts_html(self)


def read_attempts(run: str | Path, pod: str) -> ExplainedAttempts:
    """The attempts at ``NAMESPACE/NAME`` (or a name in ``default``) in a run's directory."""
    name, folder = qualified(pod), Path(run)
    timeline, explanations = folder / TIMELINE_FILE, folder / EXPLANATIONS_FILE
    index = index_of(folder, timeline, explanations, INDEX_FILE)
    attempts = _attempts_in(timeline, name, index)
    began = _began(timeline) if attempts else 0
    return explained_attempts(attempts, ExplanationFile(explanations, index), name, began)


def is_mentioned(run: str | Path, pod: str) -> bool:
    """Whether a run tells of a pod at all, tried or not."""
    with mapped(Path(run) / TIMELINE_FILE) as data:
        return data.find(_named(qualified(pod))) >= 0


def attempts_of(log: TimelineLog, explanations: Explanations, pod: str) -> ExplainedAttempts:
    """The same from a log."""
    name = qualified(pod)
    facts = log.of_object("Pod", *name.split("/", 1))
    attempts = [fact for fact in facts if isinstance(fact, PodAttempt)]
    return explained_attempts(attempts, explanations, name, log[0].time if len(log) else 0)


def qualified(pod: str) -> str:
    return pod if "/" in pod else f"default/{pod}"


def explained_attempts(
    attempts: Iterable[PodAttempt], explanations: Explanations, pod: str, began: int
) -> ExplainedAttempts:
    """Every attempt, together with its explanation if there is one, of a run that began then."""
    found = ExplainedAttempts()
    lines = explanations.of(pod)
    for attempt in attempts:
        row = _row(explanations, lines[0]) if lines else None
        if row is not None and row.tells_of(attempt):
            told = _explained(row, _unexplained(pod, attempt), explanations, lines.pop(0))
        else:
            told = _unexplained(pod, attempt)
        time_s = (attempt.time - began) / SECOND
        found.append(msgspec.structs.replace(told, time_s=time_s) if time_s else told)
    return found


def explained_attempt(attempt: SchedulingAttempt, step: ScenarioStep) -> ExplainedAttempt:
    """An attempt as a scheduler has told of it, in a world of which no log is kept."""
    memory = ExplanationMemory()
    if attempt.explanation is not None:
        memory.explain("", encode({"nodes": list(attempt.explanation.nodes)}))
    pod = name_of(attempt)
    memory.explain(pod, WrittenAttempt(step, attempt))
    [line] = memory.of(pod)
    known = ExplainedAttempt(
        pod=pod,
        step=str(step),
        node=attempt.node,
        message=attempt.message,
        evaluated=attempt.evaluated,
        feasible=attempt.feasible,
        preemption=attempt.preemption,
    )
    return _explained(_row(memory, line), known, memory, line)


class _Timed(msgspec.Struct, frozen=True):
    time: int


def _began(timeline: Path) -> int:
    """The time of the first fact."""
    with mapped(timeline) as data:
        return msgspec.json.decode(line_at(data, data.find(b"\n") + 1), type=_Timed).time


def _named(pod: str) -> bytes:
    """How every line about a pod names it."""
    namespace, _, name = pod.partition("/")
    return orjson.dumps({"namespace": namespace, "name": name})[1:-1] + b',"uid":'


def _attempts_in(path: Path, pod: str, index: PodIndex) -> list[PodAttempt]:
    """The lines of a timeline about attempts at a pod, found without reading the others."""
    named, found = _named(pod), []
    known = index.find(pod, TIMELINE)
    with mapped(path) as data:
        read_header(data[: max(data.find(b"\n"), 0)], path)
        for start in _line_starts(data, named, known):
            line = line_at(data, start)
            if line.startswith(ATTEMPTS) and named in line:
                try:
                    attempt = _ATTEMPT.decode(line)
                    read_result(attempt)
                    found.append(attempt)
                except DAMAGED as error:
                    where = f"{path}, line {line_number(data, start)}"
                    raise ConfigurationError(f"{where}: {error}") from error
    return found


def _line_starts(data: Mapped, named: bytes, known: list[tuple[int, int]] | None) -> Iterator[int]:
    """Where lines begin that may be about a pod: as the index says, or by searching."""
    if known is not None:
        yield from (position for position, _ in known)
        return
    for place in occurrences(data, named):
        yield data.rfind(b"\n", 0, place) + 1


class _ReasonGroup(msgspec.Struct, frozen=True):
    plugin: str
    reasons: list[str]
    nodes: list[Index]


class _ScoreColumn(msgspec.Struct, frozen=True):
    weight: int
    raw: list[int] | int
    normalized: list[int] | int | None = None

    def scores(self, count: int) -> Sequence[int]:
        """What the plugin gave each of the scored nodes, as it enters the total."""
        told = self.raw if self.normalized is None else self.normalized
        return [score * self.weight for score in written_out(told, count)]


class _AttemptStep(msgspec.Struct, frozen=True):
    major: int
    minor: int


class _Row(msgspec.Struct, frozen=True):
    """A line about an attempt, as it is read."""

    pod: str
    step: _AttemptStep
    feasible: list[Index] | None = None
    """None if nodes and plugins were not explained."""
    filters: list[_ReasonGroup] = []
    scored: list[Index] | None = None
    """None if these are the feasible ones."""
    scores: dict[str, _ScoreColumn] = {}
    totals: list[int] | None = None
    """None if they are the sums of the scores."""
    node: str = ""
    message: str = ""
    preemption: PreemptionRecord | None = None
    extenders: tuple[ExtenderRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    traceback: str = ""

    def tells_of(self, attempt: PodAttempt) -> bool:
        step = ScenarioStep(self.step.major, self.step.minor)
        return step == attempt.step and self.node == attempt.node


class _Nodes(msgspec.Struct, frozen=True):
    nodes: list[str]


def _row(explanations: Explanations, line: ExplainedLine) -> _Row:
    try:
        return msgspec.json.decode(line.line, type=_Row)
    except DAMAGED as error:
        raise ConfigurationError(f"{explanations.place(line)}: {error}") from error


def _explained(
    row: _Row, known: ExplainedAttempt, explanations: Explanations, line: ExplainedLine
) -> ExplainedAttempt:
    told = msgspec.structs.replace(
        known,
        preemption=row.preemption or known.preemption,
        extenders=row.extenders,
        waits=row.waits,
        traceback=row.traceback,
    )
    if row.feasible is None:
        return told
    fitting, rejected = _verdicts(row, explanations, line)
    return msgspec.structs.replace(
        told,
        plugins=tuple(row.scores),
        weights=tuple(column.weight for column in row.scores.values()),
        verdicts=(*fitting, *rejected),
        evaluated=len(fitting) + len(rejected),
        feasible=len(fitting),
        explained=True,
    )


def _verdicts(
    row: _Row, explanations: Explanations, line: ExplainedLine
) -> tuple[list[NodeVerdict], list[NodeVerdict]]:
    """The nodes that passed, and those that did not."""
    try:
        names = msgspec.json.decode(line.nodes, type=_Nodes).nodes
        return _fitting(row, names), [*_rejected(row, names)]
    except (*DAMAGED, IndexError) as error:
        raise ConfigurationError(
            f"{explanations.place(line)}: the list of nodes before it is not its own: {error}"
        ) from error


def _unexplained(pod: str, attempt: PodAttempt) -> ExplainedAttempt:
    return ExplainedAttempt(
        pod=pod,
        step=str(attempt.step),
        node=attempt.node,
        message=attempt.message,
        evaluated=attempt.evaluated,
        feasible=attempt.feasible,
        preemption=attempt.preemption,
    )


def _fitting(row: _Row, names: list[str]) -> list[NodeVerdict]:
    """The nodes that passed, the best first; a single one is taken without scoring."""
    feasible = unfolded(row.feasible or (), len(names))
    nodes = feasible if row.scored is None else unfolded(row.scored, len(names))
    if not nodes:
        return [NodeVerdict(names[index]) for index in feasible]
    columns = [column.scores(len(nodes)) for column in row.scores.values()]
    scores = [*zip(*columns, strict=True)] if columns else [()] * len(nodes)
    said = [written_out(column.raw, len(nodes)) for column in row.scores.values()]
    raw = [*zip(*said, strict=True)] if said else [()] * len(nodes)
    totals = [sum(each) for each in scores] if row.totals is None else row.totals
    scored = [
        NodeVerdict(names[index], scores=scores[place], total=totals[place], raw=raw[place])
        for place, index in enumerate(nodes)
    ]
    scored.sort(key=lambda verdict: (-(verdict.total or 0), verdict.node != row.node))
    return scored


def _rejected(row: _Row, names: list[str]) -> Iterator[NodeVerdict]:
    for group in row.filters:
        reasons = ", ".join(group.reasons)
        for index in unfolded(group.nodes, len(names)):
            yield NodeVerdict(names[index], group.plugin, reasons)
