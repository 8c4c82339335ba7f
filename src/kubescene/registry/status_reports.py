"""The same status reported for many alike pods: merged and validated once.

A kubelet that starts a thousand pods of one template sends one patch a thousand times, and so does
a scheduler that preempts them. Whoever sends it with a `Blueprint` promises that the patch is not
changed any more. What it makes of a pod's status depends on the patch, on the status before and on
the spec before, but not on the node; since equal parts of records are one, it is seen without
comparing that they are the same. Specs that differ in the names of their claims count as the same,
too. Admission has no say, if all its plugins have declared themselves (`DeclaredPlugin`).

Metadata are looked at every time, because they are each pod's own.
"""

import re
from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from kubescene.api.blueprints import Blueprint
from kubescene.api.kinds import POD
from kubescene.api.parts import Sections
from kubescene.api.patches import PatchType
from kubescene.api.records import Record
from kubescene.registry.admission import AdmissionChain
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

REPORTS_KEPT = 64
_STATUS = {"status"}
_MERGES = (PatchType.MERGE, PatchType.STRATEGIC)
_CLAIM_NAME = re.compile(rb'(?<!\\)"claimName":"[^"\\]*"')
"""Not within a text, where quotes are escaped."""


class PodParts(NamedTuple):
    """The parts of a pod's record that a status depends on."""

    spec: bytes
    status: bytes


class Report(Struct, frozen=True):
    """A status that was accepted, and what it was made from."""

    before: PodParts
    status: JsonObject


ReportKey: TypeAlias = tuple[Blueprint, str, int | bytes, int]


class Reports:
    """The newest reports of one world, by the blueprint of the patch and the parts before."""

    def __init__(self, store: Store, admission: AdmissionChain) -> None:
        self._store = store
        self._admission = admission
        self._reports: OrderedDict[ReportKey, Report] = OrderedDict()

    def find(self, request: WriteRequest, current: Record) -> JsonObject | None:
        """The status that a request leads to, if that is known."""
        blueprint, before = request.options.blueprint, pod_parts(current)
        if blueprint is None or before is None or not is_report(request):
            return None
        report = self._reports.get(_key(request, blueprint, before))
        # The report holds the parts that it was made from, so nobody else has their ids.
        return None if report is None else report.status

    def keep(self, request: WriteRequest, current: Record, record: Record) -> None:
        """Remember what a request with a blueprint has led to."""
        blueprint, before = request.options.blueprint, pod_parts(current)
        if blueprint is None or before is None or not is_report(request):
            return
        after, status = pod_parts(record), self._store.decoded(record)["status"]
        # Nothing is written where nothing changes. A nomination is judged by the node.
        changes = after is not None and after.status != before.status
        if not changes or self._admission.reads is None or "nominatedNodeName" in status:
            return
        self._reports[_key(request, blueprint, before)] = Report(before, status)
        if len(self._reports) > REPORTS_KEPT:
            self._reports.popitem(last=False)


def _key(request: WriteRequest, blueprint: Blueprint, before: PodParts) -> ReportKey:
    return blueprint, request.patch_type, likeness(before.spec), id(before.status)


def likeness(spec: bytes) -> int | bytes:
    """The same for specs that are one, or differ in nothing but the names of claims."""
    return _CLAIM_NAME.sub(b"", spec) if b'"claimName":' in spec else id(spec)


def is_report(request: WriteRequest) -> bool:
    """Whether a request is a merge of nothing but a pod's status."""
    options = request.options
    return (
        request.subresource == "status"
        and request.patch_type in _MERGES
        and request.resource_type.gvk == POD
        and options.blueprint is not None
        and options.blueprint.body is request.body
        and request.body.keys() == _STATUS
        and not options.strict
        and not options.dry_run
    )


def pod_parts(record: Record) -> PodParts | None:
    """Spec without node, and status, of a pod's record that has just these members."""
    payload = record.payload
    if not isinstance(payload, Sections) or len(payload.members) != 4:
        return None
    spec, _, status, _ = payload.members
    is_pod = spec.startswith(b',"spec":{') and status.startswith(b',"status":{')
    return PodParts(spec, status) if is_pod else None
