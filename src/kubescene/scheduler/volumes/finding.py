"""Volumes for a pod: which nodes can have them all, and which volumes they would be on one.

Objects count as they will be once the scheduler has written them. Between the decision to bind a
volume and the write that says so, other pods are decided about. What was assumed holds until the
watch brings another version of the object, or it is restored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubescene.api.volumes.claims import SELECTED_NODE, annotations_of, volume_of
from kubescene.api.volumes.csi_migration import (
    InTree,
    TranslationError,
    in_tree,
    migrated_plugins,
    persistent_volume,
    translated_affinity,
)
from kubescene.api.volumes.matching import affinity_key, name_of, read_shape, requested
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import Codes, EventResource, Handle, Lister
from kubescene.scheduler.state.node_selectors import Mask
from kubescene.scheduler.volumes.matching import VolumeIndex
from kubescene.scheduler.volumes.provisioning import NO_VOLUME, Provisioning
from kubescene.scheduler.volumes.reach import Reach, Stamp
from kubescene.types import ReadOnlyObject


class AssumeCache:
    """A `Lister` with assumptions laid over it."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._assumed: dict[tuple[str, str], tuple[ReadOnlyObject, ReadOnlyObject]] = {}

    def get(self, name: str, namespace: str = "") -> ReadOnlyObject | None:
        """The object as it is assumed to be."""
        found, key = self._lister.get(name, namespace), (namespace, name)
        assumed = self._assumed.get(key)
        if assumed is None:
            return found
        if assumed[1] is found:
            return assumed[0]
        del self._assumed[key]
        return found

    def assume(self, obj: ReadOnlyObject) -> None:
        key = _key(obj)
        found = self._lister.get(key[1], key[0])
        if found is not None:
            self._assumed[key] = (obj, found)

    def restore(self, obj: ReadOnlyObject) -> None:
        """Assume nothing about an object any more."""
        self._assumed.pop(_key(obj), None)


def _key(obj: ReadOnlyObject) -> tuple[str, str]:
    metadata = obj["metadata"]
    return (metadata.get("namespace") or "", metadata["name"])


WRONG_NODE = 1
NO_SUCH_VOLUME = 8
UNTRANSLATABLE = 16


@dataclass(slots=True)
class ClaimsOfPod:
    """The claims of a pod that have a volume, and those that get one with the pod's node.

    ``fault`` is the text that goes with `UNTRANSLATABLE`.
    """

    bound: list[ReadOnlyObject] = field(default_factory=list)
    delayed: list[ReadOnlyObject] = field(default_factory=list)
    fault: str = ""


@dataclass(slots=True)
class FoundVolumes:
    """What a pod gets on one node: volume and claim, and claims to provision for."""

    bindings: list[tuple[str, ReadOnlyObject]] = field(default_factory=list)
    provisions: list[ReadOnlyObject] = field(default_factory=list)


