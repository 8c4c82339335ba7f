"""Cluster IPs and node ports of Services: allocated in order, so the same run gives the same ones.

Addresses come from 10.96.0.0/12 and ports from 30000-32767. As in kube-apiserver the lower end of
each range is left to those who ask for a particular value (10.96.0.1 is the API server's own): the
first address handed out is 10.96.1.1, the first port 30086. What is taken is learnt from the store,
so a Service that comes by any other way counts, too.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from kubescene.api.kinds import API_SERVER, API_SERVER_ADDRESS
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType
from kubescene.api.validation.field_errors import ErrorList, raise_if_invalid
from kubescene.api.validation.field_paths import SPEC
from kubescene.errors import InternalError
from kubescene.store import Store
from kubescene.types import JsonObject

SERVICES = GroupResource("", "services")
SERVICE = ResourceType(GroupVersionKind("", "v1", "Service"), "services", namespaced=True)
CLUSTER_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
PORTS = range(30000, 32768)
HEADLESS = "None"

_BASE = int(CLUSTER_NETWORK.network_address)
_LAST = CLUSTER_NETWORK.num_addresses - 2
_STATIC_ADDRESSES = 256
_STATIC_PORTS = 86
_OPEN_TYPES = ("NodePort", "LoadBalancer")


class NumberPool:
    """Numbers of which each is used by nobody or somebody; hands out the lowest free one."""

    def __init__(self, first: int, last: int, start: int) -> None:
        self._bounds = (first, last, start)
        self._used: Counter[int] = Counter()
        self._from = start

    def take(self, number: int) -> None:
        self._used[number] += 1

    def release(self, number: int) -> None:
        self._used[number] -= 1
        if self._used[number] <= 0:
            del self._used[number]
            if number >= self._bounds[2]:
                self._from = min(self._from, number)

    def __contains__(self, number: int) -> bool:
        return number in self._used

    def free(self, besides: set[int]) -> int | None:
        """The number to hand out next; None if all are taken."""
        first, last, start = self._bounds
        while self._from in self._used:
            self._from += 1
        for number in chain(range(self._from, last + 1), range(first, start)):
            if number not in self._used and number not in besides:
                return number
        return None


class ServiceAddresses:
    """Completes Services with what the server allocates."""

    def __init__(self, store: Store) -> None:
        self._addresses = NumberPool(1, _LAST, 1 + _STATIC_ADDRESSES)
        self._ports = NumberPool(PORTS.start, PORTS.stop - 1, PORTS.start + _STATIC_PORTS)
        self._addresses.take(int(ipaddress.IPv4Address(API_SERVER_ADDRESS)) - _BASE)
        for record in store.list(SERVICES):
            self._take(store.decoded(record))
        store.subscribe(self._changed, (SERVICES,))

    def create(self, service: JsonObject) -> JsonObject:
        """A new Service with addresses and ports."""
        spec = dict(service["spec"])
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return self._completed(service, spec, old={})

    def update(self, service: JsonObject, old: JsonObject) -> JsonObject:
        """A changed Service: what was allocated stays as long as its type needs it."""
        before = old["spec"]
        spec = without_outdated(dict(service["spec"]), before)
        if has_address(before) and has_address(spec):
            for name in ("clusterIP", "clusterIPs"):
                if not spec.get(name) and before.get(name):
                    spec[name] = before[name]
        if is_open(before) and is_open(spec):
            spec["ports"] = with_known_ports(spec.get("ports") or [], before.get("ports") or [])
        done = self._completed(service, spec, before)
        if spec["type"] != "LoadBalancer" and done.get("status", {}).get("loadBalancer"):
            done = {**done, "status": {**done["status"], "loadBalancer": {}}}
        return done

    def _completed(self, service: JsonObject, spec: JsonObject, old: JsonObject) -> JsonObject:
        errors = ErrorList()
        if has_address(spec):
            self._set_families(spec, old)
            if spec.get("clusterIP") != HEADLESS and not old.get("clusterIP"):
                self._set_address(spec, errors, is_own=is_api_servers(service, spec))
        if is_open(spec):
            self._set_ports(spec, old, errors)
        if is_checked(spec):
            self._set_health_port(spec, old)
        raise_if_invalid(errors, SERVICE, service["metadata"].get("name", ""))
        return {**service, "spec": spec}

    def _set_families(self, spec: JsonObject, old: JsonObject) -> None:
        loose = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
        policy = old.get("ipFamilyPolicy") or ("RequireDualStack" if loose else "SingleStack")
        spec.setdefault("ipFamilyPolicy", policy)
        if not spec.get("ipFamilies"):
            families = ["IPv4", "IPv6"] if loose else ["IPv4"]
            single = spec["ipFamilyPolicy"] == "SingleStack"
            spec["ipFamilies"] = old.get("ipFamilies") or families[: 1 if single else 2]

    def _set_address(self, spec: JsonObject, errors: ErrorList, *, is_own: bool) -> None:
        """An address; the API server's is for its own Service alone."""
        asked = spec.get("clusterIP")
        if not asked:
            number = self._addresses.free(set())
            if number is None:
                raise InternalError("failed to allocate a serviceIP: range is full")
            spec["clusterIP"] = str(ipaddress.IPv4Address(_BASE + number))
            spec["clusterIPs"] = [spec["clusterIP"]]
        elif not is_own and (why := self._address_refusal(asked)):
            detail = f"failed to allocate IP {asked}: {why}"
            errors.invalid(SPEC.child("clusterIPs"), spec.get("clusterIPs"), detail)

    def _address_refusal(self, asked: str) -> str:
        number = address_number(asked)
        if number is None:
            return (
                f"the provided IP ({asked}) is not in the valid range. "
                f"The range of valid IPs is {CLUSTER_NETWORK}"
            )
        return "provided IP is already allocated" if number in self._addresses else ""

    def _set_ports(self, spec: JsonObject, old: JsonObject, errors: ErrorList) -> None:
        """A port number per service port; equal ports of several protocols share one."""
        own = set(node_ports(old)) if is_open(old) else set()
        automatic = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
        chosen: dict[int, int] = {}
        done: list[JsonObject] = []
        ports = spec.get("ports") or ()
        # A port without a number is refused later; until then it is port 0.
        asked = {port.get("port", 0): port["nodePort"] for port in ports if is_set(port)}
        for position, port in enumerate(ports):
            own_number = port.get("port", 0)
            number = port.get("nodePort") or chosen.get(own_number) or asked.get(own_number)
            if not number and automatic:
                number = self._ports.free({*chosen.values(), *asked.values(), *own})
                if number is None:
                    raise InternalError("failed to allocate a nodePort: range is full")
            elif number and number not in own and number not in chosen.values():
                self._check_port(number, position, errors)
            if number:
                chosen.setdefault(own_number, number)
            done.append({**port, "nodePort": number} if number else port)
        if done:
            spec["ports"] = done

    def _set_health_port(self, spec: JsonObject, old: JsonObject) -> None:
        """The port by which a load balancer asks nodes for local endpoints."""
        if spec.get("healthCheckNodePort"):
            return
        kept = old.get("healthCheckNodePort") if is_checked(old) else None
        number = kept or self._ports.free({*node_ports(spec)})
        if number is None:
            raise InternalError("failed to allocate a HealthCheck NodePort: range is full")
        spec["healthCheckNodePort"] = number

    def _check_port(self, number: int, position: int, errors: ErrorList) -> None:
        path = SPEC.child("ports").index(position).child("nodePort")
        if number not in PORTS:
            last = PORTS.stop - 1
            valid = f"The range of valid ports is {PORTS.start}-{last}"
            errors.invalid(path, number, f"provided port is not in the valid range. {valid}")
        elif number in self._ports:
            errors.invalid(path, number, "provided port is already allocated")

    # -- what is taken ---------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        if change.previous_object is not None:
            self._release(change.previous_object)
        if change.type is not ChangeType.DELETED:
            self._take(change.object)

    def _take(self, service: JsonObject) -> None:
        for pool, number in self._holdings(service):
            pool.take(number)

    def _release(self, service: JsonObject) -> None:
        for pool, number in self._holdings(service):
            pool.release(number)

    def _holdings(self, service: JsonObject) -> Iterator[tuple[NumberPool, int]]:
        number = address_number(service["spec"].get("clusterIP", ""))
        if number is not None:
            yield self._addresses, number
        health = service["spec"].get("healthCheckNodePort")
        for port in dict.fromkeys((*node_ports(service["spec"]), *([health] if health else []))):
            yield self._ports, port


