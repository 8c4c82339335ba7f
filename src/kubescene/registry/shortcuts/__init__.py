"""What makes writes faster, and nothing else: what was worked out for one write serves the next.

A verb asks `WriteShortcuts.find` once, before it goes the long way, and lets it `learn` from what
the long way has led to. A shortcut answers only where it knows that the long way would store the
same bytes and refuse nothing; what it finds is committed as everything is. Each can be switched off
(`kubescene.shortcuts`); a world without any is the same, byte for byte.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kubescene.api.records import Record
from kubescene.clock import Identities
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.clocks import Clocks
from kubescene.registry.shortcuts.lane_writes import LaneWrites
from kubescene.registry.shortcuts.pod_deletions import PodDeletions
from kubescene.registry.shortcuts.reworded_statuses import RewordedStatuses
from kubescene.registry.shortcuts.small_patches import SmallPatches
from kubescene.registry.shortcuts.status_counts import StatusCounts
from kubescene.registry.shortcuts.status_patches import StatusPatches
from kubescene.registry.shortcuts.templates import Template, Templates
from kubescene.registry.writes import Result, WriteRequest
from kubescene.shortcuts import Shortcuts
from kubescene.store import Store

NAMES = (
    "templates",
    "status_patches",
    "status_counts",
    "reworded_statuses",
    "small_patches",
    "pod_deletions",
)
"""Those that are here, among all of `kubescene.shortcuts`."""


class Shortcut(Protocol):
    """One way to spare work that was done before."""

    def find(self, request: WriteRequest, current: Record | None) -> Result | None:
        """What a request leads to, if that is known; None if it has to go the long way."""
        ...

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember what a request has led to on the long way."""
        ...


Find: TypeAlias = Callable[[WriteRequest, Record | None], Result | None]
Learn: TypeAlias = Callable[[WriteRequest, Record | None, Record], None]


class WriteShortcuts:
    """All shortcuts of one world, by the verb and the subresource that they serve."""

    def __init__(
        self,
        store: Store,
        admission: AdmissionChain,
        identities: Identities,
        clocks: Clocks,
        wanted: Shortcuts,
    ) -> None:
        patches, counts = StatusPatches(admission), StatusCounts(store, admission)
        self.lane_writes = LaneWrites(store, patches, counts)
        self._templates = Templates(store, admission, identities, clocks)
        every: tuple[tuple[bool, str, str, Shortcut], ...] = (
            (wanted.templates, "create", "", self._templates),
            (wanted.status_patches, "patch", "status", patches),
            (wanted.status_counts, "patch", "status", counts),
            (wanted.reworded_statuses, "patch", "status", RewordedStatuses(store, admission)),
            (wanted.small_patches, "patch", "", SmallPatches(store, admission, counts)),
            (wanted.pod_deletions, "delete", "", PodDeletions(admission, clocks)),
        )
        self._finding: dict[tuple[str, str], tuple[Find, ...]] = {}
        self._learning: dict[tuple[str, str], tuple[Learn, ...]] = {}
        for is_wanted, verb, subresource, shortcut in every:
            if is_wanted:
                key = (verb, subresource)
                self._finding[key] = (*self._finding.get(key, ()), shortcut.find)
                self._learning[key] = (*self._learning.get(key, ()), shortcut.learn)
        if wanted.status_counts:
            learning = self._learning.get(("patch", ""), ())
            self._learning["patch", ""] = (*learning, counts.learn_metadata)

    def template_of(self, request: WriteRequest) -> Template | None:
        """The template of a create that is known (`kubescene.registry.shortcuts.templates`)."""
        return self._templates.of(request)

    def find(self, request: WriteRequest, current: Record | None) -> Result | None:
        """What a request leads to, if one of them knows."""
        for find in self._finding.get((request.verb, request.subresource), ()):
            if (found := find(request, current)) is not None:
                return found
        return None

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Let them all see what a request has led to on the long way."""
        for learn in self._learning.get((request.verb, request.subresource), ()):
            learn(request, before, after)
