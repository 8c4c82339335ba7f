"""Objects of one template: decoded, admitted and validated once, then made one like the other.

Whoever creates with a `Blueprint` promises that bodies differ in nothing but the name, or in what
the blueprint sees to itself. What a create adds is the same for all of them as long as

- the writer, the namespace and the options are the same,
- every admission plugin has declared what it looks at (`DeclaredPlugin`), and no object of
  those resources has changed, and
- nothing in the object depends on its name or on the time, apart from what is set here each time.

Otherwise the create takes the long way, and is the one that the next are like. Names are generated,
checked and found unused for each object, and each takes its own uid, exactly as on the long way.

Of pods even the text is made once, with places for what is each one's: name, uid and time in the
metadata, the names of claims among the volumes in the spec.
"""

from collections.abc import Sequence

import orjson
from msgspec import Struct

from kubescene.api.kinds import EVENT, JOB, NODE, POD
from kubescene.api.options import WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.changes import ADDED, Change
from kubescene.api.records.drafts import Parts
from kubescene.api.records.parts import PodSections, Sections, pod_members
from kubescene.api.records.templates import (
    HOSTNAME,
    Blueprint,
    ClaimingBlueprint,
    OwnedBlueprint,
    TargetedBlueprint,
    target_of,
    targeted,
)
from kubescene.api.scheme import ResourceType
from kubescene.api.validation.names import dns_subdomain, path_segment
from kubescene.bounded import BoundedDict
from kubescene.clock import Identities, format_time
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.clocks import Clocks
from kubescene.registry.metadata import check_unused, example_name, free_name
from kubescene.registry.preparation import JOB_NAME_LABELS, JOB_UID_LABELS, selecting_its_own
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject, JsonValue

TEMPLATES_KEPT = 512
UNSEEN = -1
LABEL = 63
"""The longest value of a label; names of nodes have no other characters than those allowed."""
_OWN = frozenset({"name", "uid", "creationTimestamp"})
_CLAIM = "persistentVolumeClaim"
_PLACE = "\0"
"""Stands for the name of a claim while its place is looked for."""


class Template(Struct, frozen=True):
    """An object that was created the long way, and what that depended on."""

    request: WriteRequest
    seen: int
    """The newest change of what admission looks at."""
    obj: JsonObject
    encoded: "PodTemplate | None"
    """Of pods whose bodies differ in nothing but names, and those of claims."""

    def serves(self, request: WriteRequest) -> bool:
        """Whether a create of the same blueprint would become the same."""
        first, blueprint = self.request, request.options.blueprint
        return (
            first.actor is request.actor
            and first.namespace == request.namespace
            and first.tracked is request.tracked
            and first.resource_type is request.resource_type
            and said_alike(first.options, request.options)
            and blueprint is not None
            and (
                first.body is request.body  # once more the same, as a ReplicaSet asks for pods
                or (
                    blueprint.covers(request.body)
                    and is_good_name(example_name(request.body["metadata"]), request.resource_type)
                )
            )
        )

    def named(self, name: str, uid: str, request: WriteRequest, now: str) -> JsonObject:
        """What becomes of another body, with a name, an identity and a date of its own."""
        assert request.options.blueprint is not None
        poured = request.options.blueprint.poured(self.obj, request.body)
        own = {"name": name, "uid": uid, "creationTimestamp": now}
        metadata = {**poured["metadata"], **own}
        if self.request.resource_type.gvk == JOB:
            return selecting_its_own({**poured, "metadata": metadata})
        if entries := metadata.get("managedFields"):
            metadata["managedFields"] = [{**entry, "time": now} for entry in entries]
        return {**poured, "metadata": metadata}


