"""The same status reported for many alike nodes: merged and validated once.

A cluster has few shapes of nodes, and each of them is told to be ready when it comes. As with pods
(`status_reports`), what a patch makes of a status depends on the patch and on the parts before, and
equal parts are one.
"""

from collections import OrderedDict
from typing import TypeAlias

from kubescene.api.kinds import NODE
from kubescene.api.records import Record
from kubescene.api.records.parts import Sections
from kubescene.api.records.templates import Blueprint
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.shortcuts.status_counts import is_plain
from kubescene.registry.shortcuts.status_patches import is_neat
from kubescene.registry.writes import WriteRequest

REPORTS_KEPT = 512

Members: TypeAlias = tuple[bytes, ...]
ReportKey: TypeAlias = tuple[Blueprint, tuple[int, ...]]


class NodeReports:
    """The newest reports of one world: the members of a node before, and after."""

    def __init__(self, admission: AdmissionChain) -> None:
        self._admission = admission
        self._reports: OrderedDict[ReportKey, tuple[Members, Members]] = OrderedDict()

    def find(self, request: WriteRequest, current: Record) -> Members | None:
        """What a request makes of a node, encoded, if that is known."""
        key = _key(request, current)
        report = self._reports.get(key) if key is not None else None
        # The report holds the parts that it was made from, so nobody else has their ids.
        return report[1] if report is not None and is_neat(current) else None

    def keep(self, request: WriteRequest, current: Record, record: Record) -> None:
        """Remember what a request with a blueprint has led to."""
        key, before, after = _key(request, current), current.payload, record.payload
        if key is None or not self._admission.is_quiet or record is current:
            return
        if not isinstance(before, Sections) or not isinstance(after, Sections):
            return
        self._reports[key] = (before.members, after.members)
        if len(self._reports) > REPORTS_KEPT:
            self._reports.popitem(last=False)


def _key(request: WriteRequest, current: Record) -> ReportKey | None:
    """None if a request is more than the merge of a known status, or the node is going."""
    blueprint, payload = request.options.blueprint, current.payload
    if blueprint is None or request.resource_type.gvk != NODE or not is_plain(request):
        return None
    if blueprint.body is not request.body or current.deleting or type(payload) is not Sections:
        return None
    return blueprint, tuple(map(id, payload.members))
