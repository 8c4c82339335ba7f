"""Outages: nodes that fall silent, are gone, or are reclaimed, for a while or for good.

Who is affected is drawn when an Outage begins, from the stream of its name; its status remembers
it. What it wrote is taken back at its end, and when it is deleted before.
"""

from collections.abc import Iterable
from fractions import Fraction

from kubescene.api.kinds import NODE
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.api.selectors.requirements import SelectorError
from kubescene.client import ObjectRef, Reader
from kubescene.clock import Streams, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import LateReconcilerController
from kubescene.controllers.builtin.nodes.node_conditions import NO_SCHEDULE, taint, taints_of
from kubescene.controllers.kubelet.heartbeats import ANNOTATION, STOPPED
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.durations import parse_duration
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject

GROUP = "kubescene.dev"
OUTAGE = GroupVersionKind(GROUP, "v1alpha1", "Outage")
RECLAIMED = f"{GROUP}/spot-reclaim"
SILENT, GONE, RECLAIM = "NodesSilent", "NodesGone", "SpotReclaim"
SIMULATED = (SILENT, GONE, RECLAIM)
NOT_YET = ("ImagePull", "CpuStolen", "NoCapacity", "BootsSlow", "BootsFail", "MetricsGap")
PENDING, RUNNING, ENDED, REFUSED = "Pending", "Running", "Ended", "Refused"
NOTICE = "2m"

_TEXT: JsonObject = {"type": "string"}
_SELECTOR: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPEC: JsonObject = {
    "type": "object",
    "description": "What goes wrong, where, when and for how long.",
    "required": ["what"],
    "properties": {
        "what": {"type": "string", "enum": [*SIMULATED, *NOT_YET]},
        "nodes": {**_SELECTOR, "description": "A label selector; empty: all nodes."},
        "pods": {**_SELECTOR, "description": "Not simulated yet."},
        "groups": {**_SELECTOR, "description": "Not simulated yet."},
        "share": {"type": "number", "description": "The share of them, above 0 and at most 1."},
        "count": {"type": "integer", "minimum": 1, "description": "How many of them."},
        "after": {**_TEXT, "description": "How long after its creation it begins."},
        "for": {**_TEXT, "description": "How long it lasts; absent: for good."},
        "notice": {**_TEXT, "description": "SpotReclaim: from the notice to the end."},
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("phase", "began", "ends", "message"), _TEXT),
        "affected": {"type": "array", "items": _TEXT},
    },
}
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"outages.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": OUTAGE.kind,
            "listKind": "OutageList",
            "plural": "outages",
            "singular": "outage",
            "shortNames": ["out"],
        },
        "versions": [
            {
                "name": OUTAGE.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "What", "type": "string", "jsonPath": ".spec.what"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "Began", "type": "string", "jsonPath": ".status.began"},
                    {"name": "Ends", "type": "string", "jsonPath": ".status.ends"},
                ],
            }
        ],
    },
}


