"""NodeGroups and Instances: machines that a provider lends, and what they take and cost.

A NodeGroup says how many machines of one sort there should be. An Instance is one machine, from
its order to the end of its bill; its Node exists from its registration on. What a machine takes
(to boot, to register, to get ready, to go) is drawn when it is ordered and stands in its spec, so
that everybody can read it, and what comes later is a function of the object.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from json import loads
from typing import Any, NamedTuple

from kubescene.api.own_kinds import (
    AMOUNT,
    ANYTHING,
    COUNT,
    GROUP,
    MOST,
    TEXT,
    definition,
    own_kind,
)
from kubescene.clock import Streams, format_time, parse_time
from kubescene.clock.distributions import Distribution, constant, read_distribution
from kubescene.clock.randomness import Stream
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.nodes.node_conditions import TOPOLOGY
from kubescene.durations import format_duration, parse_duration
from kubescene.types import JsonObject

NODE_GROUP, INSTANCE = own_kind("NodeGroup"), own_kind("Instance")
LABEL = f"{GROUP}/node-group"
FINALIZER = f"{GROUP}/instance"
ZONE = f"{TOPOLOGY}/zone"
PROVIDER = "kubescene"
SOLD_OUT, SLOW = f"no-capacity.{GROUP}/", f"boots-slow.{GROUP}/"
FAILING = f"boots-fail.{GROUP}/"
"""Annotations of a group that begin so say what is wrong with its orders for a while."""

BOOTING, RUNNING, REGISTERED = "Booting", "Running", "Registered"
FAILED, DELETING = "Failed", "Deleting"
ON_DEMAND, SPOT = "OnDemand", "Spot"
OUT_OF_RESOURCE, OTHER = "OutOfResource", "Other"
"""Classes of errors, as the cluster autoscaler tells them apart."""

TIMES = {"boot": ("time", "registration", "ready"), "shutdown": ("time",)}
"""What of a group is an amount of time."""
INSTANTS = ("launchedAt", "readyAt", "failedAt", "deletedAt", "endedAt")
"""When something became of a machine."""
_MONEY: JsonObject = {
    "type": "string",
    "pattern": r"^[0-9]{1,12}(\.[0-9]{1,12})?$",
    "description": 'A decimal number in quotes, such as "0.096".',
}
_CURRENCY: JsonObject = {"type": "string", "maxLength": 16, "default": "USD"}
_CAPACITY: JsonObject = {"type": "string", "enum": [ON_DEMAND, SPOT], "default": ON_DEMAND}
_ERROR: JsonObject = {
    "class": {"type": "string", "enum": [OUT_OF_RESOURCE, OTHER]},
    "code": TEXT,
    "message": TEXT,
}
_TEMPLATE: JsonObject = {
    "type": "object",
    "description": "The nodes: metadata.labels, metadata.annotations, spec and status.",
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {
                name: {"type": "object", "additionalProperties": TEXT}
                for name in ("labels", "annotations")
            },
        },
        "spec": ANYTHING,
        "status": ANYTHING,
    },
}
_GROUP_SPEC: JsonObject = {
    "type": "object",
    "description": "How many machines, of what sort, and what they take and cost.",
    "required": ["template"],
    "properties": {
        "size": {**COUNT, "description": "How many there should be; min if it is not said."},
        "min": {**COUNT, "description": "No autoscaler goes below."},
        "max": {**COUNT, "description": "No autoscaler goes beyond; absent: not autoscaled."},
        "template": _TEMPLATE,
        "zones": {
            "type": "array",
            "maxItems": 64,
            "items": TEXT,
            "description": "Machines are spread over them, in turn.",
        },
        "capacityType": _CAPACITY,
        "price": {
            "type": "object",
            "required": ["perHour"],
            "properties": {"perHour": _MONEY, "spot": _MONEY, "currency": _CURRENCY},
        },
        "boot": {
            "type": "object",
            "properties": {
                "time": {**AMOUNT, "description": "From the order until the machine runs."},
                "registration": {**AMOUNT, "description": "From then until there is a Node."},
                "ready": {**AMOUNT, "description": "From then until the Node is ready."},
            },
        },
        "shutdown": {
            "type": "object",
            "properties": {
                "time": {**AMOUNT, "description": "From the deletion to the end of the bill."}
            },
        },
        "quota": {**COUNT, "description": "Machines beyond it fail with QuotaExceeded."},
        "faults": {
            "type": "object",
            "description": "Orders that fail.",
            "required": ["share"],
            "properties": {
                "share": {"type": "number", "minimum": 0, "maximum": 1},
                "after": {**AMOUNT, "description": "How long after the order."},
                **_ERROR,
            },
        },
        "replace": {"type": "boolean", "description": "Whether lost machines are replaced."},
        "options": {**ANYTHING, "description": "Flags of the cluster autoscaler for this group."},
    },
}
_GROUP_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("instances", "nodes", "failed"), COUNT),
        "ordered": {"type": "integer", "description": "How many machines there ever were."},
        "observedGeneration": {"type": "integer"},
        "message": {**TEXT, "description": "Why there are no more."},
    },
}
_INSTANCE_SPEC: JsonObject = {
    "type": "object",
    "description": "One machine: whose, where, and what it takes.",
    "required": ["group"],
    "properties": {
        **dict.fromkeys(("group", "zone", "capacityType"), TEXT),
        "price": {"type": "object", "properties": {"perHour": _MONEY, "currency": TEXT}},
        "boot": {"type": "object", "properties": dict.fromkeys(TIMES["boot"], TEXT)},
        "shutdown": {"type": "object", "properties": {"time": TEXT}},
        "fault": {"type": "object", "properties": {"after": TEXT, **_ERROR}},
        "template": _TEMPLATE,
    },
}
_INSTANCE_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": [BOOTING, RUNNING, REGISTERED, FAILED, DELETING]},
        **dict.fromkeys(("node", *INSTANTS), TEXT),
        "error": {"type": "object", "properties": _ERROR},
    },
}
DEFINITIONS: tuple[JsonObject, ...] = (
    definition(
        NODE_GROUP,
        _GROUP_SPEC,
        _GROUP_STATUS,
        short=["ng"],
        scale=(".spec.size", ".status.instances"),
        columns=[
            ("Size", "integer", ".spec.size"),
            ("Min", "integer", ".spec.min"),
            ("Max", "integer", ".spec.max"),
            ("Instances", "integer", ".status.instances"),
            ("Nodes", "integer", ".status.nodes"),
            ("Per-Hour", "string", ".spec.price.perHour"),
        ],
    ),
    definition(
        INSTANCE,
        _INSTANCE_SPEC,
        _INSTANCE_STATUS,
        columns=[
            ("Group", "string", ".spec.group"),
            ("Phase", "string", ".status.phase"),
            ("Zone", "string", ".spec.zone"),
            ("Node", "string", ".status.node"),
            ("Error", "string", ".status.error.code"),
        ],
    ),
)


# -- groups ------------------------------------------------------------------------------------


def size_of(group: JsonObject) -> int:
    """How many machines a group should have."""
    spec = group["spec"]
    return int(spec.get("size", spec.get("min", 0)))


def fault_of(group: JsonObject) -> str:
    """Why nothing is done about a group; empty if it makes sense."""
    spec, size = group["spec"], size_of(group)
    least, most = spec.get("min", 0), spec.get("max", MOST)
    if least > most:
        return f"spec.min: {least} is larger than max, which is {most}"
    if not least <= size <= most:
        bound = f"min, which is {least}" if size < least else f"max, which is {most}"
        return f"spec.size: {size} is {'below' if size < least else 'beyond'} {bound}"
    for part, names in (*TIMES.items(), ("faults", ("after",))):
        for name in names:
            try:
                time_of(group, part, name)
            except (ValueError, TypeError) as error:
                return f"spec.{part}.{name}: {error}"
    try:
        troubles_of(group)
    except ValueError as error:
        return str(error)
    return ""


class Troubles(NamedTuple):
    """What is wrong with the orders of a group, as its annotations say, by name."""

    sold_out: JsonObject | None = None
    """The error that orders end in."""
    factor: Fraction = Fraction(1)
    """Boots take so many times as long."""
    failing: tuple[tuple[str, JsonObject], ...] = ()
    """Shares of orders that fail, and how."""


def troubles_of(group: JsonObject) -> Troubles:
    """Raises `ValueError` for annotations that make no sense."""
    annotations = group["metadata"].get("annotations") or {}
    found, failing = Troubles(), list[tuple[str, JsonObject]]()
    for name in sorted(annotations):
        text = annotations[name]
        try:
            if name.startswith(SOLD_OUT) and found.sold_out is None:
                found = found._replace(sold_out=dict(loads(text)))
            elif name.startswith(SLOW):
                found = found._replace(factor=found.factor * positive(text))
            elif name.startswith(FAILING):
                told = dict(loads(text))
                positive(str(told.get("share", 1)))
                failing.append((name, told))
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise ValueError(f"annotation {name}: {text!r} makes no sense: {error}") from None
    return found._replace(failing=tuple(failing))


def positive(text: str) -> Fraction:
    number = Fraction(text)
    if not 0 < number <= MOST:
        raise ValueError("it must be a number above 0")
    return number


def time_of(group: JsonObject, part: str, name: str) -> Distribution:
    """An amount of time in the spec of a group; nothing is said: none."""
    value = (group["spec"].get(part) or {}).get(name)
    return constant(0) if value is None else read_distribution(value, parse_duration)


# -- orders ------------------------------------------------------------------------------------


class Orders:
    """New machines of groups: what each takes is drawn from a stream of its own name."""

    def __init__(self, streams: Streams, *, at_once: bool = False) -> None:
        self._streams = streams
        self._at_once = at_once
        """Whether machines take no time at all."""

    def of(self, group: JsonObject, number: int, *, over_quota: bool) -> JsonObject:
        """The machine of that number; names are never used twice."""
        name = f"{group['metadata']['name']}-{number}"
        spec: JsonObject = {
            "group": group["metadata"]["name"],
            "capacityType": group["spec"].get("capacityType", ON_DEMAND),
            **self._drawn(group, name),
        }
        if zones := group["spec"].get("zones"):
            spec["zone"] = zones[number % len(zones)]
        if price := price_of(group):
            spec["price"] = price
        if over_quota:
            spec["fault"] = beyond_quota(group)
        elif fault := self._trouble(group, name) or self._fault(group, name):
            spec["fault"] = fault
        spec["template"] = group["spec"]["template"]
        return {
            "apiVersion": INSTANCE.api_version,
            "kind": INSTANCE.kind,
            "metadata": {
                "name": name,
                "labels": {LABEL: group["metadata"]["name"]},
                "finalizers": [FINALIZER],
                "ownerReferences": [controller_of(group)],
            },
            "spec": spec,
        }

    def _drawn(self, group: JsonObject, name: str) -> JsonObject:
        if self._at_once:
            return {}
        factors = {"boot": troubles_of(group).factor}
        return {
            part: {
                each: format_duration(
                    int(
                        time_of(group, part, each).draw(self._stream(name, each))
                        * factors.get(part, 1)
                    )
                )
                for each in names
            }
            for part, names in TIMES.items()
            if group["spec"].get(part)
        }

    def _trouble(self, group: JsonObject, name: str) -> JsonObject | None:
        """What an outage makes of an order."""
        troubles = troubles_of(group)
        if troubles.sold_out is not None:
            return {
                "after": "0s",
                "class": OUT_OF_RESOURCE,
                "code": troubles.sold_out.get("code", "NoCapacity"),
                "message": troubles.sold_out.get("message", "there are no more machines"),
            }
        for outage, told in troubles.failing:
            share = round(Fraction(str(told.get("share", 1))) * 10**9)
            if self._stream(name, outage).below(10**9) < share:
                return {
                    "after": self._drawn(group, name).get("boot", {}).get("time", "0s"),
                    "class": OTHER,
                    "code": told.get("code", "BootFailed"),
                    "message": told.get("message", "the machine did not boot"),
                }
        return None

    def _fault(self, group: JsonObject, name: str) -> JsonObject | None:
        faults = group["spec"].get("faults")
        if not faults or self._stream(name, "fault").below(10**9) >= round(faults["share"] * 1e9):
            return None
        after = time_of(group, "faults", "after").draw(self._stream(name, "fault-after"))
        return {
            "after": format_duration(after),
            "class": faults.get("class", OTHER),
            "code": faults.get("code", "BootFailed"),
            "message": faults.get("message", "the machine did not boot"),
        }

    def _stream(self, name: str, what: str) -> Stream:
        return self._streams.stream(f"nodegroup/{name}/{what}")


def price_of(group: JsonObject) -> JsonObject | None:
    """What an hour of one of its machines costs, if that is said."""
    price = group["spec"].get("price")
    if not price:
        return None
    is_spot = group["spec"].get("capacityType") == SPOT
    hourly = price.get("spot", price["perHour"]) if is_spot else price["perHour"]
    return {"perHour": hourly, "currency": price.get("currency", "USD")}


def beyond_quota(group: JsonObject) -> JsonObject:
    return {
        "after": "0s",
        "class": OUT_OF_RESOURCE,
        "code": "QuotaExceeded",
        "message": f"the quota of {group['spec']['quota']} machines is used up",
    }


# -- machines ----------------------------------------------------------------------------------


def phase_of(instance: JsonObject) -> str:
    """Empty: it was ordered, and nothing has been heard of it yet."""
    return str((instance.get("status") or {}).get("phase", ""))


def takes(instance: JsonObject, part: str, name: str) -> int:
    """How long a machine takes, in nanoseconds; raises ValueError for what is no duration."""
    return parse_duration((instance["spec"].get(part) or {}).get(name, "0s"))


def launched(instance: JsonObject) -> int:
    return parse_time(instance["status"]["launchedAt"])


def node_from(instance: JsonObject) -> JsonObject:
    """The Node of a machine that registers itself."""
    name, spec = instance["metadata"]["name"], instance["spec"]
    template = spec.get("template") or {}
    given = template.get("metadata") or {}
    labels = {"kubernetes.io/hostname": name, LABEL: spec["group"]}
    if zone := spec.get("zone"):
        labels[ZONE] = zone
    metadata: JsonObject = {
        "name": name,
        "labels": {**(given.get("labels") or {}), **labels},
        "ownerReferences": [controller_of(instance)],
    }
    if annotations := given.get("annotations"):
        metadata["annotations"] = annotations
    node: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    node["spec"] = {"providerID": f"{PROVIDER}:///{name}", **(template.get("spec") or {})}
    node["status"] = dict(template.get("status") or {})
    if takes(instance, "boot", "ready"):
        node["status"]["conditions"] = [*_others(node["status"]), not_ready()]
    return node


def not_ready() -> JsonObject:
    return {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "container runtime network not ready",
    }


def ready_conditions(node: JsonObject, now: int) -> list[JsonObject]:
    """The conditions of a node that has got ready."""
    is_ready: JsonObject = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastTransitionTime": format_time(now),
    }
    return [*_others(node["status"]), is_ready]


def _others(status: Mapping[str, Any]) -> Iterator[JsonObject]:
    return (each for each in status.get("conditions") or () if each.get("type") != "Ready")
