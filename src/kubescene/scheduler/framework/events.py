"""The words of requeueing: which events may make a rejected pod schedulable.

Part of the author's manual in `interfaces`, whence all of it is imported. What a change means in
these words is in `cluster_events`, where pods wait in `queue`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import TypeAlias

from msgspec import Struct

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.state.pods import PodInfo


class EventResource(StrEnum):
    """What changed. ``ANY`` is the wildcard."""

    POD = "Pod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    ANY = "*"


class Action(IntFlag):
    """How it changed; the bits are those of kube-scheduler."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8191 - 3
    ALL = 8191


class Hint(StrEnum):
    """``QUEUE``: the event may have made the pod schedulable."""

    QUEUE = "Queue"
    SKIP = "Skip"


QueueingHint: TypeAlias = Callable[[PodInfo, Change], Hint]


class ClusterEvent(Struct, frozen=True):
    """A resource and how it changed; resources that have no name here go by their kind."""

    resource: EventResource | GroupVersionKind
    action: Action


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """An event that may help a pod this plugin rejected; without a hint it always does.

    Registering an event makes the scheduler watch the kind. ``by_signature``: the hint says the
    same of all pods of one `PodSignature`, except the pod that the change is about; it is then
    asked once for all of them. ``pods`` names, by uid, the only pods that a change can help, or
    says None if it may help any; the hint is then asked about those alone.
    """

    event: ClusterEvent
    hint: QueueingHint | None = None
    by_signature: bool = False
    pods: Callable[[Change], Collection[str] | None] | None = None