class Templates:
    """The newest templates of one world, by blueprint."""

    def __init__(
        self, store: Store, admission: AdmissionChain, identities: Identities, clocks: Clocks
    ) -> None:
        self._store = store
        self._admission = admission
        self._identities = identities
        self._clocks = clocks
        self._templates: BoundedDict[Blueprint, Template] = BoundedDict(TEMPLATES_KEPT)

    def of(self, request: WriteRequest) -> Template | None:
        """The template that a create has, if it is known and serves it."""
        blueprint = request.options.blueprint
        template = None if blueprint is None else self._templates.get(blueprint)
        if template is None or blueprint is None:
            return None
        if template.seen != self._seen(request.resource_type) or not template.serves(request):
            return None
        self._templates.move_to_end(blueprint)
        return template

    def find(self, request: WriteRequest, current: Record | None) -> Parts | JsonObject | None:
        """Another object of the template that a create has, named and found unused."""
        template = self.of(request)
        if template is None:
            return None
        kind, metadata = request.resource_type, template.obj["metadata"]
        place: str = metadata.get("namespace", "")
        name = free_name(request.body["metadata"], kind, place, self._identities, self._store)
        uid = self._identities.uid(kind.kind, place, name)
        now = format_time(self._clocks.of(kind).now())
        check_unused(kind, place, name, self._store)
        if template.encoded is not None:
            return template.encoded.instance(name, uid, now, request.body)
        return template.named(name, uid, request, now)

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember what was just created the long way, if others can be like it."""
        blueprint = request.options.blueprint
        if blueprint is None or not blueprint.covers(request.body):
            return
        seen = self._seen(request.resource_type)
        if seen >= after.revision:  # What admission looks at may be what was created.
            return
        obj = self._store.decoded(after)
        if not self._is_fit(request, obj) or not is_poured(blueprint, obj, request.body):
            return
        encoded = pod_template(after, obj, request.body, blueprint)
        self._templates[blueprint] = Template(request, seen, obj, encoded)

    def _seen(self, resource_type: ResourceType) -> int:
        """A number that is another one after each change of what admission looks at.

        Where somebody looks at more than he says it is none that was ever seen.
        """
        if self._admission.reads is None:
            return UNSEEN
        reads = self._admission.concerned(resource_type.kind).reads
        return self._store.history.newest_among(reads)

    def _is_fit(self, request: WriteRequest, obj: JsonObject) -> bool:
        """Whether others of the blueprint differ from it in nothing but what is set each time."""
        gvk, given = request.resource_type.gvk, request.body["metadata"]
        if self._admission.reads is None or gvk not in (POD, EVENT, NODE, JOB):
            return False
        if gvk == JOB:
            return is_fit_job(request.body, obj)
        if gvk == NODE:
            return is_fit_node(given, obj["metadata"])
        return gvk == EVENT or is_fit_pod(given, obj)


def is_good_name(name: str, resource_type: ResourceType) -> bool:
    """Whether validation, which all but the name has passed, would accept the name, too."""
    if resource_type.gvk == EVENT:
        return not path_segment(name)
    # The name of a node, or of a Job, is a label, too.
    return not dns_subdomain(name) and (resource_type.gvk == POD or len(name) <= LABEL)


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


def is_fit_job(given: JsonObject, job: JsonObject) -> bool:
    """The same for Jobs that select their own pods. The pods of an indexed one are hosts of its
    name."""
    metadata, spec = given["metadata"], given["spec"]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    return (
        spec.get("completionMode") != "Indexed"
        and spec.get("selector") is None
        and not labels.keys() & {*JOB_NAME_LABELS, *JOB_UID_LABELS}
        and bool(metadata.get("name"))
        and not metadata.get("generateName")
        and "managedFields" not in job["metadata"]
        and given["metadata"]["name"] == job["metadata"]["name"]
        and job == selecting_its_own(job)
    )


def is_poured(blueprint: Blueprint, obj: JsonObject, body: JsonObject) -> bool:
    """Whether nothing of what bodies differ in has led to anything else in the object."""
    if type(blueprint) is not OwnedBlueprint:
        return True
    metadata = obj["metadata"]
    owner = body["metadata"]["ownerReferences"][0]
    own = {"name", "generateName", "labels", "ownerReferences"}
    others = {name: each for name, each in metadata.items() if name not in own}
    rest = orjson.dumps({**obj, "metadata": others})
    told = any(orjson.dumps(owner[field]) in rest for field in ("name", "uid"))
    return not told and blueprint.poured(obj, body) == obj


def is_ephemeral(volume: JsonObject) -> bool:
    return volume.get("ephemeral") is not None


def said_alike(one: WriteOptions, other: WriteOptions) -> bool:
    """Whether options differ in nothing but the operation that they come from."""
    return (
        one.strict == other.strict
        and one.dry_run == other.dry_run
        and one.field_manager == other.field_manager
        and one.force == other.force
        and one.through == other.through
    )


class PodTemplate:
    """Alike pods, encoded: all is one but name, uid and time, which have places in the text."""

    __slots__ = ("_members", "_metadata", "record")

    def __init__(self, record: Record, metadata: JsonObject) -> None:
        assert isinstance(record.payload, Sections)
        self.record = record
        self._members = record.payload.members
        parts = [_blank(*each) for each in metadata.items() if each[0] != "resourceVersion"]
        self._metadata = b",".join(parts) + b"}"

    def instance(self, name: str, uid: str, now: str, body: JsonObject) -> Parts:
        """One of them; its name has plain characters only."""
        like, metadata = self.record, self.metadata(name, uid, now)
        members = self.members(body)
        return Parts(like, metadata, members, name, uid, like.labels, like.node, like.phase)

    def metadata(self, name: str, uid: str, now: str) -> bytes:
        """The encoded metadata of one of them."""
        own = {b"name": name.encode(), b"uid": uid.encode(), b"creationTimestamp": now.encode()}
        return self._metadata % own

    def members(self, body: JsonObject) -> tuple[bytes, ...]:
        """What becomes of the rest of a body, encoded."""
        del body
        return self._members


class ClaimingPodTemplate(PodTemplate):
    """Pods that name claims of their own as well; ``spec`` has a place for each."""

    __slots__ = ("_spec",)

    def __init__(self, record: Record, metadata: JsonObject, spec: bytes) -> None:
        super().__init__(record, metadata)
        self._spec = spec

    def members(self, body: JsonObject) -> tuple[bytes, ...]:
        return (self._spec % claim_names(body["spec"]["volumes"]), *self._members[1:])


class TargetedPodTemplate(PodTemplate):
    """Pods that ask for a node each; ``spec`` has a place for its name."""

    __slots__ = ("_spec",)

    def __init__(self, record: Record, metadata: JsonObject, spec: bytes) -> None:
        super().__init__(record, metadata)
        self._spec = spec

    def members(self, body: JsonObject) -> tuple[bytes, ...]:
        return (self._spec % orjson.dumps(target_of(body["spec"])), *self._members[1:])


def pod_template(
    record: Record, obj: JsonObject, body: JsonObject, blueprint: Blueprint
) -> PodTemplate | None:
    """The template of the pod that a body became.

    None if others of the blueprint differ in more than their names and those of claims.
    """
    metadata, members = obj["metadata"], pod_members(record.payload)
    is_pod = members is not None and metadata.keys() >= _OWN
    if members is None or not is_pod or "managedFields" in metadata:
        return None
    if type(blueprint) is Blueprint:
        return PodTemplate(record, metadata)
    spec = b""
    if type(blueprint) is TargetedBlueprint:
        spec = targeted_spec(obj["spec"], members[0], target_of(body["spec"]))
        return TargetedPodTemplate(record, metadata, spec) if spec else None
    if type(blueprint) is ClaimingBlueprint:
        spec = claiming_spec(obj["spec"], members[0], body["spec"]["volumes"])
    return ClaimingPodTemplate(record, metadata, spec) if spec else None


def claiming_spec(spec: JsonObject, encoded: bytes, given: Sequence[JsonObject]) -> bytes:
    """An encoded spec with a place for the name of each claim that was given.

    Empty if the names do not stand where they should: then each pod is encoded by itself.
    """
    volumes = [*map(_placed, spec["volumes"], given), *spec["volumes"][len(given) :]]
    text = b',"spec":' + orjson.dumps({**spec, "volumes": volumes})
    text = text[:-1].replace(b"%", b"%%").replace(orjson.dumps(_PLACE), b"%b")
    names = claim_names(given)
    as_expected = text.count(b"%b") == len(names) and text % names == encoded
    return text if as_expected else b""


def targeted_spec(spec: JsonObject, encoded: bytes, node: str) -> bytes:
    """An encoded spec with a place for the name of the node that a pod asks for; or empty."""
    text = b',"spec":' + orjson.dumps(targeted(spec, _PLACE))
    text = text[:-1].replace(b"%", b"%%").replace(orjson.dumps(_PLACE), b"%b")
    as_expected = text.count(b"%b") == 1 and text % orjson.dumps(node) == encoded
    return text if as_expected else b""


def claim_names(volumes: Sequence[JsonObject]) -> tuple[bytes, ...]:
    """The names of claims in order, encoded."""
    claims = [claim for each in volumes if (claim := each.get(_CLAIM)) is not None]
    return tuple([orjson.dumps(claim["claimName"]) for claim in claims])


def _placed(volume: JsonObject, given: JsonObject) -> JsonObject:
    if given.get(_CLAIM) is None:
        return volume
    return {**volume, _CLAIM: {**volume[_CLAIM], "claimName": _PLACE}}


def _blank(member: str, value: JsonValue) -> bytes:
    """A member as it stands in the text, or a place where each object's own will stand."""
    if member in _OWN:
        return b'"%b":"%%(%b)b"' % (member.encode(), member.encode())
    return b"%b:%b" % (orjson.dumps(member), orjson.dumps(value).replace(b"%", b"%%"))


