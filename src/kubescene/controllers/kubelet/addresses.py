"""The addresses of pods and nodes, as a network plugin and a cloud would hand them out.

A node gets a block of 256 addresses when it comes, the next free one after the newest (as the node
IPAM controller gives pod CIDRs), or has its own ``spec.podCIDR``. A pod gets the next address of
its node when it starts (as host-local does), and gives it back when it has ended or gone; what was
given back comes again once the block was gone through. All of it is kept whether or not anybody
looks, so that it is the same wherever a scenario is played.
"""

from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import NamedTuple

from kubescene.types import JsonObject

POD_NETWORK = IPv4Network("10.128.0.0/9")
NODE_NETWORK = IPv4Network("172.16.0.0/12")
BLOCK = 256
BLOCKS = POD_NETWORK.num_addresses // BLOCK
FIRST, LAST = 2, -2
"""A network's own address, the gateway's, and the last one belong to no pod."""
LONGEST_RANGE = 16
"""The bits of the largest range that a node may have of its own among those of others."""
INTERNAL = "InternalIP"

_PODS, _NODES = int(POD_NETWORK.network_address), int(NODE_NETWORK.network_address)


class Piece(NamedTuple):
    """Addresses in a row that pods of a node may have."""

    first: int
    size: int

    def __deepcopy__(self, memo: object) -> "Piece":
        return self  # nothing of it ever changes


class Blocks:
    """Which blocks of the pod network are taken."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._next = 0

    def take(self) -> int | None:
        """The next free block after the one that was taken last; None if there is none."""
        if len(self._taken) >= BLOCKS:
            return None
        while self._next in self._taken:
            self._next = (self._next + 1) % BLOCKS
        block = self._next
        self._taken.add(block)
        self._next = (block + 1) % BLOCKS
        return block

    def reserve(self, block: int) -> None:
        self._taken.add(block)

    def release(self, block: int) -> None:
        self._taken.discard(block)


class NodeAddresses:
    """A node's own address, and those of its pods: places in its pieces."""

    __slots__ = ("_last", "_size", "_went_round", "blocks", "host", "pieces", "places")

    def __init__(self, host: str, blocks: list[int]) -> None:
        self.host = host
        self.blocks = blocks
        self.pieces: list[Piece] = []
        self.places: dict[str, int] = {}
        """By uid of the pod."""
        self._last = -1
        self._size = 0
        self._went_round = False

    def add(self, network: IPv4Network) -> None:
        first = int(network.network_address) + FIRST
        size = max(network.num_addresses - FIRST + LAST + 1, 0)
        self.pieces.append(Piece(first, size))
        self._size += size

    def give(self, uid: str) -> bool:
        """Give a pod the next free place after the newest; False if all are taken."""
        place = self._last + 1
        if self._went_round or place >= self._size:
            self._went_round = True
            taken = set(self.places.values())
            if len(taken) >= self._size:
                return False
            place %= self._size
            while place in taken:
                place = (place + 1) % self._size
        self.places[uid] = self._last = place
        return True

    def learn(self, uid: str, address: int) -> None:
        """A pod that came with an address has it."""
        before = 0
        for piece in self.pieces:
            if piece.first <= address < piece.first + piece.size:
                place = self.places[uid] = before + address - piece.first
                self._last = max(self._last, place)
                return
            before += piece.size

    def of(self, uid: str) -> str:
        """A pod's address; empty if it has none."""
        place = self.places.get(uid)
        if place is None:
            return ""
        for piece in self.pieces:
            if place < piece.size:
                return str(IPv4Address(piece.first + place))
            place -= piece.size
        raise AssertionError(uid)


