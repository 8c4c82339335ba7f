"""A promise about many writes: their bodies are one and the same, but for the names of new objects.

Whoever creates many objects from one template says so with a `Blueprint` in the options of each
write. The registry then decodes, admits and validates the first one and makes the others like it.
The same goes for a status that is reported for many pods.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from kubescene.bounded import BoundedDict
from kubescene.types import JsonObject, ReadOnlyObject

HOSTNAME = "kubernetes.io/hostname"
BODIES_KEPT = 512
LONGEST_LABEL = 63
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_OWNER = ("generateName", "labels", "ownerReferences")


class Blueprint:
    """The body that all these writes have. It must not be changed any more."""

    __slots__ = ("body",)

    def __init__(self, body: ReadOnlyObject) -> None:
        self.body = body

    def covers(self, obj: ReadOnlyObject) -> bool:
        """Whether an object is this body, or a copy that shares all of it but the name."""
        body = self.body
        if obj is body:
            return True
        return same_but(obj, body, "metadata") and same_but(
            obj["metadata"], body["metadata"], "name"
        )

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        """What is stored for ``obj``, but for its name, if ``stored`` is what the body became."""
        del obj
        return stored


class ClaimingBlueprint(Blueprint):
    """Pods that differ in the names of claims among their volumes as well.

    Nothing else in a pod depends on these names, nor does validation: any will do.
    """

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        body = self.body
        if obj is body:
            return True
        spec, own = obj["spec"], body["spec"]
        members = all(obj.get(name) is body[name] for name in body if name not in _VARYING)
        alike = members and len(obj) == len(body) and same_but(spec, own, "volumes")
        return (
            alike
            and same_but(obj["metadata"], body["metadata"], "name")
            and all(map(_same_but_claim, spec["volumes"], own["volumes"]))
        )

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        given, volumes = obj["spec"]["volumes"], stored["spec"]["volumes"]
        named = [_claiming(volume, wanted) for volume, wanted in zip(volumes, given, strict=False)]
        spec = {**stored["spec"], "volumes": [*named, *volumes[len(given) :]]}
        return {**stored, "spec": spec}


class TargetedBlueprint(Blueprint):
    """Pods of which each asks for another node by name, and for nothing else of a node's affinity.

    Nothing else in a pod depends on that, and any node will do whose name is valid.
    """

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        body = self.body
        if obj is body:
            return True
        if not same_but(obj, body, "spec") or not same_but(obj["spec"], body["spec"], _AFFINITY):
            return False
        affinity, own = obj["spec"][_AFFINITY], body["spec"][_AFFINITY]
        return (
            same_but(affinity, own, _OF_NODE)
            and same_but(affinity[_OF_NODE], own[_OF_NODE], _REQUIRED)
            and affinity[_OF_NODE][_REQUIRED] == required_node(target_of(obj["spec"]))
        )

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        spec = targeted(stored["spec"], target_of(obj["spec"]))
        return {**stored, "spec": spec}


_AFFINITY = "affinity"
_OF_NODE = "nodeAffinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def required_node(name: str) -> JsonObject:
    """The required node affinity that only the node of a name meets."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def targeted(spec: ReadOnlyObject, name: str) -> JsonObject:
    """A pod's spec that asks for this node, whichever it asked for before."""
    affinity = spec.get(_AFFINITY) or {}
    of_node = {**(affinity.get(_OF_NODE) or {}), _REQUIRED: required_node(name)}
    return {**spec, _AFFINITY: {**affinity, _OF_NODE: of_node}}


def target_of(spec: ReadOnlyObject) -> str:
    """The node that a pod asks for by name; empty if there is none, or several."""
    affinity = (spec.get(_AFFINITY) or {}).get(_OF_NODE) or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            values = field.get("values") or []
            is_name = field.get("key") == "metadata.name" and field.get("operator") == "In"
            if is_name and len(values) == 1:
                return str(values[0])
    return ""


class NominatingBlueprint(Blueprint):
    """A status that is reported for many pods, each of which is nominated to another node.

    Nothing else in a status depends on that, and any node will do whose name is valid.
    """

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        if obj is self.body:
            return True
        status, own = obj.get("status"), self.body["status"]
        return len(obj) == 1 and type(status) is dict and same_but(status, own, NOMINATION)


