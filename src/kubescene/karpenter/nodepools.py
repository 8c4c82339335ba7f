"""NodePools as Karpenter reads them: requirements, limits, weights, and disruption budgets."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from math import ceil
from typing import Any

import orjson

from kubescene.api.cron import parse_schedule
from kubescene.api.quantity import QuantityError, parse
from kubescene.api.resource_requests import Nanos
from kubescene.durations import parse_duration
from kubescene.karpenter.requirements import (
    DOMAIN,
    NODE_POOL,
    Requirements,
    from_expressions,
    from_labels,
)
from kubescene.types import JsonObject, ReadOnlyObject

POOL_HASH = f"{DOMAIN}/nodepool-hash"
POOL_HASH_VERSION = f"{DOMAIN}/nodepool-hash-version"
RELAXED = f"{DOMAIN}/nodeclaim-min-values-relaxed"
HASH_VERSION = "v3"
NEVER = "Never"
WHEN_EMPTY = "WhenEmpty"
WHEN_UNDERUTILIZED = "WhenEmptyOrUnderutilized"
BALANCED = "Balanced"
POLICIES = (WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED)
UNDERUTILIZED, EMPTY, DRIFTED = "Underutilized", "Empty", "Drifted"
ANY_NUMBER = 2**31 - 1
_DEFAULT_BUDGETS = ({"nodes": "10%"},)
_PERCENT = re.compile(r"([0-9]+)%")


class NodePool:
    """One pool at one revision."""

    def __init__(self, obj: ReadOnlyObject) -> None:
        self.object = obj
        self.name: str = obj["metadata"]["name"]
        self.spec: Mapping[str, Any] = obj["spec"]

    def __repr__(self) -> str:
        return f"<NodePool {self.name}>"

    @property
    def _template(self) -> Mapping[str, Any]:
        template: Mapping[str, Any] = self.spec["template"]
        return template

    @property
    def _machine(self) -> Mapping[str, Any]:
        machine: Mapping[str, Any] = self._template["spec"]
        return machine

    @property
    def _disruption(self) -> Mapping[str, Any]:
        disruption: Mapping[str, Any] = self.spec.get("disruption") or {}
        return disruption

    @property
    def weight(self) -> int:
        return int(self.spec.get("weight") or 0)

    @property
    def taints(self) -> Sequence[ReadOnlyObject]:
        return self._machine.get("taints") or ()

    @cached_property
    def labels(self) -> dict[str, str]:
        """Of its claims."""
        given = (self._template.get("metadata") or {}).get("labels") or {}
        own = {NODE_POOL: self.name}
        if ref := self._machine.get("nodeClassRef"):
            own[f"{ref['group']}/{ref['kind'].lower()}"] = ref["name"]
        return {**given, **own}

    @cached_property
    def own_requirements(self) -> Requirements:
        """What its author says, before anything is added to it."""
        found = from_expressions(self._machine.get("requirements") or ())
        labels = (self._template.get("metadata") or {}).get("labels") or {}
        return found.adding(*from_labels(labels).values())

    @cached_property
    def requirements(self) -> Requirements:
        found = from_expressions(self._machine.get("requirements") or ())
        return found.adding(*from_labels(self.labels).values())

    @cached_property
    def limits(self) -> Nanos:
        return {k: parse(v).nanos for k, v in (self.spec.get("limits") or {}).items()}

    @property
    def policy(self) -> str:
        return str(self._disruption.get("consolidationPolicy") or WHEN_UNDERUTILIZED)

    @cached_property
    def consolidate_after(self) -> int | None:
        """None: never."""
        text = self._disruption.get("consolidateAfter", "0s")
        return None if text == NEVER else parse_duration(text)

    @property
    def expire_after(self) -> int | None:
        text = self._machine.get("expireAfter", "720h")
        return None if text == NEVER else parse_duration(text)

    @cached_property
    def hash(self) -> str:
        """Of what of its template makes its nodes drift: all but requirements."""
        machine = {k: v for k, v in self._machine.items() if k != "requirements"}
        seen = [self._template.get("metadata") or {}, machine]
        text = orjson.dumps(seen, option=orjson.OPT_SORT_KEYS)
        return str(int.from_bytes(sha256(text).digest()[:8], "big"))

    def claim(
        self,
        labels: Mapping[str, str],
        requirements: list[JsonObject],
        requests: JsonObject,
        relaxed: str,
    ) -> JsonObject:
        """A NodeClaim of this pool, without a name."""
        given = (self._template.get("metadata") or {}).get("annotations") or {}
        own = {POOL_HASH: self.hash, POOL_HASH_VERSION: HASH_VERSION, RELAXED: relaxed}
        kept = ("taints", "startupTaints", "nodeClassRef", "terminationGracePeriod")
        spec = {name: self._machine[name] for name in kept if self._machine.get(name)}
        return {
            "apiVersion": f"{DOMAIN}/v1",
            "kind": "NodeClaim",
            "metadata": {"labels": {**labels}, "annotations": {**given, **own}},
            "spec": {
                **spec,
                "expireAfter": self._machine.get("expireAfter", "720h"),
                "requirements": requirements,
                "resources": {"requests": requests},
            },
        }

    @cached_property
    def fault(self) -> str:
        """Why nothing is done about it, field first; empty if it makes sense."""
        parts: Mapping[str, Callable[[], object]] = {
            "spec.template.spec.requirements": lambda: self.requirements,
            "spec.template.spec.expireAfter": lambda: self.expire_after,
            "spec.limits": lambda: self.limits,
            "spec.disruption.consolidateAfter": lambda: self.consolidate_after,
            "spec.disruption.budgets": lambda: [allowed(each, 100, 0) for each in self._budgets],
        }
        for where, read in parts.items():
            try:
                read()
            except (ValueError, QuantityError, KeyError, TypeError) as error:
                return f"{where}: {error}"
        if self.policy not in POLICIES:
            known = ", ".join(POLICIES)
            return f"spec.disruption.consolidationPolicy: {self.policy!r} is none of {known}"
        if self.spec.get("replicas") is not None:
            return "spec.replicas: static capacity is not simulated"
        return ""

    # -- budgets ---------------------------------------------------------------------------

    @property
    def _budgets(self) -> Sequence[ReadOnlyObject]:
        given = self._disruption.get("budgets")
        return _DEFAULT_BUDGETS if given is None else given

    @property
    def has_schedules(self) -> bool:
        """Whether what its budgets allow depends on the time."""
        return any(each.get("schedule") is not None for each in self._budgets)

    def allowed(self, nodes: int, reason: str, now: int) -> int:
        """How many of so many nodes may be disrupted at once for a reason; a budget that makes no
        sense allows nothing."""
        least = ANY_NUMBER
        for each in self._budgets:
            try:
                count = allowed(each, nodes, now)
            except ValueError:
                return 0
            if not each.get("reasons") or reason in each["reasons"]:
                least = min(least, count)
        return least


def in_order(pools: Iterable[NodePool]) -> list[NodePool]:
    """The heaviest first, then the last by name."""
    by_name = sorted(pools, key=lambda each: each.name, reverse=True)
    return sorted(by_name, key=lambda each: -each.weight)


def allowed(budget: ReadOnlyObject, nodes: int, now: int) -> int:
    """How many nodes this budget allows; `ValueError` if it makes no sense."""
    schedule, duration = budget.get("schedule"), budget.get("duration")
    if (schedule is None) is not (duration is None):
        raise ValueError("schedule and duration belong together")
    if schedule is not None and duration is not None:
        begin = now - parse_duration(duration)
        hit = parse_schedule(schedule).next(begin)
        if hit is None or hit > now:
            return ANY_NUMBER
    text = str(budget["nodes"])
    if text.isdigit():
        return int(text)
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise ValueError(f"nodes is {text!r}, neither a number nor a percentage")
    return ceil(int(found[1]) * nodes / 100)
