"""The same status reported for many alike pods, or nodes: merged and validated once.

A kubelet that starts a thousand pods of one template sends one patch a thousand times, and so does
a scheduler that preempts them; a cluster has few shapes of nodes, and each is told to be ready when
it comes. Whoever sends it with a `Blueprint` promises that the patch is not changed any more. What
it makes of a status depends on the patch, on the status before and on the spec before, but not on a
pod's node; since equal parts of records are one, it is seen without comparing that they are the
same. Specs that differ in the names of their claims, or in the node that they ask for by name,
count as the same, too, and so do patches that differ in the node that a pod is nominated to
(`NominatingBlueprint`). Admission has no say, if all its plugins have declared themselves
(`DeclaredPlugin`).

Metadata stay as they are, so there is nothing in them to validate.
"""

from typing import TypeAlias

from msgspec import Struct

from kubescene.api.kinds import NODE, POD
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.drafts import Parts, changed
from kubescene.api.records.keys import alike_spec
from kubescene.api.records.parts import (
    UNPLACED,
    PodSections,
    Sections,
    nominating,
    split_nomination,
)
from kubescene.api.records.templates import NOMINATION, Blueprint, NominatingBlueprint
from kubescene.api.validation.names import dns_subdomain
from kubescene.bounded import BoundedDict
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.writes import WriteRequest

PATCHES_KEPT = 4096
"""Pods of a thousand templates may start in turns."""
_STATUS = {"status"}
_MERGES = (PatchType.MERGE, PatchType.STRATEGIC)
_NOMINATION = b'"nominatedNodeName"'
_EMPTY = b'":{}'
Members: TypeAlias = tuple[bytes, ...]
Key: TypeAlias = tuple[object, ...]


class Patched(Struct, frozen=True):
    """What was accepted, encoded, and what it was made from.

    The members are held so that nobody else has their ids.
    """

    before: Members
    after: Members
    phase: str


class StatusPatches:
    """The newest results of one world, by the blueprint of the patch and the parts before."""

    def __init__(self, admission: AdmissionChain) -> None:
        self._admission = admission
        self._patched: BoundedDict[Key, Patched] = BoundedDict(PATCHES_KEPT)

    def find(self, request: WriteRequest, current: Record | None) -> Parts | None:
        """What the same patch made of another object like this one."""
        options = request.options
        blueprint = options.blueprint
        if blueprint is None or current is None or request.tracked:
            return None
        payload = current.payload
        if not isinstance(payload, Sections):
            return None
        known = self._patched.get(_key(request, blueprint, payload))
        if known is None or not is_neat(payload.metadata):
            return None
        if type(blueprint) is NominatingBlueprint:
            return nominated(request, current, payload.members, known)
        # The rest of `is_report` was seen to when it was learned from this body.
        if request.body is not blueprint.body or options.strict or options.dry_run:
            return None
        if type(payload) is PodSections:
            spec, node, _, end = payload.members
            members: Members = (spec, node, known.after[2], end)
        elif current.deleting:
            return None
        else:
            members = known.after
        return changed(current, members, known.phase)

    def known(self, blueprint: Blueprint, spec: bytes, status: bytes) -> tuple[bytes, str] | None:
        """Status and phase that a merge gives to pods of these parts, without empty metadata."""
        found = self._patched.get((blueprint, PatchType.MERGE, alike_spec(spec), id(status)))
        return None if found is None else (found.after[2], found.phase)

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember what a patch with a blueprint has led to."""
        blueprint = request.options.blueprint
        if blueprint is None or before is None or after is before or not is_report(request):
            return
        old, new = before.payload, after.payload
        if not isinstance(old, Sections) or type(new) is not type(old):
            return
        members: Members | None = new.members
        if type(new) is PodSections:
            members = without_nomination(old.members, new.members, blueprint)
        elif request.resource_type.gvk != NODE or before.deleting or type(new) is not Sections:
            return
        if members is None or not self._admission.is_quiet:
            return
        patched = Patched(old.members, members, after.phase)
        self._patched[_key(request, blueprint, old)] = patched


def _key(request: WriteRequest, blueprint: Blueprint, payload: Sections) -> Key:
    members = payload.members
    if type(payload) is PodSections:
        return blueprint, request.patch_type, alike_spec(members[0]), id(members[2])
    return blueprint, request.patch_type, *map(id, members)


def without_nomination(old: Members, new: Members, blueprint: Blueprint) -> Members | None:
    """The members of a pod after a patch, its nomination apart; None if that cannot be told."""
    # Nothing is written where nothing changes.
    if new[2] == old[2]:
        return None
    # Who is nominated already may lose that, or keep it: the next one is somewhere else.
    split = split_nomination(new[2])
    if split is None or _NOMINATION in old[2]:
        return None
    if bool(split[1]) is not (type(blueprint) is NominatingBlueprint):
        return None
    return (*new[:2], split[0], new[3])


def nominated(
    request: WriteRequest, current: Record, members: Members, known: Patched
) -> Parts | None:
    """The pod with a nomination; None if such a node, or a pod with a node, is refused."""
    if not is_report(request):
        return None
    node = request.body["status"][NOMINATION]
    if type(node) is not str or not node or dns_subdomain(node) or members[1] != UNPLACED:
        return None
    status = nominating(known.after[2], node)
    return changed(current, (*members[:2], status, members[3]), known.phase)


def is_neat(metadata: bytes) -> bool:
    """Whether a write of the status leaves the rest alone: empty maps of metadata go with it."""
    if _EMPTY not in metadata:
        return True
    return b'"labels":{}' not in metadata and b'"annotations":{}' not in metadata


def is_report(request: WriteRequest) -> bool:
    """Whether a request merges what many have in common into the status of a pod, or a node."""
    options, blueprint, body = request.options, request.options.blueprint, request.body
    if blueprint is None or options.strict or options.dry_run or request.tracked:
        return False
    if request.subresource != "status" or request.patch_type not in _MERGES:
        return False
    if request.resource_type.gvk not in (POD, NODE):
        return False
    is_nominating = type(blueprint) is NominatingBlueprint and blueprint.covers(body)
    return (blueprint.body is body or is_nominating) and body.keys() == _STATUS
