"""From a run to what its page shows: what happened, step by step; of a very long run, several steps
are one.
"""

from collections.abc import Iterator, Sequence

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.api.selectors import from_label_selector
from kubescene.clock import format_micro_time
from kubescene.reports.amounts import percent, seconds, told_amount, told_duration
from kubescene.reports.html.contents import (
    Contents,
    DecisionView,
    ExpectationView,
    Figure,
    Headline,
    MeasureView,
    NodeAtEnd,
    OutcomeView,
    Preempted,
    StepView,
)
from kubescene.reports.html.cost import cost_of
from kubescene.reports.html.decisions import decisions_of
from kubescene.reports.html.heat import binned, heat_of
from kubescene.reports.html.over_time import over_time_of
from kubescene.reports.html.waits import (
    GROUPS,
    LATE,
    grouped,
    late_of,
    told_group,
    told_late,
    waiting_of,
)
from kubescene.reports.html.workloads import SHOWN, budgets_of, workloads_of
from kubescene.reports.words import counted, told_apart
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import (
    BOUND,
    DELETED,
    FINISHED,
    NodeEntry,
    OutcomeEntry,
    PreemptionEntry,
    StepEntry,
)
from kubescene.results.measures import measure_rows
from kubescene.results.over_time.requests import totals_of_all
from kubescene.results.sources import RunSource, sound_spec
from kubescene.timeline import PLAIN_MESSAGE, Outcome
from kubescene.types import JsonObject


def steps_of(source: RunSource, columns: Sequence[int]) -> tuple[StepView, ...]:
    """One for each column, which stands for the steps since the column before."""
    ledger, asked = source.ledger, operations_by_step(sound_spec(source))
    return tuple(
        told_step(
            entries, [each for entry in entries for each in asked.get(entry.major, ())], ledger
        )
        for entries in binned(ledger.steps, columns)
    )


def told_step(entries: Sequence[StepEntry], asked: Sequence[str], ledger: Ledger) -> StepView:
    last = entries[-1]
    passed = last.ended_time - (ledger.started_time or 0)
    return StepView(
        first=entries[0].major,
        step=last.major,
        time=f"+{told_duration(seconds(passed))}" if ledger.duration else "",
        minor=sum(each.minor for each in entries),
        operations=sum(each.operations for each in entries),
        writes=sum(each.controller_writes for each in entries),
        bound=sum(each.scheduled for each in entries),
        unschedulable=last.unschedulable,
        failed=sum(each.failed_attempts for each in entries),
        deleted=sum(each.deleted for each in entries),
        preempted=sum(each.preempted for each in entries),
        waiting=last.pending,
        nodes=last.totals.nodes,
        what=tuple(shortened(asked)),
    )


LISTED = 4
WITHOUT_KIND = {"evictOperation": "Pod", "drainOperation": "Node"}
"""Operations that are about one kind of object, which they need not name."""


def operations_by_step(spec: JsonObject | None) -> dict[int, list[str]]:
    """The operations of every step, in words."""
    steps: dict[int, list[str]] = {}
    for operation in (spec or {}).get("operations") or ():
        steps.setdefault(operation["step"], []).append(told_operation(operation))
    return steps


def shortened(lines: Sequence[str]) -> list[str]:
    """A few of them; the last line says how many more there are, if one would not be enough."""
    left = len(lines) - LISTED
    return [*lines[:LISTED], f"and {counted(left, 'more operation')}"] if left > 1 else [*lines]


def told_operation(operation: JsonObject) -> str:
    """``create 9 × Pod web-$(INDEX)``; an operation of another kind by its name alone."""
    kind = next((name for name in operation if name.endswith("Operation")), "")
    body = operation.get(kind) or {}
    verb = kind.removesuffix("Operation")
    if kind == "createOperation":
        return f"{verb} {created(body)}".rstrip()
    if kind == "advanceOperation":
        return f"let time pass: {body.get('duration', '')}".rstrip(": ")
    if kind == "doneOperation":
        return "done"
    return f"{verb} {meant(body, WITHOUT_KIND.get(kind, ''))}".rstrip()


