"""How many volumes of each CSI driver are attached to each node, and how many may be.

What a node has attached follows from the pods on it, their claims, the volumes and classes of
these, and from VolumeAttachments. A node is counted again when one of them changed; the counts of
all nodes stand in columns, one pair per driver.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kubescene.api.volumes.claims import class_of, volume_of
from kubescene.api.volumes.csi_migration import (
    BY_PLUGIN,
    CsiVolume,
    TranslationError,
    in_tree,
    inline_volume,
    persistent_volume,
)
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import EventResource, Handle, Rows
from kubescene.scheduler.state.claim_users import Move
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import Moves, moved
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Column
from kubescene.scheduler.volumes.claims import claim_not_found, is_made_for, mentioned, not_made_for
from kubescene.types import ReadOnlyObject

K = TypeVar("K")

NO_LIMIT = np.iinfo(np.int64).max // 2
_UNBOUND = "unbound-"
"""Goes before the made-up handle of a volume that does not exist yet."""

Volumes = dict[str, str]
"""Unique names of volumes, and their drivers."""


class MissingClaimError(Exception):
    """A pod to be placed uses a claim that is not there."""


class UncountableError(Exception):
    """Volumes that cannot be counted at all."""


@dataclass(slots=True)
class _Node:
    """What is known of one node. ``volumes`` are those that its pods use."""

    volumes: Volumes = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    claims: dict[tuple[str, str], None] = field(default_factory=dict)
    fault: str = ""


class AttachedVolumes:
    """The volumes of all nodes."""

    def __init__(self, handle: Handle) -> None:
        self._table = handle.nodes
        self._claims = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME_CLAIM])
        self._volumes = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME])
        self._classes = handle.lister(KINDS[EventResource.STORAGE_CLASS])
        self._csi_nodes = handle.lister(KINDS[EventResource.CSI_NODE])
        self._attachments = handle.lister(KINDS[EventResource.VOLUME_ATTACHMENT])
        self._pod_changes = handle.nodes.volume_users.follow()
        self._claim_changes = self._claims.follow()
        self._volume_changes = self._volumes.follow()
        self._class_changes = self._classes.follow()
        self._csi_changes = self._csi_nodes.follow()
        self._attachment_changes = self._attachments.follow()
        self._nodes: dict[str, _Node] = {}
        self._users: dict[tuple[str, str], dict[str, None]] = {}
        self._holders: dict[str, dict[str, None]] = {}
        self._by_node: dict[str, list[ReadOnlyObject]] = {}
        self._layout = -1
        self._counts: dict[str, Column] = {}
        self._limits: dict[str, Column] = {}
        self._faulty: dict[str, None] = {}

    # -- reading ---------------------------------------------------------------------------

    def look(self) -> None:
        """Take in what has happened since the last pod."""
        came, changed = self._pod_changes.read(), self._changed()
        moves = self._table.moved_from(self._layout)
        is_lost = moves is None and self._layout != self._table.layout
        if came is None or changed is None or is_lost:
            self._count_all()
            return
        if moves is not None:
            self._move(moves)
            changed = [*changed, *(each.node for each in came)]
        for name in changed:
            self._count(name)
        for each in came if moves is None else ():
            self._follow(each)

    def over_limit(self, wanted: Volumes, rows: Rows) -> NDArray[np.bool_]:
        """For each of the rows, whether the volumes of a pod would be too many."""
        over = np.zeros(rows.size, dtype=np.bool_)
        for driver, count in _per_driver(wanted).items():
            if driver in self._limits:
                over |= self._counts[driver].take(rows) + count > self._limits[driver].take(rows)
        for name in self._sharing(wanted):
            if (row := self._table.row_of(name)) is not None:
                over[rows == row] = self.is_over_limit(wanted, self._nodes[name])
        return over

    def faults(self) -> Iterable[tuple[int, str]]:
        """Rows of nodes whose volumes cannot be counted, and why."""
        for name in self._faulty:
            row = self._table.row_of(name)
            if row is not None:
                yield row, self._nodes[name].fault

    def is_over_limit(self, wanted: Volumes, node: _Node) -> bool:
        """The same for one node, exactly as upstream counts (F-16)."""
        if not node.limits:
            return False
        new = {name: driver for name, driver in wanted.items() if name not in node.volumes}
        return any(
            node.counts.get(driver, 0) + count > node.limits[driver]
            for driver, count in _per_driver(new).items()
            if driver in node.limits
        )

    def at(self, info: NodeInfo) -> _Node:
        """What a node would have attached with just these pods. Raises `UncountableError`."""
        node = _Node()
        csi_node = self._csi_nodes.get(info.name)
        node.limits = _limits(csi_node)
        if node.limits:
            for pod in info.pods:
                node.volumes.update(self._of_placed(pod, csi_node))
            node.counts = self._with_attachments(info.name, node.volumes)
        return node

    def of_new(self, pod: PodInfo, *, on_csi_node: bool) -> Volumes:
        """The volumes of a pod to be placed. Raises both errors."""
        found: Volumes = {}
        for each in pod.signature.compiled(mentioned):
            name = each.name(pod.name)
            if not name:
                raise UncountableError("PersistentVolumeClaim had no name")
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                where = f"{pod.namespace}/{name}"
                raise MissingClaimError(f"looking up PVC {where}: {claim_not_found(name)}")
            if each.volume and not is_made_for(claim, pod):
                raise UncountableError(not_made_for(pod, name))
            _add(found, self._of_claim(claim, on_csi_node=on_csi_node))
        if on_csi_node:
            found.update(_inline(pod))
        return found

    # -- resolving -------------------------------------------------------------------------

    def _of_placed(self, pod: PodInfo, csi_node: ReadOnlyObject | None) -> Volumes:
        found: Volumes = {}
        if not pod.signature.volumes:
            return found
        for each in pod.signature.compiled(mentioned):
            name = each.name(pod.name)
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                continue
            if each.volume and not is_made_for(claim, pod):
                raise UncountableError(not_made_for(pod, name))
            _add(found, self._of_claim(claim, on_csi_node=csi_node is not None))
        if csi_node is not None:
            found.update(_inline(pod))
        return found

    def _of_claim(self, claim: ReadOnlyObject, *, on_csi_node: bool) -> CsiVolume | None:
        volume = self._volumes.get(volume_of(claim)) if volume_of(claim) else None
        if volume is None:
            return self._of_class(claim, on_csi_node=on_csi_node)
        source = volume["spec"].get("csi")
        if source is not None:
            return CsiVolume(source.get("driver") or "", source.get("volumeHandle") or "")
        kind = in_tree(volume["spec"])
        if kind is None or not kind.is_taken_over or not on_csi_node:
            return None
        try:
            return persistent_volume(volume, kind)
        except TranslationError:
            return None

    def _of_class(self, claim: ReadOnlyObject, *, on_csi_node: bool) -> CsiVolume | None:
        """A volume that is not there yet: its driver is known from the class."""
        storage_class = self._classes.get(class_of(claim)) if class_of(claim) else None
        if storage_class is None:
            return None
        metadata, provisioner = claim["metadata"], storage_class.get("provisioner") or ""
        handle = f"{_UNBOUND}{metadata.get('namespace') or ''}/{metadata['name']}"
        kind = BY_PLUGIN.get(provisioner)
        if kind is None:
            return CsiVolume(provisioner, handle)
        taken_over = kind.is_taken_over and on_csi_node
        return CsiVolume(kind.driver, handle) if taken_over else None

    def _with_attachments(self, name: str, volumes: Volumes) -> dict[str, int]:
        """The number of volumes per driver; those attached for nobody count under the attacher."""
        attached: Volumes = {}
        for each in self._by_node.get(name, ()):
            spec = each["spec"]
            volume = self._volumes.get((spec.get("source") or {}).get("persistentVolumeName") or "")
            source = None if volume is None else volume["spec"].get("csi")
            if spec.get("attacher") and source is not None:
                named = CsiVolume(spec["attacher"], source.get("volumeHandle") or "")
                attached[named.unique_name] = named.driver
        counts = _per_driver(volumes)
        for unique, driver in attached.items():
            if unique not in volumes:
                counts[driver] = counts.get(driver, 0) + 1
        return counts

    # -- following -------------------------------------------------------------------------

    def _changed(self) -> Collection[str] | None:
        """The nodes to be counted again, pods apart; None if it is all of them."""
        claims = self._claim_changes.read()
        volumes, classes = self._volume_changes.read(), self._class_changes.read()
        csi_nodes, attachments = self._csi_changes.read(), self._attachment_changes.read()
        if attachments is None or attachments:
            self._sort_attachments()
            return None
        if claims is None or volumes is None or csi_nodes is None or classes != ():
            return None
        changed = dict.fromkeys(name for _, name in csi_nodes)
        for key in claims:
            changed.update(self._users.get(key, {}))
        if volumes and self._by_node:
            return None
        for _, name in volumes:
            changed.update(self._users.get(("", name), {}))
        return changed

    def _follow(self, move: Move) -> None:
        """A pod came or went. What one that came brings is added; otherwise count again."""
        name = move.node
        node, row, csi_node = self._nodes.get(name), self._table.row_of(name), None
        if node is not None and row is not None and not node.limits and not node.fault:
            return
        if move.change < 0 or node is None or row is None or node.fault or name in self._by_node:
            self._count(name)
            return
        csi_node = self._csi_nodes.get(name)
        try:
            volumes = self._of_placed(move.pod, csi_node)
        except UncountableError:
            self._count(name)
            return
        for unique, driver in volumes.items():
            if unique not in node.volumes:
                node.volumes[unique] = driver
                node.counts[driver] = node.counts.get(driver, 0) + 1
                self._holders.setdefault(unique, {})[name] = None
        self._note_claims(name, node, self._sources(move.pod))
        self._show(node, row)

    def _note_claims(self, name: str, node: _Node, claims: Iterable[tuple[str, str]]) -> None:
        for key in claims:
            node.claims[key] = None
            self._users.setdefault(key, {})[name] = None

    def _sort_attachments(self) -> None:
        self._by_node = {}
        for each in self._attachments.list():
            self._by_node.setdefault(each["spec"].get("nodeName") or "", []).append(each)

    def _count_all(self) -> None:
        self._layout = self._table.layout
        self._counts.clear()
        self._limits.clear()
        for name in [*self._nodes]:
            self._forget(name)
        for info in self._table.infos:
            self._count(info.name)

    def _count(self, name: str) -> None:
        self._forget(name)
        info, row = self._table.info(name), self._table.row_of(name)
        if info is None or row is None:
            return
        try:
            node = self.at(info)
        except UncountableError as error:
            node = _Node(fault=str(error))
            self._faulty[name] = None
        self._nodes[name] = node
        if node.limits or node.fault:
            for pod in info.pods:
                self._note_claims(name, node, self._sources(pod))
            for unique in node.volumes:
                self._holders.setdefault(unique, {})[name] = None
        self._show(node, row)

    def _sources(self, pod: PodInfo) -> Iterable[tuple[str, str]]:
        """The claims of a pod, and the volumes of these."""
        if pod.signature.volumes:
            for each in pod.signature.compiled(mentioned):
                key = (pod.namespace, each.name(pod.name))
                yield key
                claim = self._claims.get(key[1], key[0])
                if claim is not None and volume_of(claim):
                    yield "", volume_of(claim)

    def _forget(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self._faulty.pop(name, None)
        for key in node.claims:
            _drop(self._users, key, name)
        for unique in node.volumes:
            _drop(self._holders, unique, name)
        if (row := self._table.row_of(name)) is not None:
            for driver in node.limits:
                if driver in self._limits:
                    self._limits[driver][row] = NO_LIMIT

    def _show(self, node: _Node, row: int) -> None:
        for driver, limit in node.limits.items():
            if driver not in self._limits:
                rows = len(self._table)
                self._limits[driver] = np.full(rows, NO_LIMIT, dtype=np.int64)
                self._counts[driver] = np.zeros(rows, dtype=np.int64)
            self._limits[driver][row] = limit
            self._counts[driver][row] = node.counts.get(driver, 0)

    def _move(self, moves: Moves) -> None:
        """Follow the rows of the table to their new places; new nodes are counted."""
        self._layout = self._table.layout
        for name in [name for name in self._nodes if self._table.row_of(name) is None]:
            self._forget(name)
        for driver, limits in self._limits.items():
            self._limits[driver] = moved(limits, moves, int(NO_LIMIT))
            self._counts[driver] = moved(self._counts[driver], moves)
        for row in (moves < 0).nonzero()[0].tolist():
            self._count(self._table.names[row])

    def _sharing(self, wanted: Volumes) -> list[str]:
        """The nodes that have one of the volumes already."""
        return [*dict.fromkeys(name for each in wanted for name in self._holders.get(each, ()))]


def _inline(pod: PodInfo) -> Volumes:
    found: Volumes = {}
    for volume in pod.signature.volumes:
        kind = in_tree(volume)
        if kind is not None and kind.is_taken_over:
            try:
                _add(found, inline_volume(volume, kind))
            except TranslationError as error:
                text = f"converting volume({volume['name']}) from inline to csi: {error}"
                raise UncountableError(text) from error
    return found


def _add(found: Volumes, volume: CsiVolume | None) -> None:
    if volume is not None and volume.driver and volume.handle:
        found[volume.unique_name] = volume.driver


def _per_driver(volumes: Volumes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for driver in volumes.values():
        counts[driver] = counts.get(driver, 0) + 1
    return counts


def _limits(csi_node: ReadOnlyObject | None) -> dict[str, int]:
    """How many volumes of each driver a node takes, where it says so."""
    limits: dict[str, int] = {}
    for driver in ((csi_node or {}).get("spec") or {}).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None:
            limits[driver["name"]] = count
    return limits


def _drop(index: dict[K, dict[str, None]], key: K, name: str) -> None:
    names = index.get(key)
    if names is not None:
        names.pop(name, None)
        if not names:
            del index[key]
