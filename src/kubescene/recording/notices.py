"""What a component has to say about an object."""

import msgspec

from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

NORMAL = "Normal"
WARNING = "Warning"

_NAME = "{name}"


class Notice(msgspec.Struct, frozen=True):
    """One thing that happened. It becomes an Event object, or is counted with earlier ones.

    ``about`` is a reference to an object, ``reporter`` the component that speaks, ``host`` the node
    that it runs on, if that matters. With an ``action`` the Event is one of events.k8s.io, as
    kube-scheduler writes them; without, one of the core group, as everybody else does.

    In the message of a notice that belongs to a planned write, ``{name}`` stands for the name of
    the object that was written: a new one may get it only then.
    """

    about: JsonObject
    type: str
    reason: str
    message: str
    reporter: str
    host: str = ""
    action: str = ""
    related: JsonObject | None = None

    def naming(self, name: str) -> "Notice":
        """The notice once it is known what the object is called."""
        if _NAME not in self.message:
            return self
        return msgspec.structs.replace(self, message=self.message.replace(_NAME, name))


def regarding(obj: JsonObject, field_path: str = "") -> JsonObject:
    """The reference to an object, or to the part of it at ``field_path``."""
    metadata = obj["metadata"]
    parts = {
        "kind": obj["kind"],
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "apiVersion": obj["apiVersion"],
        "resourceVersion": metadata.get("resourceVersion"),
        "fieldPath": field_path,
    }
    return {name: value for name, value in parts.items() if value}


def regarding_record(record: Record, gvk: GroupVersionKind) -> JsonObject:
    """The same for an object that was not decoded."""
    parts = {
        "kind": gvk.kind,
        "namespace": record.namespace,
        "name": record.name,
        "uid": record.uid,
        "apiVersion": gvk.api_version,
        "resourceVersion": str(record.revision),
    }
    return {name: value for name, value in parts.items() if value}