def created(body: JsonObject) -> str:
    if file := body.get("objectFrom"):
        return f"what {file} holds"
    made = body.get("object") or {}
    count = f"{body['count']} × " if body.get("count", 1) != 1 else ""
    return f"{count}{named(made, made.get('metadata') or {})}"


def meant(body: JsonObject, kind: str) -> str:
    """Which objects, by their names or by a selector."""
    kind = kind or (body.get("typeMeta") or {}).get("kind", "")
    if (given := body.get("selector")) is None:
        names = ", ".join(body.get("names") or ())
        return f"{kind} {names}" if names else named({"kind": kind}, body.get("objectMeta") or {})
    most = [f"at most {body['limit']} of "] if body.get("limit") else []
    some = "".join([*most, f"{body['share']} of "] if body.get("share") else most)
    place = f" in {body['namespace']}" if body.get("namespace") else ""
    labels = str(from_label_selector(given)) or "any labels"
    return f"{some}every {kind}{place} with {labels}"


def named(kind: JsonObject, metadata: JsonObject) -> str:
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace", "")
    place = f"{namespace}/" if namespace and namespace != "default" else ""
    return f"{kind.get('kind', '')} {place}{name}".strip()


NODES = 15
PREEMPTIONS = 100
IGNORED = 40
OUTCOMES = 50
CUT_SHORT = "The run was cut short: what follows is what happened until then."


def contents_of(source: RunSource) -> Contents:
    """Everything, from one reading of the run and of some explanations."""
    ledger = source.ledger
    waiting = grouped(waiting_of(ledger))
    late = late_of(ledger)
    decisions = decisions_of(source)
    explained = {each.pod: place for place, each in reversed([*enumerate(decisions)])}
    nodes, heat = ledger.standing(), heat_of(ledger)
    preemptions, workloads = preemptions_of(ledger, decisions), workloads_of(ledger)
    outcomes = told_apart(ledger.outcomes)
    return Contents(
        headline=headline_of(source),
        figures=(*request_figures(source), *figures_of(ledger)),
        measures=tuple(measures_of(source)),
        expectations=expectations_of(source),
        outcomes=tuple(outcome_of(each, ledger) for each in outcomes[-OUTCOMES:]),
        outcomes_total=len(outcomes),
        steps=steps_of(source, heat.columns),
        heat=heat,
        nodes=tuple(node_at_end(node, heat.resources) for node in fullest(nodes, heat.nodes)),
        nodes_total=len(nodes),
        waiting=tuple(
            told_group(message, pods, explained.get(pods[0].pod))
            for message, pods in waiting[:GROUPS]
        ),
        waiting_total=sum(len(pods) for _, pods in waiting),
        waiting_groups=len(waiting),
        late=tuple(map(told_late, late[:LATE])),
        late_total=len(late),
        preemptions=tuple(preemptions[:PREEMPTIONS]),
        preemptions_total=len(preemptions),
        workloads=tuple(workloads[:SHOWN]),
        workloads_total=len(workloads),
        budgets=tuple(budgets_of(ledger)[:SHOWN]),
        over_time=over_time_of(source),
        cost=cost_of(ledger),
        decisions=tuple(decisions),
        decisions_total=sum(pod.attempts for pod in ledger.pods),
        warnings=tuple(ledger.warnings),
        ignored=tuple(ledger.ignored[:IGNORED]),
        ignored_total=len(ledger.ignored),
    )


def headline_of(source: RunSource) -> Headline:
    ledger = source.ledger
    began = ledger.started_time
    return Headline(
        scenario=source.scenario or "a run",
        phase=source.phase,
        message=ledger.message if source.phase else CUT_SHORT,
        seed=source.seed,
        version=source.version,
        started="" if began is None else told_moment(began),
        duration_s=seconds(ledger.duration),
        facts=ledger.facts,
        steps=len(ledger.steps),
        warnings=source.warnings,
        verdict=verdict_of(ledger),
        story=story_of(ledger),
    )