class VolumeFinder:
    """What the claims of pods mean for the nodes, as far as the scheduler has assumed or seen."""

    def __init__(self, handle: Handle, volumes: AssumeCache) -> None:
        self._nodes = handle.nodes
        self._volumes = volumes
        self._reach = Reach(handle.nodes)
        self._provisioning = Provisioning(handle, self._reach)
        self._index = VolumeIndex(self._reach)
        lister = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME])
        self._lister = lister
        self._changes = lister.follow()
        self._csi_nodes = handle.lister(KINDS[EventResource.CSI_NODE])
        self._csi_changes = self._csi_nodes.follow()
        self._migrated: dict[str, Mask] = {}
        self._migrated_stamp: Stamp | None = None

    def look(self) -> None:
        """Take in what has happened since the last pod."""
        self._reach.renew()
        changed = self._changes.read()
        if changed is None:
            names = dict.fromkeys(self._index.names())
            names.update(dict.fromkeys(each["metadata"]["name"] for each in self._lister.list()))
            changed = [("", name) for name in names]
        for _, name in changed:
            self.renew(name)

    def renew(self, volume: str) -> None:
        """A volume changed, or is assumed to have."""
        self._index.put(volume, self._volumes.get(volume))

    # -- many nodes ------------------------------------------------------------------------

    def codes(self, claims: ClaimsOfPod) -> Codes:
        """For every row the sum of all obstacles, 0 if there is none."""
        codes = np.zeros(self._reach.rows, dtype=np.int64)
        self._check_bound(claims, codes)
        if claims.delayed:
            codes += self._delayed(claims.delayed)
        return codes

    def _check_bound(self, claims: ClaimsOfPod, codes: Codes) -> None:
        """The first volume that a node cannot have decides (F-19)."""
        for claim in claims.bound:
            volume = self._volumes.get(volume_of(claim))
            if volume is None:
                codes[codes == 0] = NO_SUCH_VOLUME
                return
            try:
                mask = self._mask(volume)
            except TranslationError as error:
                claims.fault = f"could not translate pv: {error}"
                codes[codes == 0] = UNTRANSLATABLE
                return
            if mask is not None:
                codes[(codes == 0) & ~mask] = WRONG_NODE

    def _mask(self, volume: ReadOnlyObject) -> Mask | None:
        """Where a volume can be used; None if everywhere."""
        plain = self._reach.affinity(affinity_key(volume["spec"].get("nodeAffinity")))
        kind = in_tree(volume["spec"])
        if kind is None or not kind.is_taken_over:
            return plain
        where = self._where_migrated(kind)
        if not where.any():
            return plain
        persistent_volume(volume, kind)
        moved = self._reach.affinity(affinity_key(translated_affinity(volume, kind)))
        if plain is None and moved is None:
            return None
        everywhere = np.ones(self._reach.rows, dtype=np.bool_)
        return np.where(
            where, everywhere if moved is None else moved, everywhere if plain is None else plain
        )

    def _where_migrated(self, kind: InTree) -> Mask:
        """The nodes that leave an old kind of volume to its CSI driver."""
        changed = self._csi_changes.read()
        if changed is None or changed or self._migrated_stamp != self._reach.stamp:
            self._migrated_stamp = self._reach.stamp
            self._migrated = {}
            for each in self._csi_nodes.list():
                row = self._nodes.row_of(each["metadata"]["name"])
                if row is not None:
                    for plugin in sorted(migrated_plugins(each)):
                        self._plugin_mask(plugin)[row] = True
        return self._plugin_mask(kind.plugin)

    def _plugin_mask(self, plugin: str) -> Mask:
        if plugin not in self._migrated:
            self._migrated[plugin] = np.zeros(self._reach.rows, dtype=np.bool_)
        return self._migrated[plugin]

    def _delayed(self, claims: Sequence[ReadOnlyObject]) -> Codes:
        """What stands in the way of claims that get their volume with the node (F-20)."""
        selected, open_claims = _split(claims)
        provision = [self._provisioning.codes(claim) for claim in (*selected, *open_claims)]
        codes = _first(provision[: len(selected)], self._reach.rows)
        if len(open_claims) == 1:
            lacking = ~self._is_matched(open_claims[0])
            codes = np.where((codes == 0) & lacking, provision[-1], codes)
        elif open_claims:
            self._match_one_by_one(open_claims, provision[len(selected) :], codes)
        for claim in selected:
            row = self._nodes.row_of(annotations_of(claim)[SELECTED_NODE])
            elsewhere = np.ones(codes.size, dtype=np.bool_)
            if row is not None:
                elsewhere[row] = False
            codes[elsewhere] = NO_VOLUME
        return codes

    def _is_matched(self, claim: ReadOnlyObject) -> Mask:
        """Where there is a volume for a claim that is the pod's only one."""
        shape = read_shape(claim)
        promised = self._index.promised(shape, name_of(claim), ())
        if promised is None:
            found: Mask = self._index.reached(shape, self._reach.rows) > 0
            return found
        mask = self._reach.affinity(promised.affinity)
        return np.ones(self._reach.rows, dtype=np.bool_) if mask is None else mask

    def _match_one_by_one(
        self, claims: Sequence[ReadOnlyObject], provision: Sequence[Codes], codes: Codes
    ) -> None:
        """Several claims may be after the same volumes: every node is looked at by itself."""
        for row in (codes == 0).nonzero()[0].tolist():
            found = self._match(claims, row)
            for claim, obstacles in zip(claims, provision, strict=True):
                if obstacles[row] and any(each is claim for each in found.provisions):
                    codes[row] = obstacles[row]
                    break

    # -- one node --------------------------------------------------------------------------

    def reaches(self, volume: ReadOnlyObject, node: str) -> bool:
        """Whether a node may use a volume."""
        self._reach.renew()
        row = self._nodes.row_of(node)
        mask = self._mask(volume)
        return mask is None or row is None or bool(mask[row])

    def find(self, claims: ClaimsOfPod, row: int) -> FoundVolumes:
        """What a pod gets on a node that has no obstacle."""
        selected, open_claims = _split(claims.delayed)
        found = self._match(open_claims, row)
        found.provisions = [*selected, *found.provisions]
        return found

    def _match(self, claims: Sequence[ReadOnlyObject], row: int) -> FoundVolumes:
        found = FoundVolumes()
        taken: dict[str, None] = {}
        for claim in claims:
            volume = self._index.choose(read_shape(claim), name_of(claim), row, taken)
            if volume is None:
                found.provisions.append(claim)
            else:
                taken[volume.name] = None
                found.bindings.append((volume.name, claim))
        return found


def _split(
    claims: Sequence[ReadOnlyObject],
) -> tuple[list[ReadOnlyObject], list[ReadOnlyObject]]:
    """Claims with a selected node, and the others, the smallest first."""
    selected = [each for each in claims if SELECTED_NODE in annotations_of(each)]
    others = [each for each in claims if SELECTED_NODE not in annotations_of(each)]
    return selected, sorted(others, key=requested)


def _first(columns: Sequence[Codes], rows: int) -> Codes:
    """Row by row the first code that is not 0."""
    codes = np.zeros(rows, dtype=np.int64)
    for column in columns:
        codes = np.where(codes == 0, column, codes)
    return codes
