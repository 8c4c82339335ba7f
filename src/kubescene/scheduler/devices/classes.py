"""DeviceClasses, and the extended resources that stand for their devices."""

from collections.abc import Mapping, Sequence

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.framework.interfaces import Handle
from kubescene.scheduler.state.memo import Shared
from kubescene.types import ReadOnlyObject

DEVICE_CLASS = GroupVersionKind("resource.k8s.io", "v1", "DeviceClass")
IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
_NATIVE = "kubernetes.io/"


class DeviceClass(Shared):
    """One DeviceClass."""

    __slots__ = ("config", "created", "name", "resource", "selectors")

    def __init__(self, obj: ReadOnlyObject) -> None:
        super().__init__()
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        self.name: str = metadata["name"]
        self.created: str = metadata.get("creationTimestamp") or ""
        self.resource: str = spec.get("extendedResourceName") or ""
        self.selectors: tuple[str, ...] = tuple(
            (each.get("cel") or {}).get("expression") or "" for each in spec.get("selectors") or ()
        )
        self.config: Sequence[ReadOnlyObject] = spec.get("config") or ()

    @property
    def implicit_resource(self) -> str:
        return IMPLICIT_PREFIX + self.name


class DeviceClasses:
    """All classes by name, and by the extended resource that they back.

    ``version`` grows with every change. Of two classes with the same resource the younger one
    counts, of two that are equally old the one whose name comes first.
    """

    def __init__(self) -> None:
        self.version = 0
        self.by_name: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, DeviceClass] = {}

    def of_resource(self, resource: str) -> DeviceClass | None:
        """The class whose devices an extended resource stands for."""
        return self._by_resource.get(resource)

    @property
    def resources(self) -> Mapping[str, DeviceClass]:
        return self._by_resource

    def take(self, obj: ReadOnlyObject) -> None:
        """A class that exists already."""
        self._replace(None, DeviceClass(obj))

    def changed(self, change: Change) -> None:
        name = change.record.name
        old = self.by_name.get(name)
        if change.type is ChangeType.DELETED:
            self._remove(name)
        else:
            self._replace(old, DeviceClass(change.object))

    def _replace(self, old: DeviceClass | None, new: DeviceClass) -> None:
        self.version += 1
        self.by_name[new.name] = new
        rival = self._by_resource.get(new.resource) if new.resource else None
        if rival is not None and not _wins(new, rival):
            return
        if old is not None:
            self._forget(old)
        if new.resource:
            self._by_resource[new.resource] = new
        self._by_resource[new.implicit_resource] = new

    def _remove(self, name: str) -> None:
        self.version += 1
        gone = self.by_name.pop(name, None)
        if gone is not None:
            self._forget(gone)

    def _forget(self, gone: DeviceClass) -> None:
        self._by_resource.pop(gone.implicit_resource, None)
        if gone.resource:
            self._by_resource.pop(gone.resource, None)


class WatchedClasses(DeviceClasses):
    """The classes of the cluster. Made once per scheduler, by ``handle.shared(WatchedClasses)``."""

    def __init__(self, handle: Handle) -> None:
        super().__init__()
        self._nodes = handle.nodes
        classes = handle.lister(DEVICE_CLASS)
        for each in classes.list():
            self.take(each)
        classes.tell(self.changed)

    def changed(self, change: Change) -> None:
        DeviceClasses.changed(self, change)  # not super(): worlds hold no closures
        self._nodes.touch_all()  # NodeResourcesFit leaves resources to devices by class


def is_extended(name: str) -> bool:
    """Whether a name is that of an extended resource, or of a class by its implicit name."""
    if name.startswith(IMPLICIT_PREFIX):
        return True
    return "/" in name and _NATIVE not in name and not name.startswith("requests.")


def backed_resources(requests: Mapping[str, int], classes: DeviceClasses) -> bool:
    """Whether a pod asks for a resource that stands for devices."""
    if not classes.resources:
        return False
    return any(
        amount and is_extended(name) and classes.of_resource(name) is not None
        for name, amount in requests.items()
    )


def _wins(new: DeviceClass, rival: DeviceClass) -> bool:
    """As kube-scheduler decides; a class that is seen again does not win against itself."""
    if new.created != rival.created:
        return new.created > rival.created
    return new.name < rival.name
