"""What a search found, as it is written into the status of a claim."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kubescene.scheduler.devices.allocator import Taken
from kubescene.scheduler.devices.classes import DeviceClass
from kubescene.scheduler.devices.requests import ClaimSpec
from kubescene.types import JsonObject, ReadOnlyObject


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
