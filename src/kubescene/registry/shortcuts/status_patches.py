"""The same status reported for many alike pods: merged and validated once.

A kubelet that starts a thousand pods of one template sends one patch a thousand times, and so does
a scheduler that preempts them. Whoever sends it with a `Blueprint` promises that the patch is not
changed any more. What it makes of a pod's status depends on the patch, on the status before and on
the spec before, but not on the node; since equal parts of records are one, it is seen without
comparing that they are the same. Specs that differ in the names of their claims count as the same,
too, and so do patches that differ in the node that a pod is nominated to (`NominatingBlueprint`).
Admission has no say, if all its plugins have declared themselves (`DeclaredPlugin`).

Metadata stay as they are, so there is nothing in them to validate.
"""

import re
from collections import OrderedDict
from typing import TypeAlias

from msgspec import Struct, structs

from kubescene.api.kinds import POD
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.parts import (
    UNPLACED,
    PodMembers,
    Sections,
    nominating,
    part_mentions,
    pod_members,
    split_nomination,
)
from kubescene.api.records.templates import NOMINATION, Blueprint, NominatingBlueprint
from kubescene.api.validation.names import dns_subdomain
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.writes import WriteRequest
from kubescene.types import ReadOnlyObject

REPORTS_KEPT = 4096
"""Pods of a thousand templates may start in turns."""
_STATUS = {"status"}
_MERGES = (PatchType.MERGE, PatchType.STRATEGIC)
_NOMINATION = b'"nominatedNodeName"'
_EMPTY = b'":{}'
_CLAIM = b'"claimName":'
_CLAIM_NAME = re.compile(rb'(?<!\\)"claimName":"[^"\\]*"')
"""Not within a text, where quotes are escaped."""


class Report(Struct, frozen=True):
    """A status that was accepted, encoded, and what it was made from."""

    spec: bytes
    before: bytes
    status: bytes
    phase: str


ReportKey: TypeAlias = tuple[Blueprint, str, int | bytes, int]


class Reports:
    """The newest reports of one world, by the blueprint of the patch and the parts before."""

    def __init__(self, admission: AdmissionChain) -> None:
        self._admission = admission
        self._reports: OrderedDict[ReportKey, Report] = OrderedDict()

    def find(self, request: WriteRequest, current: Record) -> Report | None:
        """The report that a request for a status leads to, if that is known."""
        options, members = request.options, pod_members(current.payload)
        blueprint = options.blueprint
        if blueprint is None or members is None:
            return None
        report = self._reports.get(_key(request, blueprint, members))
        # The report holds the parts that it was made from, so nobody else has their ids.
        if report is None or not is_neat(current):
            return None
        if type(blueprint) is NominatingBlueprint:
            if not is_report(request):
                return None
            return nominated(report, request.body["status"][NOMINATION], members)
        # The rest of `is_report` was seen to when it was kept for this body.
        is_its = request.body is blueprint.body and not options.strict and not options.dry_run
        return report if is_its else None

    def known(self, blueprint: Blueprint, spec: bytes, status: bytes) -> Report | None:
        """What a merge makes of pods with these parts, whose metadata have no empty maps."""
        return self._reports.get((blueprint, PatchType.MERGE, likeness(spec), id(status)))

    def keep(self, request: WriteRequest, current: Record, record: Record) -> None:
        """Remember what a request with a blueprint has led to."""
        blueprint, before = request.options.blueprint, pod_members(current.payload)
        if blueprint is None or before is None or not is_report(request):
            return
        after = pod_members(record.payload)
        # Nothing is written where nothing changes.
        if after is None or after[2] == before[2] or not self._admission.is_quiet:
            return
        # Who is nominated already may lose that, or keep it: the next one is somewhere else.
        split = split_nomination(after[2])
        if split is None or _NOMINATION in before[2]:
            return
        if bool(split[1]) is not (type(blueprint) is NominatingBlueprint):
            return
        report = Report(before[0], before[2], split[0], record.phase)
        self._reports[_key(request, blueprint, before)] = report
        if len(self._reports) > REPORTS_KEPT:
            self._reports.popitem(last=False)


def _key(request: WriteRequest, blueprint: Blueprint, before: PodMembers) -> ReportKey:
    return blueprint, request.patch_type, likeness(before[0]), id(before[2])


def nominated(report: Report, node: object, members: PodMembers) -> Report | None:
    """The report with a nomination; None if such a node, or a pod with a node, is refused."""
    if type(node) is not str or not node or dns_subdomain(node) or members[1] != UNPLACED:
        return None
    return structs.replace(report, status=nominating(report.status, node))


def is_neat(record: Record) -> bool:
    """Whether a write of the status leaves the rest alone: empty maps of metadata go with it."""
    assert isinstance(record.payload, Sections)
    metadata = record.payload.metadata
    if _EMPTY not in metadata:
        return True
    return b'"labels":{}' not in metadata and b'"annotations":{}' not in metadata


def likeness(spec: bytes) -> int | bytes:
    """The same for specs that are one, or differ in nothing but the names of claims."""
    return _CLAIM_NAME.sub(b"", spec) if part_mentions(spec, _CLAIM) else id(spec)


def is_report(request: WriteRequest) -> bool:
    """Whether a request is a merge of nothing but a pod's status."""
    options, blueprint = request.options, request.options.blueprint
    return (
        request.subresource == "status"
        and request.patch_type in _MERGES
        and request.resource_type.gvk == POD
        and blueprint is not None
        and (blueprint.body is request.body or is_nominating(blueprint, request.body))
        and request.body.keys() == _STATUS
        and not options.strict
        and not options.dry_run
    )


def is_nominating(blueprint: Blueprint, body: ReadOnlyObject) -> bool:
    """Whether a body is that of a blueprint, but for the node that it nominates a pod to."""
    return type(blueprint) is NominatingBlueprint and blueprint.covers(body)
