"""When Outages begin and end, whom they affect, and what becomes of one that is changed.

Who is affected is drawn when an Outage begins: every node has a rank by the streams of the Outage's
name, and those of the first ranks are taken. So a larger share has all of a smaller one, and no
order of creation matters. The status remembers it. A node that comes while it lasts is affected as
well, if it is drawn and there are not enough yet. What it wrote is taken back at its end, and when
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
from kubescene.controllers.builtin.nodes.node_groups import LABEL, NODE_GROUP
from kubescene.controllers.builtin.outages.definition import GONE, OF_GROUPS, OUTAGE
from kubescene.controllers.builtin.outages.effects import (
    EFFECTS,
    NAME,
    RUNNING,
    ended,
    place_of,
    released,
)
from kubescene.controllers.builtin.outages.spec import (
    SPREADING,
    amount,
    lasts,
    length,
    spec_faults,
)
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

PENDING, ENDED, REFUSED = "Pending", "Ended", "Refused"


class OutageReconciler:
    """Begins Outages, and takes them back."""

    name = NAME
    kinds = (OUTAGE, NODE)

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._deleted: dict[ObjectKey, JsonObject] = {}
        self._spreading: dict[ObjectKey, None] = {}
        """Those that nodes can come to."""
        self._met: set[ObjectKey] = set()
        """And those of them to which one has come."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource.resource == "nodes":
            is_new = change.type is ChangeType.ADDED
            self._met.update(self._spreading if is_new else ())
            return [*self._spreading] if is_new else ()
        key = ObjectKey("", change.record.name)
        self._spreading.pop(key, None)
        if change.type is ChangeType.DELETED:
            self._deleted[key] = change.object
        elif phase_of(change.object) == RUNNING and change.object["status"]["what"] in SPREADING:
            self._spreading[key] = None
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
            **affected(outage, nodes, there),
        }
        writes = begun(outage, what, nodes, now)
        return Plan((*writes, told(outage, **status)), notices=(extent(outage, status, there),))

    def _go_on(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        ends = outage["status"].get("ends")
        wait = None if ends is None else parse_time(ends) - now
        if wait is not None and wait <= 0:
            return self._end(outage, reader)
        key = ObjectKey("", name_of(outage))
        writes = self._spread(outage, reader, now) if key in self._met else ()
        self._met.discard(key)
        return Plan(writes, wait)

    def _spread(self, outage: JsonObject, reader: Reader, now: int) -> Sequence[Write]:
        """Nodes have come: those that are drawn are affected, too; nobody is let off for them.

        Nobody is while its spec makes no sense: what is done to them would have to stand there.
        """
        if self._fault_of_change(outage):
            return ()
        before = outage["status"].get("affected") or []
        chosen = self._chosen(outage["spec"], reader)
        present = {name_of(node) for node in chosen}
        room = amount(outage["spec"], len(chosen)) - sum(name in present for name in before)
        drawn, there = self._drawn(outage, reader)
        fresh = [node for node in drawn if name_of(node) not in before][: max(room, 0)]
        if not fresh:
            return ()
        what, everyone = outage["status"]["what"], sorted([*before, *map(name_of, fresh)])
        known = [node for node in chosen if name_of(node) in everyone]
        status = {**affected(outage, known, there), "affected": everyone}
        return (*begun(outage, what, fresh, now), told(outage, **status))

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
        new = {"ends": ends, **affected(outage, nodes, there)}
        wait = None if ends is None else parse_time(ends) - now
        return Plan((*writes, told(outage, **new)), wait, (extent(outage, new, there),))

    def _fault_of_change(self, outage: JsonObject) -> str:
        if outage["spec"]["what"] != outage["status"]["what"]:
            return "what: it cannot become something else while it lasts; create another one"
        return str(next(spec_faults(outage["spec"]), ""))

    def _drawn(self, outage: JsonObject, reader: Reader) -> tuple[list[JsonObject], int]:
        """Those of the nodes that are affected, by name, and how many nodes there are at all."""
        everyone = len(reader.list(place_of(outage["spec"]["what"])))
        nodes = self._chosen(outage["spec"], reader)
        count = amount(outage["spec"], len(nodes))
        if count == len(nodes):
            return nodes, everyone
        stream = f"outage/{name_of(outage)}"
        ranks = {
            name: self._streams.single(f"{stream}/{name}").next_u64()
            for name in map(name_of, nodes)
        }
        chosen = {*sorted(ranks, key=lambda name: (ranks[name], name))[:count]}
        return [node for node in nodes if name_of(node) in chosen], everyone

    def _chosen(self, spec: JsonObject, reader: Reader) -> list[JsonObject]:
        """The nodes, or node groups, that the selectors choose, by name."""
        if spec["what"] in OF_GROUPS:
            chosen = reader.list(NODE_GROUP, labels=from_label_selector(spec["groups"] or {}))
            return sorted(chosen, key=lambda group: str(name_of(group)))
        nodes = list(reader.list(NODE, labels=from_label_selector(spec.get("nodes") or {})))
        if "groups" in spec:
            listed = reader.list(NODE_GROUP, labels=from_label_selector(spec["groups"] or {}))
            groups = {name_of(group) for group in listed}
            nodes = [node for node in nodes if group_of(node) in groups]
        return sorted(nodes, key=lambda node: str(name_of(node)))


def group_of(node: JsonObject) -> str | None:
    """The name of the NodeGroup that a node is of."""
    found: str | None = (node["metadata"].get("labels") or {}).get(LABEL)
    return found


def begun(outage: JsonObject, what: str, nodes: Sequence[JsonObject], now: int) -> list[Write]:
    """What an Outage does to nodes in its beginning."""
    effect, instant = EFFECTS[what], format_time(now)
    return [write for node in nodes for write in effect.begin(outage, node, instant)]


def refusal(outage: JsonObject, fault: str) -> Plan:
    notice = notice_of(outage, WARNING, "OutageRefused", fault)
    return Plan((told(outage, phase=REFUSED, message=fault),), notices=(notice,))


def affected(outage: JsonObject, nodes: Sequence[JsonObject], there: int) -> JsonObject:
    """What the status says of whom it affects; of nobody and of everybody also in words."""
    message, where = None, places_of(outage)
    if not nodes:
        message = f"{where}: the selector chooses none of {there}"
    elif len(nodes) == there:
        message = f"{where}: all {there} are affected"
    return {"affected": [name_of(node) for node in nodes], "message": message}


def places_of(outage: JsonObject) -> str:
    """The field that chooses whom it affects."""
    return "groups" if outage["spec"]["what"] in OF_GROUPS else "nodes"


def extent(outage: JsonObject, status: JsonObject, there: int) -> Notice:
    """The event that says how far it goes."""
    if status["message"]:
        reason = "AllAffected" if status["affected"] else "NobodyAffected"
        return notice_of(outage, WARNING, reason, status["message"])
    message = f"{len(status['affected'])} of {there} {places_of(outage)} are affected"
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
