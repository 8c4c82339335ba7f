"""Reserve, PreBind and PostFilter: devices are promised, written into claims, and given back.

Made for the first pod of a profile that asks for devices.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from kubescene.api.kinds import POD
from kubescene.clock import SECOND
from kubescene.errors import ApiError
from kubescene.recording import NORMAL, Notice, regarding_record
from kubescene.scheduler.devices.allocator import Granted, Taken
from kubescene.scheduler.devices.classes import DeviceClass, backed_resources
from kubescene.scheduler.devices.cluster import DeviceCluster
from kubescene.scheduler.devices.conditions import (
    BindingFailedError,
    is_overdue,
    is_ready,
    needs_binding,
)
from kubescene.scheduler.devices.extended import (
    IN_MEMORY,
    ExtendedResources,
    NodeClaim,
    extended_resources,
)
from kubescene.scheduler.devices.filtering import ClaimFilter
from kubescene.scheduler.devices.named_claims import (
    ClaimError,
    allocation_of,
    find_claims,
    is_reserved_for,
    key_of,
    reserved_for,
)
from kubescene.scheduler.devices.pod_claims import PodClaims
from kubescene.scheduler.devices.requests import ClaimSpec, Demand, claim_spec
from kubescene.scheduler.devices.writes import ClaimWriteError, ClaimWriter
from kubescene.scheduler.framework.interfaces import Handle, PostFilterResult, PreBindAnswer
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Code, Status
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject, ReadOnlyObject


class DeviceSearch:
    """``filter`` judges nodes, ``binder`` takes devices of the chosen one and gives them back."""

    def __init__(self, handle: Handle, binding_timeout: int) -> None:
        self._cluster = handle.shared(DeviceCluster)
        self.filter = ClaimFilter(self._cluster, handle.nodes, handle.clock, binding_timeout)
        self.binder = ClaimBinder(self._cluster, self.filter, handle, binding_timeout)

    def begin(self, pod: PodInfo) -> tuple[PodClaims, Status]:
        """The claims of a pod, and whether they can be looked for at all."""
        held = PodClaims()
        return held, prepare(pod, self._cluster, held)


def prepare(pod: PodInfo, cluster: DeviceCluster, held: PodClaims) -> Status:
    """Look up the claims of a pod. ``held`` stays empty unless all of them can be looked for."""
    try:
        claims = find_claims(pod, cluster.claims)
    except ClaimError as error:
        return Status.unresolvable(str(error))
    extended = _extended(pod, cluster)
    if not claims and extended is None:
        return SKIP
    found = PodClaims()
    found.take(claims, extended)
    for position in found.open:
        claim = found.claims[position]
        if cluster.is_promised(claim["metadata"].get("uid", "")):
            text = f"resource claim {key_of(claim)} is in the process of being allocated"
            return Status.unresolvable(text)
        if position != found.extended_at:
            status = _check_requests(claim, cluster)
            if not status.ok:
                return status
    held.take(claims, extended)
    return SUCCESS


def _extended(pod: PodInfo, cluster: DeviceCluster) -> ExtendedResources | None:
    if not backed_resources(pod.requests, cluster.classes):
        return None
    left_over = cluster.extended_claim_of(pod.uid, pod.name)
    return extended_resources(pod, cluster.classes, left_over)


def _check_requests(claim: ReadOnlyObject, cluster: DeviceCluster) -> Status:
    for demand in claim_spec(claim).demands:
        status = _check_demand(claim, demand, cluster)
        if not status.ok:
            return status
    return SUCCESS


def _check_demand(claim: ReadOnlyObject, demand: Demand, cluster: DeviceCluster) -> Status:
    if not demand.alternatives:
        text = f"resource claim {key_of(claim)}, request {demand.name}: unknown request type"
        return Status.unresolvable(text)
    for request in demand.alternatives:
        where = f"request {request.full_name}"
        if not request.class_name:
            return Status.error(f"{where}: unsupported request type")
        if request.class_name not in cluster.classes.by_name:
            text = f"{where}: device class {request.class_name} does not exist"
            return Status.unresolvable(text)
    return SUCCESS


POLL_INTERVAL = 5 * SECOND
"""How often devices that are being made ready are looked at."""

_WAIT = Status(Code.WAIT)


class ClaimBinder:
    """Takes devices for pods that have a node, and gives them back."""

    def __init__(
        self, cluster: DeviceCluster, filter: ClaimFilter, handle: Handle, timeout: int
    ) -> None:
        self._cluster = cluster
        self._filter = filter
        self._handle = handle
        self._timeout = timeout
        self._writer = ClaimWriter(handle.client, handle.clock)

    # -- Reserve ---------------------------------------------------------------------------

    def reserve(self, held: PodClaims, node: str) -> Status:
        """Promise the devices that Filter found."""
        if not held.open:
            return SUCCESS
        granted, variant = self._granted(held, node)
        if granted is None:
            if held.open == [held.extended_at]:
                return SUCCESS
            return Status.error("claim allocation not found for node")
        held.variant = variant
        specs = (*held.specs, variant.spec) if variant is not None else held.specs
        for at, position in enumerate(held.open):
            allocation = allocation_result(
                specs[at],
                granted.claims[at],
                granted.chosen[at],
                node,
                classes=self._cluster.classes.by_name,
                new_share=self._new_share,
            )
            held.allocations[position] = allocation
            self._cluster.promise(self._uid(held, position), allocation)
        return SUCCESS

    def _granted(self, held: PodClaims, node: str) -> tuple[Granted | None, NodeClaim | None]:
        info = self._handle.nodes.info(node)
        return (None, None) if info is None else self._filter.granted(held, info)

    def _uid(self, held: PodClaims, position: int) -> str:
        """What a promise is known by; a claim in memory has no uid of its own."""
        metadata = held.claims[position]["metadata"]
        if metadata["name"] != IN_MEMORY:
            uid: str = metadata["uid"]
            return uid
        if not held.extended_uid:
            held.extended_uid = self._new_share()
        return held.extended_uid

    def _new_share(self) -> str:
        """A random id in the form of a UUID."""
        random = self._handle.random
        text = f"{random.next_u64():016x}{random.next_u64():016x}"
        variant = "89ab"[int(text[16], 16) % 4]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    # -- PreBind ---------------------------------------------------------------------------

    def pre_bind(self, held: PodClaims, pod: PodInfo, node: str) -> PreBindAnswer:
        """Write what was promised, then wait for devices that have to be made ready."""
        if not held.is_written:
            try:
                self._write(held, pod)
            except ClaimWriteError as error:
                return Status.error(str(error))
            held.is_written = True
            if not any(map(needs_binding, held.claims)):
                return SUCCESS
            self._tell(pod, node)
            held.waiting_since = self._handle.clock.now()
        if not held.waiting_since:
            return SUCCESS
        return self._await(held)

    def _write(self, held: PodClaims, pod: PodInfo) -> None:
        for position, claim in enumerate(held.claims):
            if not is_reserved_for(claim, pod):
                self._bind(held, position, pod)

    def _bind(self, held: PodClaims, position: int, pod: PodInfo) -> None:
        claim, allocation = held.claims[position], held.allocations.get(position)
        is_extended = position == held.extended_at
        if is_extended and allocation is None:
            return
        uid = self._uid(held, position)
        variant = held.variant if is_extended else None
        try:
            if variant is not None and claim["metadata"]["name"] == IN_MEMORY:
                spec = {"devices": {"requests": variant.requests} if variant.requests else {}}
                claim = held.claims[position] = self._writer.create({**claim, "spec": spec})
            written = self._writer.bind(claim, allocation, pod)
        finally:
            self._cluster.end_promise(uid)
        if variant is not None:
            self._writer.report(pod, written, variant.mappings)
        held.claims[position] = written

    def _await(self, held: PodClaims) -> PreBindAnswer:
        """Look at the claims every few seconds, as upstream does."""
        now = self._handle.clock.now()
        waited = now - held.waiting_since
        if waited >= self._timeout:
            return Status.error("device binding timeout: context deadline exceeded")
        if waited % POLL_INTERVAL == 0:
            status = self._looked_at(held, now)
            if status is not None:
                return status
        rest = POLL_INTERVAL - waited % POLL_INTERVAL
        return _WAIT, min(rest, self._timeout - waited)

    def _looked_at(self, held: PodClaims, now: int) -> Status | None:
        """Whether all devices are ready; None if not yet."""
        for position, claim in enumerate(held.claims):
            metadata = claim["metadata"]
            newest = self._cluster.claims.get(metadata["name"], metadata.get("namespace", ""))
            if newest is None:
                return Status.error("object not found")
            held.claims[position] = newest
            try:
                ready = is_ready(newest)
            except BindingFailedError as error:
                return Status.error(str(error))
            if not ready:
                if is_overdue(newest, self._timeout, now):
                    return Status.error(f"device binding timeout: claim={metadata['name']}")
                return None
        return SUCCESS

    def _tell(self, pod: PodInfo, node: str) -> None:
        if not self._handle.events.on:
            return
        text = f"waiting for binding conditions for device on node {node}"
        about = regarding_record(pod.record, POD)
        notice = Notice(
            about, NORMAL, "BindingConditionsPending", text, pod.scheduler_name, action="Scheduling"
        )
        self._handle.events.tell(notice)

    # -- giving back -----------------------------------------------------------------------

    def unreserve(self, held: PodClaims, pod: PodInfo) -> None:
        """The pod will not be bound: end promises and reservations."""
        for position, claim in enumerate(held.claims):
            if position == held.extended_at:
                continue
            self._cluster.end_promise(claim["metadata"].get("uid", ""))
            if allocation_of(claim) is not None and is_reserved_for(claim, pod):
                self._writer.unreserve(claim, pod)
        if held.extended_at >= 0:
            self._cluster.end_promise(held.extended_uid)
            claim = held.claims[held.extended_at]
            if claim["metadata"]["name"] != IN_MEMORY:
                self._delete(claim)

    def make_room(self, held: PodClaims, pod: PodInfo) -> PostFilterResult:
        """D-4: deallocate the first claim that kept the pod from a node, if nobody else uses it."""
        for position in sorted(held.unavailable):
            claim = held.claims[position]
            unused = all(each.get("uid") == pod.uid for each in reserved_for(claim))
            if unused and position != held.extended_at:
                status = Status.unschedulable("deallocation of ResourceClaim completed")
                return PostFilterResult(status, effect=partial(self._deallocate, claim))
        if held.extended is not None and held.extended.is_left_over:
            claim = held.claims[held.extended_at]
            status = Status.unschedulable("deletion of ResourceClaim completed")
            return PostFilterResult(status, effect=partial(self._delete, claim))
        return PostFilterResult(Status.unschedulable("still not schedulable"))

    def _deallocate(self, claim: ReadOnlyObject) -> None:
        # Whoever has changed the claim in the meantime has made an event: the pod is tried again.
        with suppress(ApiError, ClaimWriteError):
            self._writer.deallocate(claim)

    def _delete(self, claim: ReadOnlyObject) -> None:
        with suppress(ApiError):
            self._writer.delete(claim)

    # -- for those who want to know --------------------------------------------------------

    def would_allocate(self, held: PodClaims, node: str) -> list[list[str]]:
        granted, _ = self._granted(held, node)
        if granted is None:
            return []
        return [
            [f"{each.request.full_name}={each.device.id}" for each in taken]
            for taken in granted.claims
        ]


def allocation_result(
    claim: ClaimSpec,
    taken: Sequence[Taken],
    chosen: Sequence[int],
    node: str,
    *,
    classes: Mapping[str, DeviceClass],
    new_share: Callable[[], str],
) -> JsonObject:
    """``status.allocation`` of a claim; ``new_share`` makes the id of a share of a device."""
    devices: JsonObject = {}
    if taken:
        devices["results"] = [_result(each, new_share) for each in taken]
    if config := [*_class_config(claim, chosen, classes), *_claim_config(claim, chosen)]:
        devices["config"] = config
    made: JsonObject = {"devices": devices}
    if selector := _node_selector(taken, node):
        made["nodeSelector"] = selector
    return made


def _result(taken: Taken, new_share: Callable[[], str]) -> JsonObject:
    device, request = taken.device, taken.request
    result: JsonObject = {"request": request.full_name}
    result["driver"], result["pool"], result["device"] = device.id
    if request.is_admin:
        result["adminAccess"] = True
    if request.tolerations:
        result["tolerations"] = [dict(each) for each in request.tolerations]
    if device.binding_conditions:
        result["bindingConditions"] = [*device.binding_conditions]
    if device.binding_failure_conditions:
        result["bindingFailureConditions"] = [*device.binding_failure_conditions]
    if device.is_shareable:
        result["shareID"] = new_share()
    if taken.consumed:
        result["consumedCapacity"] = {name: str(each) for name, each in taken.consumed.items()}
    return result


def _class_config(
    claim: ClaimSpec, chosen: Sequence[int], classes: Mapping[str, DeviceClass]
) -> Iterator[JsonObject]:
    """The configuration of each class once, for all requests that use it."""
    users: dict[str, list[str]] = {}
    for demand, index in zip(claim.demands, chosen, strict=True):
        request = demand.alternatives[index]
        users.setdefault(request.class_name, []).append(request.full_name)
    for name, requests in users.items():
        for config in classes[name].config:
            yield {**config, "source": "FromClass", "requests": [*requests]}


def _claim_config(claim: ClaimSpec, chosen: Sequence[int]) -> Iterator[JsonObject]:
    """The claim's own configuration, as far as it is for requests that were chosen."""
    for config in claim.config:
        names = config.get("requests") or ()
        if not names:
            yield {**config, "source": "FromClaim"}
        for demand, index in zip(claim.demands, chosen, strict=True):
            request = demand.alternatives[index]
            if demand.name in names or (request.parent and request.full_name in names):
                yield {**config, "source": "FromClaim"}


def _node_selector(taken: Sequence[Taken], node: str) -> JsonObject | None:
    """The nodes from which all of the devices can be reached; None if from all of them."""
    fields: list[ReadOnlyObject] = []
    expressions: list[ReadOnlyObject] = []
    for each in taken:
        placement = each.device.placement
        if placement.node_name is not None or each.device.binds_to_node:
            name = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [name]}]}
        for term in (placement.written or {}).get("nodeSelectorTerms") or ():
            _add_new(fields, term.get("matchFields") or ())
            _add_new(expressions, term.get("matchExpressions") or ())
    merged = {"matchExpressions": expressions, "matchFields": fields}
    term = {kind: listed for kind, listed in merged.items() if listed}
    return {"nodeSelectorTerms": [term]} if term else None


def _add_new(listed: list[ReadOnlyObject], more: Sequence[ReadOnlyObject]) -> None:
    for each in more:
        if not any(_same(each, other) for other in listed):
            listed.append(each)


def _same(left: ReadOnlyObject, right: ReadOnlyObject) -> bool:
    alike = left.get("key") == right.get("key") and left.get("operator") == right.get("operator")
    return alike and set(left.get("values") or ()) == set(right.get("values") or ())
