"""Objects of one template: decoded, admitted and validated once, then made one like the other.

Whoever creates with a `Blueprint` promises that bodies differ in nothing but the name, or in what
the blueprint sees to itself. What a create adds is the same for all of them as long as

- the writer, the namespace and the options are the same,
- every admission plugin has declared what it looks at (`DeclaredPlugin`), and no object of
  those resources has changed, and
- nothing in the object depends on its name or on the time, apart from what is set here each time.

Otherwise the create takes the long way, and is the one that the next are like. Names are generated,
checked and found unused for each object, and each takes its own uid, exactly as on the long way.
"""

from collections import OrderedDict
from dataclasses import dataclass

from kubescene.actors import Actor
from kubescene.api.kinds import EVENT, NODE, POD
from kubescene.api.options import WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.parts import Predecessor, Sections
from kubescene.api.records.templates import HOSTNAME, Blueprint
from kubescene.api.scheme import ResourceType
from kubescene.api.validation.names import dns_subdomain, path_segment
from kubescene.clock import Clock, Identities, format_time
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.shortcuts.encoded_templates import Cast, cast_of
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

MOLDS_KEPT = 512
LABEL = 63
"""The longest value of a label; names of nodes have no other characters than those allowed."""


@dataclass(slots=True)
class Mold:
    """An object that was created the long way, and what that depended on."""

    actor: Actor
    options: WriteOptions
    namespace: str
    seen: int
    tracked: bool
    resource_type: ResourceType
    obj: JsonObject
    encoded: Predecessor | None
    """The object with its encoding, which others like it share."""
    cast: Cast | None
    """For those whose names are plain and that differ in nothing else but claims."""

    @property
    def place(self) -> str:
        place: str = self.obj["metadata"].get("namespace", "")
        return place

    def is_good_name(self, name: str) -> bool:
        """Whether validation, which all but the name has passed, would accept the name, too."""
        if self.resource_type.gvk == EVENT:
            return not path_segment(name)
        # The name of a node may be a label, too.
        return not dns_subdomain(name) and (self.resource_type.gvk == POD or len(name) <= LABEL)

    def named(
        self, name: str, body: JsonObject, identities: Identities, clock: Clock
    ) -> JsonObject:
        """What becomes of another body, with a name, an identity and a date of its own."""
        now, kind = format_time(clock.now()), self.resource_type.kind
        assert self.options.blueprint is not None
        poured = self.options.blueprint.poured(self.obj, body)
        metadata = {
            **poured["metadata"],
            "name": name,
            "uid": identities.uid(kind, self.place, name),
            "creationTimestamp": now,
        }
        if entries := metadata.get("managedFields"):
            metadata["managedFields"] = [{**entry, "time": now} for entry in entries]
        return {**poured, "metadata": metadata}


class Molds:
    """The newest molds of one world, by blueprint."""

    def __init__(self, store: Store, admission: AdmissionChain) -> None:
        self._store = store
        self._admission = admission
        self._molds: OrderedDict[Blueprint, Mold] = OrderedDict()

    def find(
        self,
        actor: Actor,
        body: JsonObject,
        namespace: str,
        options: WriteOptions,
        *,
        tracked: bool = False,
    ) -> Mold | None:
        """The mold that a create may use, if there is one."""
        blueprint = options.blueprint
        mold = self._molds.get(blueprint) if blueprint is not None else None
        if mold is None or blueprint is None or mold.seen != self.seen(mold.resource_type):
            return None
        if mold.tracked is not tracked:
            return None
        same_request = mold.actor is actor and mold.namespace == namespace
        same_options = told_alike(mold.options, options)
        if not (same_request and same_options and blueprint.covers(body)):
            return None
        self._molds.move_to_end(blueprint)
        return mold

    def seen(self, resource_type: ResourceType) -> int:
        """A number that is another one after each change of what admission looks at."""
        reads = self._admission.reads_for(resource_type.kind)
        return self._store.history.newest_among(reads)

    def keep(
        self,
        request: WriteRequest,
        namespace: str,
        seen: int,
        record: Record,
        *,
        tracked: bool = False,
    ) -> None:
        """Remember what was just created the long way, if others can be like it."""
        blueprint, obj = request.options.blueprint, self._store.decoded(record)
        if blueprint is None or not blueprint.covers(request.body):
            return
        if not self.is_fit(request, obj):
            return
        kind, options = request.resource_type, request.options
        payload = record.payload
        encoded = Predecessor(payload, obj) if isinstance(payload, Sections) else None
        self._molds[blueprint] = Mold(
            request.actor,
            options,
            namespace,
            seen,
            tracked,
            kind,
            obj,
            encoded,
            cast_of(record, obj, request.body, blueprint),
        )
        if len(self._molds) > MOLDS_KEPT:
            self._molds.popitem(last=False)

    def is_fit(self, request: WriteRequest, obj: JsonObject) -> bool:
        """Whether others of the same blueprint differ from it in nothing but what `Mold` sets."""
        gvk, given = request.resource_type.gvk, request.body["metadata"]
        if self._admission.reads is None or gvk not in (POD, EVENT, NODE):
            return False
        if gvk == NODE:
            return is_fit_node(given, obj["metadata"])
        return gvk == EVENT or is_fit_pod(given, obj)


def is_fit_pod(given: JsonObject, pod: JsonObject) -> bool:
    """Whether other pods of the same body would have become the same, but for their names."""
    metadata, spec = pod["metadata"], pod["spec"]
    # Admission may have its own idea of names. A gated pod says since when. The claims of
    # ephemeral volumes are named, and validated, by the pod's name.
    name_is_own = given.get("name") in (None, "", metadata["name"])
    same_prefix = given.get("generateName") == metadata.get("generateName")
    timeless = not spec.get("schedulingGates")
    volumes = spec.get("volumes") or ()
    return name_is_own and same_prefix and timeless and not any(map(is_ephemeral, volumes))


def is_fit_node(given: JsonObject, metadata: JsonObject) -> bool:
    """The same for nodes. Who is named by us cannot say in a label which host it is."""
    hosts = [(it.get("labels") or {}).get(HOSTNAME) for it in (given, metadata)]
    return given.get("name") == metadata["name"] and hosts[0] == hosts[1]


def is_ephemeral(volume: JsonObject) -> bool:
    return volume.get("ephemeral") is not None


def told_alike(one: WriteOptions, other: WriteOptions) -> bool:
    """Whether options differ in nothing but the operation that they come from."""
    return (
        one.strict == other.strict
        and one.dry_run == other.dry_run
        and one.field_manager == other.field_manager
        and one.force == other.force
        and one.through == other.through
    )
