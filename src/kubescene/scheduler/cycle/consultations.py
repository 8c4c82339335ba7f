"""What is told of an attempt beside its nodes and plugins: extenders that were asked, and waits."""

from msgspec.structs import replace

from kubescene.clock import format_micro_time
from kubescene.instruments.attempts import ExtenderRecord, WaitRecord
from kubescene.scheduler.extenders.extenders import (
    MAX_EXTENDER_SCORE,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderVerb,
)
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE
from kubescene.scheduler.framework.status import Status

DONE = "done"


def consultation(call: ExtenderCall, answer: ExtenderAnswer, error: str) -> ExtenderRecord:
    """A question and its answer, as it is told."""
    extender, verb = call.extender, call.verb
    does_without = extender.ignorable or verb is ExtenderVerb.PRIORITIZE
    known = ExtenderRecord(extender.name, verb.value, len(call.nodes or call.victims))
    if error:
        return replace(known, error=error, ignored=does_without)
    if verb is ExtenderVerb.FILTER:
        return replace(known, **_filtered(call, answer))
    if verb is ExtenderVerb.PRIORITIZE:
        factor = extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_SCORE)
        return replace(known, scores={node: it * factor for node, it in answer.scores.items()})
    if verb is ExtenderVerb.PREEMPT:
        violations = dict(answer.pdb_violations)
        return replace(known, victims=dict(answer.victims), pdb_violations=violations)
    return known


def _filtered(call: ExtenderCall, answer: ExtenderAnswer) -> dict[str, object]:
    told = {*answer.nodes, *answer.failed, *answer.unresolvable}
    return {
        "passed": answer.nodes,
        "failed": dict(answer.failed),
        "unresolvable": dict(answer.unresolvable),
        "dropped": tuple(node for node in call.nodes if node not in told),
        "bare": answer.bare,
    }


def begun_wait(plugin: str, point: str, node: str, now: int, limit: int | None) -> WaitRecord:
    """A wait that begins; ``limit`` is how long the plugin lets it last at most."""
    until = "" if limit is None else format_micro_time(now + limit)
    return WaitRecord(plugin, point, node, format_micro_time(now), until)


def waits_with(waits: list[WaitRecord], begun: WaitRecord) -> list[WaitRecord]:
    """The waits of an attempt with one more; a PreBind plugin that goes on waiting waits once."""
    last = waits[-1] if waits else None
    if last is not None and (last.plugin, last.point) == (begun.plugin, begun.point):
        return [*waits[:-1], replace(begun, since=last.since)]
    return [*waits, begun]


def waits_ended(waits: list[WaitRecord], now: int, outcome: Status) -> list[WaitRecord]:
    """What came of those that were under way."""
    ended = format_micro_time(now)
    return [each if each.ended else _ended(each, ended, outcome) for each in waits]


def _ended(wait: WaitRecord, ended: str, outcome: Status) -> WaitRecord:
    if outcome.ok:
        text = "allowed" if wait.point == "Permit" else DONE
    elif outcome.plugin in ("", wait.plugin):
        text = outcome.message
    else:
        text = f"{outcome.plugin}: {outcome.message}"
    return replace(wait, ended=ended, outcome=text)