def has_address(spec: JsonObject) -> bool:
    """Whether Services of this type have a cluster IP, be it ``None``."""
    return bool(spec) and spec.get("type") != "ExternalName"


def is_open(spec: JsonObject) -> bool:
    """Whether Services of this type have node ports."""
    return spec.get("type") in _OPEN_TYPES


def is_checked(spec: JsonObject) -> bool:
    """Whether nodes of this Service answer health checks of their own."""
    local = spec.get("externalTrafficPolicy") == "Local"
    return local and spec.get("type") == "LoadBalancer"


def is_set(port: JsonObject) -> bool:
    return bool(port.get("nodePort"))


def node_ports(spec: JsonObject) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if is_set(port)]


def is_api_servers(service: JsonObject, spec: JsonObject) -> bool:
    """Whether this is the Service of the API server, which asks for the address that it has."""
    metadata = service["metadata"]
    place = metadata.get("namespace"), metadata.get("name")
    return place == API_SERVER and spec.get("clusterIP") == API_SERVER_ADDRESS


def address_number(text: str) -> int | None:
    """The place of an address in the cluster's network; None if it is not in there."""
    try:
        number = int(ipaddress.IPv4Address(text)) - _BASE
    except ValueError:
        return None
    return number if 0 < number <= _LAST else None


def without_outdated(spec: JsonObject, before: JsonObject) -> JsonObject:
    """Without what the former type needed and the new one does not, unless it was changed."""
    dropped: set[str] = set()
    if has_address(before) and not has_address(spec):
        dropped = {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        dropped |= {"allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"}
    if is_open(before) and not is_open(spec):
        dropped.add("externalTrafficPolicy")
        if set(node_ports(spec)) <= set(node_ports(before)):
            spec["ports"] = [
                {name: value for name, value in port.items() if name != "nodePort"}
                for port in spec.get("ports") or ()
            ]
    return {k: v for k, v in spec.items() if k not in dropped or v != before.get(k)}


def with_known_ports(ports: list[JsonObject], before: list[JsonObject]) -> list[JsonObject]:
    """Ports that came without their node port get back the one that their name had."""
    known = {port.get("name", ""): port.get("nodePort") for port in before}
    used = {port["nodePort"] for port in ports if is_set(port)}
    done = []
    for port in ports:
        number = known.get(port.get("name", ""))
        missing = not is_set(port) and number and number not in used
        done.append({**port, "nodePort": number} if missing else port)
    return done
