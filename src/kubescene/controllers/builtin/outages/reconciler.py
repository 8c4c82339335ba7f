"""When Outages begin and end, whom they affect, and what becomes of one that is changed.

Who is affected is drawn when an Outage begins: every node has a rank by the streams of the Outage's
name, and those of the first ranks are taken. So a larger share has all of a smaller one, and no
order of creation matters. The status remembers it. What it wrote is taken back at its end, and when
it is deleted before.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import NODE
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.client import ObjectRef, Reader
from kubescene.clock import Streams, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import LateReconcilerController
from kubescene.controllers.builtin.outages.definition import GONE, OUTAGE
from kubescene.controllers.builtin.outages.effects import (
    EFFECTS,
    NAME,
    RUNNING,
    ended,
    released,
)
from kubescene.controllers.builtin.outages.spec import amount, lasts, length, spec_faults
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

PENDING, ENDED, REFUSED = "Pending", "Ended", "Refused"


class OutageReconciler:
    """Begins Outages, and takes them back."""

    name = NAME
    kinds = (OUTAGE,)

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._deleted: dict[ObjectKey, JsonObject] = {}

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        key = ObjectKey("", change.record.name)
        if change.type is ChangeType.DELETED:
            self._deleted[key] = change.object
        return (key,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        taken_back = list[Write]()
        if (deleted := self._deleted.pop(key, None)) is not None and phase_of(deleted) == RUNNING:
            taken_back = released(deleted, deleted["status"].get("affected") or (), reader)
        outage = found(key, reader)
        if outage is None:
            return Plan(taken_back)
        plan = self._step(outage, reader, now)
        return Plan((*taken_back, *plan.writes), plan.requeue_after, plan.notices)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _step(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        phase, is_new = phase_of(outage), is_changed(outage)
        if phase == RUNNING:
            return (
                self._changed(outage, reader, now) if is_new else self._go_on(outage, reader, now)
            )
        if phase == ENDED:
            message = "it has ended: changes have no effect, create another one"
            return Plan((told(outage, message=message),)) if is_new else NOTHING
        if phase == REFUSED and not is_new:
            return NOTHING
        if fault := next(spec_faults(outage["spec"]), None):
            return refusal(outage, str(fault))
        created = parse_time(outage["metadata"]["creationTimestamp"])
        begins = created + length(outage["spec"], "after", "0")
        if begins > now:
            pending = (told(outage, phase=PENDING),) if phase != PENDING or is_new else ()
            return Plan(pending, begins - now)
        return self._begin(outage, reader, now)

    def _begin(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        what = outage["spec"]["what"]
        nodes, there = self._drawn(outage, reader)
        status = {
            "phase": ENDED if what == GONE else RUNNING,
            "what": what,
            "began": format_time(now),
            "ends": ends_at(outage["spec"], now),
            **affected(nodes, there),
        }
        writes = begun(outage, what, nodes, now)
        return Plan((*writes, told(outage, **status)), notices=(extent(outage, status, there),))

    def _go_on(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        ends = outage["status"].get("ends")
        if ends is None:
            return NOTHING
        if (wait := parse_time(ends) - now) > 0:
            return Plan(requeue_after=wait)
        return self._end(outage, reader)

    def _end(self, outage: JsonObject, reader: Reader, **status: object) -> Plan:
        over = notice_of(outage, NORMAL, "OutageEnded", f"{outage['status']['what']} is over")
        writes = (*ended(outage, reader), told(outage, phase=ENDED, **status))
        return Plan(writes, notices=(over,))

    def _changed(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        """A running Outage is brought in line with its spec; one that makes no sense is not."""
        spec, status = outage["spec"], outage["status"]
        if fault := self._fault_of_change(outage):
            message = f"{fault}; it goes on as it was"
            notice = notice_of(outage, WARNING, "ChangeRefused", message)
            wait = max(parse_time(status["ends"]) - now, 1) if "ends" in status else None
            return Plan((told(outage, message=message),), wait, (notice,))
        ends = ends_at(spec, parse_time(status["began"]))
        if ends is not None and parse_time(ends) <= now:
            return self._end(outage, reader, ends=format_time(now))
        nodes, there = self._drawn(outage, reader)
        names, before = [name_of(node) for node in nodes], status.get("affected") or ()
        let_off = [name for name in before if name not in names]
        # What several share has begun already; what it says itself may have changed.
        known = before if EFFECTS[status["what"]].is_shared else ()
        fresh = [node for node in nodes if name_of(node) not in known]
        writes = [*released(outage, let_off, reader), *begun(outage, status["what"], fresh, now)]
        new = {"ends": ends, **affected(nodes, there)}
        wait = None if ends is None else parse_time(ends) - now
        return Plan((*writes, told(outage, **new)), wait, (extent(outage, new, there),))

    def _fault_of_change(self, outage: JsonObject) -> str:
        if outage["spec"]["what"] != outage["status"]["what"]:
            return "what: it cannot become something else while it lasts; create another one"
        return str(next(spec_faults(outage["spec"]), ""))

    def _drawn(self, outage: JsonObject, reader: Reader) -> tuple[list[JsonObject], int]:
        """Those of the nodes that are affected, by name, and how many nodes there are at all."""
        spec = outage["spec"]
        everyone = len(reader.list(NODE))
        nodes = list(reader.list(NODE, labels=from_label_selector(spec["nodes"])))
        nodes.sort(key=lambda node: str(name_of(node)))
        count = amount(spec, len(nodes))
        if count == len(nodes):
            return nodes, everyone
        stream = f"outage/{name_of(outage)}"
        ranks = {
            name: self._streams.single(f"{stream}/{name}").next_u64()
            for name in map(name_of, nodes)
        }
        chosen = {*sorted(ranks, key=lambda name: (ranks[name], name))[:count]}
        return [node for node in nodes if name_of(node) in chosen], everyone


def begun(outage: JsonObject, what: str, nodes: Sequence[JsonObject], now: int) -> list[Write]:
    """What an Outage does to nodes in its beginning."""
    effect, instant = EFFECTS[what], format_time(now)
    return [write for node in nodes for write in effect.begin(outage, node, instant)]


def refusal(outage: JsonObject, fault: str) -> Plan:
    notice = notice_of(outage, WARNING, "OutageRefused", fault)
    return Plan((told(outage, phase=REFUSED, message=fault),), notices=(notice,))


def affected(nodes: Sequence[JsonObject], there: int) -> JsonObject:
    """What the status says of whom it affects; of nobody and of everybody also in words."""
    message = None
    if not nodes:
        message = (
            f"nodes: the selector chooses none of {there}, and nodes that come are not affected"
        )
    elif len(nodes) == there:
        message = f"nodes: all {there} are affected"
    return {"affected": [name_of(node) for node in nodes], "message": message}


def extent(outage: JsonObject, status: JsonObject, there: int) -> Notice:
    """The event that says how far it goes."""
    if status["message"]:
        reason = "AllAffected" if status["affected"] else "NobodyAffected"
        return notice_of(outage, WARNING, reason, status["message"])
    message = f"{len(status['affected'])} of {there} nodes are affected"
    return notice_of(outage, NORMAL, "OutageRuns", message)


def notice_of(outage: JsonObject, kind: str, reason: str, message: str) -> Notice:
    return Notice(regarding(outage), kind, reason, message, NAME)


def told(outage: JsonObject, **status: object) -> Patch:
    """A status that has seen the newest change; unless it has a message, there is none."""
    seen = {"observedGeneration": outage["metadata"].get("generation"), "message": None}
    return Patch(ObjectRef.to(outage), {"status": {**seen, **status}}, subresource="status")


def ends_at(spec: JsonObject, began: int) -> str | None:
    length = lasts(spec)
    return None if length is None else format_time(began + length)


def is_changed(outage: JsonObject) -> bool:
    """Whether its spec was written since its status was."""
    seen = (outage.get("status") or {}).get("observedGeneration")
    return bool(outage["metadata"].get("generation") != seen)


def phase_of(outage: JsonObject) -> str:
    return str((outage.get("status") or {}).get("phase", ""))


def name_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["name"])


def found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    """The Outage; None if it is gone, or its kind is."""
    try:
        return reader.find(ObjectRef(OUTAGE, key.name))
    except BadRequestError:
        return None


def outages(context: ControllerContext) -> LateReconcilerController:
    """The factory of the controller."""
    return LateReconcilerController(OutageReconciler(context.streams), context)
