"""Whether a volume could be provisioned for a claim, node by node."""

from typing import NamedTuple

import numpy as np

from kubescene.api.quantity import value
from kubescene.api.volumes.claims import NO_PROVISIONER, class_of
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import Codes, EventResource, Handle
from kubescene.scheduler.state.node_selectors import Mask
from kubescene.scheduler.volumes.reach import Reach, Stamp
from kubescene.types import ReadOnlyObject

NO_VOLUME = 2
NO_SPACE = 4


class _Provisioning(NamedTuple):
    storage_class: str
    size: int


class Provisioning:
    """Classes, their topologies, and the capacity that drivers report."""

    def __init__(self, handle: Handle, reach: Reach) -> None:
        self._reach = reach
        self._classes = handle.lister(KINDS[EventResource.STORAGE_CLASS])
        self._drivers = handle.lister(KINDS[EventResource.CSI_DRIVER])
        self._capacities = handle.lister(KINDS[EventResource.CSI_STORAGE_CAPACITY])
        self._changes = self._capacities.follow()
        self._by_class: dict[str, list[ReadOnlyObject]] = {}
        self._enough: dict[_Provisioning, Mask] = {}
        self._stamp: Stamp | None = None

    def codes(self, claim: ReadOnlyObject) -> Codes:
        """For every row 0 if it could be done, else which obstacle there is (F-20)."""
        codes = np.zeros(self._reach.rows, dtype=np.int64)
        storage_class = self._classes.get(class_of(claim))
        provisioner = "" if storage_class is None else storage_class.get("provisioner") or ""
        if storage_class is None or provisioner in ("", NO_PROVISIONER):
            codes += NO_VOLUME
            return codes
        enough = self._with_space(provisioner, claim)
        if enough is not None:
            codes[~enough] = NO_SPACE
        allowed = self._reach.topologies(storage_class.get("allowedTopologies") or ())
        if allowed is not None:
            codes[~allowed] = NO_VOLUME
        return codes

    def _with_space(self, provisioner: str, claim: ReadOnlyObject) -> Mask | None:
        """Where there is enough space; None if nobody reports how much there is."""
        requests = (claim["spec"].get("resources") or {}).get("requests") or {}
        driver = self._drivers.get(provisioner)
        tracked = driver is not None and (driver.get("spec") or {}).get("storageCapacity")
        if "storage" not in requests or not tracked:
            return None
        self._renew()
        asked = _Provisioning(class_of(claim), value(requests["storage"]))
        found = self._enough.get(asked)
        if found is None:
            found = self._enough[asked] = self._find(asked)
        return found

    def _renew(self) -> None:
        changed = self._changes.read()
        if changed is None or changed:
            self._by_class = {}
            for each in self._capacities.list():
                self._by_class.setdefault(each.get("storageClassName") or "", []).append(each)
            self._stamp = None
        if self._stamp != self._reach.stamp:
            self._stamp = self._reach.stamp
            self._enough.clear()

    def _find(self, asked: _Provisioning) -> Mask:
        mask = np.zeros(self._reach.rows, dtype=np.bool_)
        for each in self._by_class.get(asked.storage_class, ()):
            limit, topology = volume_limit(each), each.get("nodeTopology")
            if limit is not None and limit >= asked.size and topology is not None:
                mask |= self._reach.labels(topology)
        return mask


def volume_limit(capacity: ReadOnlyObject) -> int | None:
    """The largest volume that a pool has room for; None if it does not say."""
    limit = capacity.get("maximumVolumeSize")
    if limit is None:
        limit = capacity.get("capacity")
    return None if limit is None else value(limit)