NOMINATION = "nominatedNodeName"


class HostBlueprint(Blueprint):
    """Nodes that say which host they are: a label has their name."""

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        body = self.body
        if obj is body:
            return True
        if not same_but(obj, body, "metadata"):
            return False
        metadata, own = obj["metadata"], body["metadata"]
        labels = metadata.get("labels") or {}
        return (
            labels.get(HOSTNAME) == metadata["name"]
            and same_but({**metadata, "labels": own["labels"]}, own, "name")
            and same_but(labels, own["labels"], HOSTNAME)
        )

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        metadata = stored["metadata"]
        labels = {**metadata["labels"], HOSTNAME: obj["metadata"]["labels"][HOSTNAME]}
        return {**stored, "metadata": {**metadata, "labels": labels}}


class OwnedBlueprint(Blueprint):
    """Pods of owners that are alike: they differ in the name and the uid of the owner.

    These stand in the reference to it, in labels, and begin their names. `OwnedBodies` hands it out
    for bodies of which it has seen that.
    """

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        del obj
        return True

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        given = obj["metadata"]
        own = {name: given[name] for name in _OF_OWNER if name in given}
        return {**stored, "metadata": {**stored["metadata"], **own}}


class OwnedBodies:
    """Tells which pods differ in their owner alone, by the text of all else."""

    def __init__(self) -> None:
        self._known: BoundedDict[bytes, OwnedBlueprint] = BoundedDict(BODIES_KEPT)

    def blueprint_of(self, body: JsonObject) -> OwnedBlueprint | None:
        """What a body has in common with others; None if its owner's name is no label, or odd.

        It must not be changed any more.
        """
        metadata = body["metadata"]
        [owner] = metadata["ownerReferences"]
        name, uid = owner["name"], owner["uid"]
        if len(name) > LONGEST_LABEL or not _UID.fullmatch(uid):
            return None
        # Numbers are no labels: nothing else looks like them.
        places = {name: 0, uid: 1}
        labels = {key: places.get(value, value) for key, value in metadata["labels"].items()}
        blank = {
            **metadata,
            "generateName": 0,
            "labels": labels,
            "ownerReferences": {**owner, "name": 0, "uid": 1},
        }
        key = orjson.dumps({**body, "metadata": blank})
        blueprint = self._known.get(key)
        if blueprint is None:
            blueprint = self._known[key] = OwnedBlueprint(body)
        return blueprint


_VARYING = frozenset({"metadata", "spec"})
_CLAIM = "persistentVolumeClaim"


def _same_but_claim(new: ReadOnlyObject, old: ReadOnlyObject) -> bool:
    if new is old:
        return True
    return same_but(new, old, _CLAIM) and same_but(new[_CLAIM], old[_CLAIM], "claimName")


def _claiming(volume: JsonObject, wanted: ReadOnlyObject) -> JsonObject:
    """A stored volume with the claim of another one like it."""
    if _CLAIM not in wanted:
        return volume
    claim = {**volume[_CLAIM], "claimName": wanted[_CLAIM]["claimName"]}
    return {**volume, _CLAIM: claim}


def same_but(new: Mapping[str, Any], old: Mapping[str, Any], member: str) -> bool:
    """Whether two objects have the same members in the same order, apart from one's value."""
    if [*new] != [*old]:
        return False
    for name, value in new.items():  # noqa: SIM110 - a generator would take twice as long
        if value is not old[name] and name != member:
            return False
    return True


def says_host(obj: JsonObject) -> bool:
    """Whether this is a node that says in a label that it is the host of its name."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") if obj.get("kind") == "Node" else None
    return isinstance(labels, dict) and labels.get(HOSTNAME) == metadata.get("name")


def named(obj: ReadOnlyObject, name: str, *, is_host: bool) -> JsonObject:
    """The object under another name, sharing all else."""
    metadata = {**obj["metadata"], "name": name}
    if is_host:
        metadata["labels"] = {**metadata["labels"], HOSTNAME: name}
    return {**obj, "metadata": metadata}