class OutageReconciler:
    """Begins Outages, and takes them back."""

    name = "outage"
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
            taken_back = ends(deleted, reader)
        outage = found(key, reader)
        if outage is None or phase_of(outage) in (ENDED, REFUSED):
            return Plan(taken_back)
        plan = self._step(outage, reader, now)
        return Plan((*taken_back, *plan.writes), plan.requeue_after)

    def refused(self, key: ObjectKey, write: Write, error: ApiError, reader: Reader) -> Plan:
        del key, write, reader
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _step(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        status = outage.get("status") or {}
        if phase_of(outage) == RUNNING:
            if "ends" not in status:
                return NOTHING
            if (wait := parse_time(status["ends"]) - now) > 0:
                return Plan(requeue_after=wait)
            last = reclaimed(outage, reader) if what_of(outage) == RECLAIM else ends(outage, reader)
            return Plan((*last, told(outage, phase=ENDED)))
        if fault := fault_of(outage["spec"]):
            return Plan((told(outage, phase=REFUSED, message=fault),))
        begins = parse_time(outage["metadata"]["creationTimestamp"]) + length(outage, "after", "0")
        if begins > now:
            pending = () if phase_of(outage) else (told(outage, phase=PENDING),)
            return Plan(pending, begins - now)
        return self._begin(outage, reader, now)

    def _begin(self, outage: JsonObject, reader: Reader, now: int) -> Plan:
        nodes = self._drawn(outage, reader)
        names = [node["metadata"]["name"] for node in nodes]
        status: JsonObject = {"began": format_time(now), "affected": names}
        what, lasts = what_of(outage), None
        if what == GONE:
            deletions = [Delete(ObjectRef.to(node)) for node in nodes]
            return Plan((*deletions, told(outage, phase=ENDED, **status)))
        if what == RECLAIM:
            lasts = length(outage, "notice", NOTICE)
            writes = [noticed(node, format_time(now)) for node in nodes]
        else:
            lasts = length(outage, "for", "0") if "for" in outage["spec"] else None
            writes = [annotated(node, STOPPED) for node in nodes]
        if lasts is not None:
            status["ends"] = format_time(now + lasts)
        return Plan((*writes, told(outage, phase=RUNNING, **status)))

    def _drawn(self, outage: JsonObject, reader: Reader) -> list[JsonObject]:
        """Those of the nodes that are affected, in the order of their names."""
        spec = outage["spec"]
        nodes = list(reader.list(NODE, labels=from_label_selector(spec["nodes"])))
        nodes.sort(key=lambda node: str(node["metadata"]["name"]))
        count = min(spec.get("count", len(nodes)), len(nodes))
        if "share" in spec:
            count = -int(-Fraction(str(spec["share"])) * len(nodes) // 1)
        if count == len(nodes):
            return nodes
        stream = self._streams.stream(f"outage/{outage['metadata']['name']}")
        places = list(range(len(nodes)))
        drawn = [places.pop(stream.below(len(places))) for _ in range(count)]
        return [nodes[place] for place in sorted(drawn)]


def fault_of(spec: JsonObject) -> str:
    """Why an Outage cannot begin; empty if it can."""
    what = spec["what"]
    if what in NOT_YET:
        return f"what: {what} is not simulated yet; there are: {', '.join(SIMULATED)}"
    for name in ("pods", "groups"):
        if name in spec:
            return f"{name}: not simulated yet; {what} needs nodes"
    if "nodes" not in spec:
        return f"nodes: {what} needs a selector; write {{}} for all nodes"
    if "share" in spec and "count" in spec:
        return "share, count: only one of them can be given"
    if not 0 < spec.get("share", 1) <= 1:
        return f"share: must be above 0 and at most 1, not {spec['share']}"
    if "for" in spec and what != SILENT:
        return f"for: nodes do not come back from {what}; leave it away"
    if "notice" in spec and what != RECLAIM:
        return f"notice: only {RECLAIM} has one"
    return unreadable(spec)


def unreadable(spec: JsonObject) -> str:
    """Which selector or duration makes no sense."""
    try:
        from_label_selector(spec["nodes"])
    except (SelectorError, TypeError, AttributeError, KeyError) as error:
        return f"nodes: {error}"
    for name in ("after", "for", "notice"):
        try:
            parse_duration(spec.get(name, "0"))
        except ValueError as error:
            return f"{name}: {error}"
    return ""


def ends(outage: JsonObject, reader: Reader) -> list[Write]:
    """What takes a running Outage back; nodes that another one holds stay with it."""
    what, name = what_of(outage), outage["metadata"]["name"]
    others = [o for o in reader.list(OUTAGE) if o["metadata"]["name"] != name]
    held = {n for o in others if is_running(o, what) for n in o["status"]["affected"]}
    nodes = [node for node in affected(outage, reader) if node["metadata"]["name"] not in held]
    if what == SILENT:
        return [annotated(node, None) for node in nodes]
    return [unnoticed(node) for node in nodes]


def reclaimed(outage: JsonObject, reader: Reader) -> list[Write]:
    return [Delete(ObjectRef.to(node)) for node in affected(outage, reader)]


def affected(outage: JsonObject, reader: Reader) -> list[JsonObject]:
    """Those of its nodes that are still there."""
    names = (outage.get("status") or {}).get("affected") or ()
    nodes = (reader.find(ObjectRef(NODE, name)) for name in names)
    return [node for node in nodes if node is not None]


def annotated(node: JsonObject, value: str | None) -> Patch:
    return Patch(ObjectRef.to(node), {"metadata": {"annotations": {ANNOTATION: value}}})


def noticed(node: JsonObject, now: str) -> Patch:
    """The notice that a node will be reclaimed: a taint and an event."""
    others = [each for each in taints_of(node) if each["key"] != RECLAIMED]
    taints = [*others, taint(RECLAIMED, NO_SCHEDULE, now)]
    message = "The provider takes this node back soon"
    notice = Notice(regarding(node), WARNING, "SpotReclaim", message, OutageReconciler.name)
    return Patch(ObjectRef.to(node), {"spec": {"taints": taints}}, notice=notice)


def unnoticed(node: JsonObject) -> Patch:
    taints = [each for each in taints_of(node) if each["key"] != RECLAIMED]
    return Patch(ObjectRef.to(node), {"spec": {"taints": taints or None}})


def told(outage: JsonObject, **status: object) -> Patch:
    return Patch(ObjectRef.to(outage), {"status": status}, subresource="status")


def what_of(outage: JsonObject) -> str:
    return str(outage["spec"]["what"])


def phase_of(outage: JsonObject) -> str:
    return str((outage.get("status") or {}).get("phase", ""))


def is_running(outage: JsonObject, what: str) -> bool:
    return phase_of(outage) == RUNNING and what_of(outage) == what


def length(outage: JsonObject, name: str, default: str) -> int:
    return parse_duration(outage["spec"].get(name, default))


def found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    """The Outage; None if it is gone, or its kind is."""
    try:
        return reader.find(ObjectRef(OUTAGE, key.name))
    except BadRequestError:
        return None


def outages(context: ControllerContext) -> LateReconcilerController:
    """The factory of the controller."""
    return LateReconcilerController(OutageReconciler(context.streams), context)
