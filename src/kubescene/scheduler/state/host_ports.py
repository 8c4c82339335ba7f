"""Host ports: which of them a pod takes, which are taken on a node, and where one is taken.

As in kube-scheduler, the ports of a node are a set and not a count: if two pods of a node hold the
same port, which only pods can that nobody scheduled, the first that goes frees it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kubescene.types import ReadOnlyObject

ANY_ADDRESS = "0.0.0.0"


class PortNumber(NamedTuple):
    """A port of one protocol, at whatever address."""

    protocol: str
    port: int


class HostPort(NamedTuple):
    """A port of one protocol at one address of a node, or at all of them."""

    address: str
    number: PortNumber


UsedPorts = dict[PortNumber, set[str]]
"""The ports in use on one node, and the addresses each is used at."""


def host_ports(spec: ReadOnlyObject) -> tuple[HostPort, ...]:
    """The host ports of a pod (R-6): those of containers that run as long as the pod does."""
    sidecars = [
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    ]
    return tuple(
        _host_port(port)
        for container in (*sidecars, *(spec.get("containers") or ()))
        for port in container.get("ports") or ()
        if (port.get("hostPort") or 0) > 0
    )


def conflict(wanted: Iterable[HostPort], used: UsedPorts) -> bool:
    """Whether one of the wanted ports is in use (F-10)."""
    return any(overlaps(each.address, used[each.number]) for each in wanted if each.number in used)


def overlaps(address: str, addresses: set[str]) -> bool:
    """Whether the same port can not be opened at an address and at some others as well."""
    return address == ANY_ADDRESS or ANY_ADDRESS in addresses or address in addresses


def take(ports: Iterable[HostPort], used: UsedPorts) -> None:
    for each in ports:
        used.setdefault(each.number, set()).add(each.address)


def free(ports: Iterable[HostPort], used: UsedPorts) -> None:
    for each in ports:
        addresses = used.get(each.number)
        if addresses is not None:
            addresses.discard(each.address)
            if not addresses:
                del used[each.number]


class PortHolders:
    """For each port, the names of the nodes where it is in use. Follows the nodes' own sets."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[PortNumber, dict[str, None]] = {}

    def follow(self, node: str, ports: Iterable[HostPort], used: UsedPorts) -> None:
        """Some ports of a node were taken or freed."""
        for each in ports:
            if each.number in used:
                self._nodes.setdefault(each.number, {})[node] = None
            elif (holders := self._nodes.get(each.number)) is not None:
                holders.pop(node, None)
                if not holders:
                    del self._nodes[each.number]

    def of(self, number: PortNumber) -> Iterable[str]:
        return self._nodes.get(number, ())


def _host_port(port: ReadOnlyObject) -> HostPort:
    number = PortNumber(port.get("protocol") or "TCP", port["hostPort"])
    return HostPort(port.get("hostIP") or ANY_ADDRESS, number)