def verdict_of(ledger: Ledger) -> str:
    """What expectations say that do not hold."""
    failed, of = sum(not each.holds for each in ledger.expectations), len(ledger.expectations)
    return f"{failed} of {counted(of, 'expectation')} failed" if failed else ""


def story_of(ledger: Ledger) -> str:
    """What came of the run, in a sentence or two."""
    bound, waiting, came = ledger.states[BOUND], len(waiting_of(ledger)), len(ledger.pods)
    if not came:
        return f"No pod came to {counted(ledger.totals.nodes, 'node')}."
    told = [f"Of {counted(came, 'pod')} that came, {bound:,} {'is' if bound == 1 else 'are'} bound"]
    if waiting:
        told.append(f"{waiting:,} {'waits' if waiting == 1 else 'wait'} for a node")
    if gone := ledger.states[FINISHED] + ledger.states[DELETED]:
        told.append(f"{gone:,} {'is' if gone == 1 else 'are'} gone")
    peaks = [step.peak for step in ledger.steps if step.peak.allocatable.get(CPU)]
    highest = max((percent(p.requested[CPU], p.allocatable[CPU]) for p in peaks), default=None)
    full = "" if highest is None else f" At most {highest:.0f} % of the CPU was requested."
    away = sum(bool(node.marks) for node in ledger.standing())
    kept = f" {counted(away, 'node')} of {ledger.totals.nodes:,} kept pods away at the end."
    return f"{', '.join(told)}.{full}{kept if away else ''}"


def told_moment(time: int) -> str:
    """A virtual time to the second, as people write it."""
    return format_micro_time(time)[:19].replace("T", " ")


def figures_of(ledger: Ledger) -> Iterator[Figure]:
    """The numbers that people ask for first."""
    pending, bound = len(waiting_of(ledger)), ledger.states[BOUND]
    gone = ledger.states[FINISHED] + ledger.states[DELETED]
    yield Figure(
        "Pods bound", f"{bound:,}", f"{gone:,} more came and went" if gone else "at the end"
    )
    fine = "every pod has a node" if bound else "no pod needs one"
    note = f"of {len(ledger.pods):,} that came" if pending else fine
    yield Figure("Pods waiting", f"{pending:,}", note, tone="bad" if pending else "")
    totals = ledger.totals
    left = len({node.name for node in ledger.nodes}) - totals.nodes
    yield Figure("Nodes", f"{totals.nodes:,}", removed_nodes(left))
    for resource, name in requested_figures(ledger):
        asked, whole = totals.requested.get(resource, 0), totals.allocatable.get(resource, 0)
        if whole:
            told = f"{told_amount(resource, asked)} of {told_amount(resource, whole)}"
            share = percent(asked, whole)
            yield Figure(name, f"{share:.1f} %", told, share / 100, "bad" if share > 100 else "")
    failed = sum(step.failed_attempts for step in ledger.steps)
    attempts = failed + sum(step.scheduled for step in ledger.steps)
    yield Figure("Attempts", f"{attempts:,}", f"{failed:,} of them found no node" if failed else "")
    if ledger.preemptions:
        preemptors = len({each.preemptor for each in ledger.preemptions})
        note = f"for {counted(preemptors, 'other')}"
        yield Figure("Pods preempted", f"{len(ledger.preemptions):,}", note, tone="odd")
    longest = max((pod.pending_until(ledger.time) for pod in ledger.pods), default=0)
    if longest:
        yield Figure("Longest wait", told_duration(seconds(longest)), "virtual time")