class Bunch:
    """Creates pods like the one that a template was made of, at one instant.

    A create of which only the name differs finds the same template, admission and gate: what is
    left is a name that nobody has, a uid, a record. Those who follow pods are not told, since the
    lane (`kubescene.lane`) tells them.
    """

    def __init__(self, template: Template, store: Store, identities: Identities, now: str) -> None:
        assert template.encoded is not None
        self._kind = template.request.resource_type
        self._pods = template.encoded
        self._store = store
        self._identities = identities
        self._now = now

    def create(self, name: str) -> Change | None:
        """Create one of this name; None if it takes a closer look, and nothing has happened."""
        like, store = self._pods.record, self._store
        place, payload = like.namespace, like.payload
        assert isinstance(payload, PodSections)
        if not is_good_name(name, self._kind) or store.get(like.resource, place, name) is not None:
            return None
        uid = self._identities.uid(self._kind.kind, place, name)
        revision, metadata = store.revision + 1, self._pods.metadata(name, uid, self._now)
        record = Record(
            like.resource,
            place,
            name,
            uid,
            revision,
            PodSections(payload.head, revision, metadata, payload.members),
            like.labels,
            like.node,
            like.phase,
            like.owner,
        )
        change = Change(ADDED, record, None, store)
        store.commit_unheard(change)
        return change
