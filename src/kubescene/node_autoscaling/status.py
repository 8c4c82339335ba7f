"""The status of the autoscaler: what its ConfigMap says of the cluster and of each group."""

import re
from collections.abc import Sequence
from math import inf

import yaml
from msgspec import Struct

from kubescene.clock.timestamps import format_time
from kubescene.durations import SECOND
from kubescene.node_autoscaling.cluster_state import ClusterState, Readiness, StatusCondition
from kubescene.node_autoscaling.provider import Provider
from kubescene.types import JsonObject

LONGEST_MESSAGE = 500
_CUT = "<truncated>"
_OTHER_IN_GO = re.compile(r"[yYnN]|0o[0-7]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
"""Texts that Go's YAML library quotes beside those that Python's takes for something else."""


class Since(Struct, frozen=True):
    """A condition, when it was last looked at, and since when it holds; None: never."""

    condition: str = ""
    probed: int | None = None
    since: int | None = None

    def now(self, condition: str, probed: int | None) -> "Since":
        since = self.since if condition == self.condition else probed
        return Since(condition, probed, since)


class GroupStatus(Struct, frozen=True):
    health: Since = Since()
    scale_up: Since = Since()
    scale_down: Since = Since()
    candidates: int = 0
    target: int = 0


class AutoscalerStatus:
    """Conditions, and since when they hold."""

    def __init__(self, state: ClusterState, provider: Provider) -> None:
        self._state = state
        self._provider = provider
        self._candidates: dict[str, int] = {}
        self._looked: int | None = None
        self.cluster = GroupStatus()
        self.groups: dict[str, GroupStatus] = {}

    def note_candidates(self, groups: Sequence[str], now: int) -> None:
        """The groups of the nodes that are not needed, one for each."""
        self._candidates = {group: groups.count(group) for group in dict.fromkeys(groups)}
        self._looked = now

    def update(self, now: int) -> None:
        """Once in a loop, at its end."""
        before, state = self.groups, self._state
        self.groups = {
            group.id: self._of(group.id, before.get(group.id) or GroupStatus(), now)
            for group in self._provider.groups()
        }
        growing = any(
            each.scale_up.condition == StatusCondition.IN_PROGRESS for each in self.groups.values()
        )
        health = StatusCondition.HEALTHY if state.is_healthy else StatusCondition.UNHEALTHY
        activity = StatusCondition.IN_PROGRESS if growing else StatusCondition.NO_ACTIVITY
        count = sum(self._candidates.values())
        self.cluster = GroupStatus(
            self.cluster.health.now(health, state.total.time),
            self.cluster.scale_up.now(activity, state.total.time),
            self.cluster.scale_down.now(_scale_down(count), self._looked),
            count,
        )

    def _of(self, group: str, before: GroupStatus, now: int) -> GroupStatus:
        state, count = self._state, self._candidates.get(group, 0)
        probed = state.readiness[group].time if group in state.readiness else None
        healthy = state.is_group_healthy(group)
        return GroupStatus(
            before.health.now(
                StatusCondition.HEALTHY if healthy else StatusCondition.UNHEALTHY, probed
            ),
            before.scale_up.now(self._scale_up(group, healthy, now), probed),
            before.scale_down.now(_scale_down(count), self._looked),
            count,
            state.targets.get(group, 0),
        )

    def _scale_up(self, group: str, healthy: bool, now: int) -> StatusCondition:
        if self._state.is_growing(group):
            return StatusCondition.IN_PROGRESS
        if not healthy:
            return StatusCondition.UNHEALTHY
        backoff = self._state.backoff_of(group, now)
        return StatusCondition.NO_ACTIVITY if backoff is None else StatusCondition.BACKOFF

    # -- the ConfigMap ---------------------------------------------------------------------

    def document(self, now: int) -> JsonObject:
        """What the ConfigMap says, as a document."""
        wide = self.cluster
        groups = [self._group(group.id, now) for group in self._provider.groups()]
        return {
            "time": _local_time(now),
            "autoscalerStatus": "Running",
            "clusterWide": {
                "health": _health(wide.health, self._state.total),
                "scaleUp": _told(wide.scale_up),
                "scaleDown": _scale_down_told(wide),
            },
            **({"nodeGroups": groups} if groups else {}),
        }

    def _group(self, group: str, now: int) -> JsonObject:
        status = self.groups[group]
        sizes = next(each for each in self._provider.groups() if each.id == group)
        counts = self._state.readiness.get(group) or Readiness()
        health = _health(status.health, counts)
        extra = {
            "cloudProviderTarget": status.target,
            "minSize": sizes.min_size,
            "maxSize": sizes.max_size,
        }
        return {
            "name": group,
            "health": {**health, **extra},
            "scaleUp": self._scale_up_told(group, status, now),
            "scaleDown": _scale_down_told(status),
        }

    def _scale_up_told(self, group: str, status: GroupStatus, now: int) -> JsonObject:
        told = _told(status.scale_up)
        backoff = self._state.backoff_of(group, now)
        info: JsonObject = {}
        if status.scale_up.condition == StatusCondition.BACKOFF and backoff is not None:
            info = {"errorCode": backoff.error.code, "errorMessage": _cut(backoff.error.message)}
        return {**told, "backoffInfo": info}


def _scale_down(candidates: int) -> StatusCondition:
    return StatusCondition.CANDIDATES if candidates else StatusCondition.NO_CANDIDATES


def _cut(message: str) -> str:
    if len(message) <= LONGEST_MESSAGE:
        return message
    return message[: LONGEST_MESSAGE - len(_CUT)] + _CUT


def _told(since: Since) -> JsonObject:
    return {
        **({"status": str(since.condition)} if since.condition else {}),
        "lastProbeTime": _stamp(since.probed),
        "lastTransitionTime": _stamp(since.since),
    }


def _stamp(at: int | None) -> str | None:
    return None if at is None else format_time(at)


def _scale_down_told(status: GroupStatus) -> JsonObject:
    told = _told(status.scale_down)
    return {**told, **({"candidates": status.candidates} if status.candidates else {})}


def _health(since: Since, nodes: Readiness) -> JsonObject:
    told = _told(since)
    registered: JsonObject = {
        "total": len(nodes.registered),
        "ready": len(nodes.ready),
        "notStarted": len(nodes.not_started),
        "suspended": len(nodes.suspended),
    }
    if nodes.deleted:
        registered["beingDeleted"] = len(nodes.deleted)
    registered["unready"] = {"total": len(nodes.unready), "resourceUnready": 0}
    counts = {
        "registered": registered,
        "longUnregistered": len(nodes.long_unregistered),
        "unregistered": len(nodes.unregistered),
    }
    return {**told, "nodeCounts": counts}


def _local_time(now: int) -> str:
    """As Go prints it: with as many places of the second as it needs, and the zone twice."""
    fraction = f".{now % SECOND:09d}".rstrip("0").rstrip(".")
    return f"{format_time(now).replace('T', ' ').removesuffix('Z')}{fraction} +0000 UTC"


# -- layout --------------------------------------------------------------------------------


class _Layout(yaml.SafeDumper):
    """What YAML looks like that comes from a program in Go: sorted names, lines of any length."""


def _text(dumper: _Layout, text: str) -> yaml.ScalarNode:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    is_other = tag != _TEXT_TAG or _OTHER_IN_GO.fullmatch(text) is not None
    style = "|" if "\n" in text else '"' if is_other else None
    return dumper.represent_scalar(_TEXT_TAG, text, style=style)


_TEXT_TAG = "tag:yaml.org,2002:str"
_Layout.add_representer(str, _text)


def status_text(document: JsonObject) -> str:
    """A document of the status as the real autoscaler writes it."""
    text: str = yaml.dump(document, Dumper=_Layout, sort_keys=True, allow_unicode=True, width=inf)
    return text