def request_figures(source: RunSource) -> Iterator[Figure]:
    """Of all Traffics together: what failed, and response times of all and of those served."""
    totals = totals_of_all(source)
    if totals is None:
        return
    failed, done = totals.failed, totals.failed + totals.succeeded
    share = f"{100 * failed / done:.2f} %" if done else "none ended"
    yield Figure("Requests", f"{totals.requests:,}", f"{totals.inside:,} inside at the end")
    yield Figure("Failed", f"{failed:,}", share, tone="bad" if failed else "")
    times = [totals.of_all(99), totals.of_served(99)]
    every, served = ("never" if each is None else told_duration(seconds(each)) for each in times)
    served = served if totals.succeeded else "none"
    yield Figure("99 % of all within", every, f"of those served {served}")


SCARCE = 2
"""Resources other than cpu and memory that have a figure of their own."""


def requested_figures(ledger: Ledger) -> list[tuple[str, str]]:
    """Cpu, memory, and what else nodes are there for: GPUs, devices."""
    usual = [(CPU, "CPU requested"), (MEMORY, "Memory requested")]
    scarce = sorted(
        name for name, whole in ledger.totals.allocatable.items() if "/" in name and whole
    )
    return [*usual, *((name, name) for name in scarce[:SCARCE])]


def removed_nodes(count: int) -> str:
    if count <= 0:
        return ""
    return "1 more was removed" if count == 1 else f"{count:,} more were removed"


def measures_of(source: RunSource) -> Iterator[MeasureView]:
    for row in measure_rows(source):
        value = row.value
        told = "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        yield MeasureView(row.measure, told, row.unit, row.meaning)


def expectations_of(source: RunSource) -> tuple[ExpectationView, ...]:
    """What the scenario expected and what became of it, where the run says so."""
    return tuple(
        ExpectationView(
            each.name, each.holds, each.expression, own_message(each), each.error, each.seen
        )
        for each in source.ledger.expectations
    )


def outcome_of(entry: OutcomeEntry, ledger: Ledger) -> OutcomeView:
    passed = entry.time - (ledger.started_time or 0)
    time = f"+{told_duration(seconds(passed))}" if ledger.duration else ""
    return OutcomeView(entry.operation, time, entry.state, entry.message)


def own_message(outcome: Outcome) -> str:
    """What its author says; without a word of theirs the message is the expression again."""
    return "" if outcome.message.startswith(PLAIN_MESSAGE) else outcome.message


def fullest(nodes: list[NodeEntry], order: Sequence[str]) -> list[NodeEntry]:
    """All of them in order if they are few, else those with the most asked of them."""
    places = {name: place for place, name in enumerate(order)}
    ordered = sorted(nodes, key=lambda node: places[node.name])
    if len(nodes) <= NODES:
        return ordered
    return sorted(ordered, key=lambda node: -node_share(node, CPU))[:NODES]


def node_share(node: NodeEntry, resource: str) -> float:
    return percent(node.room.requested.get(resource, 0), node.allocatable.get(resource, 0))


def node_at_end(node: NodeEntry, resources: Sequence[str]) -> NodeAtEnd:
    asked = node.room.requested
    amounts = (
        f"{told_amount(name, asked.get(name, 0))} of "
        f"{told_amount(name, node.allocatable.get(name, 0))}"
        for name in resources
    )
    shares = tuple(node_share(node, name) for name in resources)
    return NodeAtEnd(node.name, node.marks, shares, tuple(amounts))


def preemptions_of(ledger: Ledger, decisions: list[DecisionView]) -> list[Preempted]:
    """Pods that left a node for the same pod at the same step are one preemption."""
    reasons = {(each.pod, each.nominated): each.criterion for each in decisions if each.nominated}
    groups: dict[tuple[str, str, str], list[PreemptionEntry]] = {}
    for each in ledger.preemptions:
        groups.setdefault((each.preemptor, each.node, str(each.step)), []).append(each)
    return [
        Preempted(
            step=step,
            preemptor=preemptor,
            node=node,
            victims=tuple(each.pod for each in victims),
            criterion=reasons.get((preemptor, node), ""),
        )
        for (preemptor, node, step), victims in groups.items()
    ]