class Addresses:
    """Those of all nodes and of the pods that run there."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._nodes: dict[str, NodeAddresses] = {}
        self._early: dict[str, list[tuple[str, int]]] = {}
        """Pods with their addresses that were there before their node was, by its name."""

    @property
    def nodes(self) -> Iterable[str]:
        """In the order in which they came."""
        return self._nodes.keys()

    def node_came(self, node: JsonObject) -> None:
        name = node["metadata"]["name"]
        early = self._early.pop(name, [])
        own = network_of((node.get("spec") or {}).get("podCIDR") or "")
        blocks = self._reserved(own, [address for _, address in early])
        if (own is not None or not blocks) and (block := self._blocks.take()) is not None:
            blocks = [block, *blocks]
        host = internal_address(node)
        if not host and blocks:
            host = str(IPv4Address(_NODES + FIRST + blocks[0]))
        found = self._nodes[name] = NodeAddresses(host, blocks)
        networks = [own] if own is not None else map(network_of_block, blocks)
        for network in networks:
            found.add(network)
        for uid, address in early:
            found.learn(uid, address)

    def _reserved(self, own: IPv4Network | None, known: Iterable[int]) -> list[int]:
        """Blocks that nobody else may have: a node's own range, and where its pods are already."""
        found = dict.fromkeys(block_of(each) for each in known)
        if own is not None and own.prefixlen >= LONGEST_RANGE:
            first, last = int(own.network_address), int(own.broadcast_address)
            found |= dict.fromkeys(block_of(each) for each in range(first, last + 1, BLOCK))
        blocks = [each for each in found if each is not None]
        for block in blocks:
            self._blocks.reserve(block)
        return blocks

    def node_left(self, name: str) -> None:
        left = self._nodes.pop(name, None)
        for block in () if left is None else left.blocks:
            self._blocks.release(block)

    def give(self, node: str, uid: str) -> None:
        """Give an address to a pod that starts, unless it has one, or no block is left."""
        at = self._nodes.get(node)
        if at is None or uid in at.places or at.give(uid):
            return
        if (block := self._blocks.take()) is not None:
            at.blocks.append(block)
            at.add(network_of_block(block))
            at.give(uid)

    def take_back(self, node: str, uid: str) -> None:
        if (at := self._nodes.get(node)) is not None:
            at.places.pop(uid, None)

    def learn(self, pod: JsonObject) -> None:
        """A pod came with an address."""
        address, node = pod["status"].get("podIP") or "", pod["spec"].get("nodeName")
        if not node or not (number := number_of(address)):
            return
        uid = pod["metadata"]["uid"]
        if (at := self._nodes.get(node)) is None:
            self._early.setdefault(node, []).append((uid, number))
        else:
            at.learn(uid, number)

    def of_node(self, name: str) -> list[JsonObject]:
        """The ``addresses`` of a node's status."""
        at = self._nodes.get(name)
        if at is None or not at.host:
            return []
        return [{"type": INTERNAL, "address": at.host}, {"type": "Hostname", "address": name}]

    def of_pod(self, pod: JsonObject) -> JsonObject:
        """What the status of a pod says of them; nothing if it has one, or there is none."""
        at = self._nodes.get(pod["spec"].get("nodeName") or "")
        if at is None or not at.host or pod["status"].get("podIP"):
            return {}
        host = at.host
        ip = host if pod["spec"].get("hostNetwork") else at.of(pod["metadata"]["uid"])
        if not ip:
            return {}
        return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}]}


def network_of_block(block: int) -> IPv4Network:
    return IPv4Network((_PODS + block * BLOCK, 24))


def block_of(address: int) -> int | None:
    """The block of an address; None if it is not in the network of pods."""
    block = (address - _PODS) // BLOCK
    return block if 0 <= block < BLOCKS else None


def network_of(cidr: str) -> IPv4Network | None:
    try:
        return IPv4Network(cidr, strict=False) if cidr else None
    except ValueError:
        return None


def number_of(address: str) -> int:
    """An IPv4 address as a number; 0 if it is none."""
    try:
        return int(IPv4Address(address))
    except AddressValueError:
        return 0


def internal_address(node: JsonObject) -> str:
    """The address that a node says it has inside the cluster; may be empty."""
    for each in (node.get("status") or {}).get("addresses") or ():
        if each.get("type") == INTERNAL and number_of(each.get("address") or ""):
            return str(each["address"])
    return ""
