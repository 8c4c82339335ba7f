"""How fast pods are driven away from nodes that fail, zone by zone.

One node in ten seconds per zone. When more than half of a zone is down something else is
wrong than its nodes: a large zone goes slower, a small one stops. When every zone is down
altogether, nobody is driven away at all.
"""

from kubescene.clock import SECOND
from kubescene.controllers.builtin.nodes.node_conditions import READY, Zone

INTERVAL = 10 * SECOND
SLOW_INTERVAL = 100 * SECOND
LARGE_ZONE = 50
LEAST_DOWN = 3
SHARE_DOWN = (55, 100)

NORMAL, PARTIAL, FULL = "normal", "partial disruption", "full disruption"


class ZoneHealth:
    """The nodes of one zone, those that wait to be tainted, and when the next one may be."""

    def __init__(self) -> None:
        self.nodes: dict[str, bool] = {}
        """By name, whether a node is up."""
        self.down = 0
        self.waiting: dict[str, None] = {}
        self.interval: int | None = INTERVAL
        """Nanoseconds between two nodes; None: nobody is tainted."""
        self.next_at = 0

    def put(self, node: str, *, is_up: bool) -> None:
        self.remove(node)
        self.nodes[node] = is_up
        self.down += not is_up

    def remove(self, node: str) -> None:
        is_up = self.nodes.pop(node, None)
        self.down -= is_up is False

    @property
    def state(self) -> str:
        size, (share, of) = len(self.nodes), SHARE_DOWN
        if self.down == size:
            return FULL if size else NORMAL
        if self.down >= LEAST_DOWN and self.down * of >= size * share:
            return PARTIAL
        return NORMAL

    @property
    def pace(self) -> int | None:
        """How fast this zone should go by itself. One that is down altogether goes on as ever."""
        if self.state != PARTIAL:
            return INTERVAL
        return SLOW_INTERVAL if len(self.nodes) > LARGE_ZONE else None

    def swap_interval(self, interval: int | None, now: int) -> None:
        """Another pace: whoever had to wait at the old one waits a whole turn at the new one."""
        if interval == self.interval:
            return
        if interval is not None and (self.interval is None or now < self.next_at):
            self.next_at = now + interval
        self.interval = interval

    def take(self, now: int) -> str | None:
        """The next node to be tainted, if one may be now."""
        if self.interval is None or now < self.next_at or not self.waiting:
            return None
        node = next(iter(self.waiting))
        del self.waiting[node]
        self.next_at = now + self.interval
        return node


class Zones:
    """All zones, and whether everything is down."""

    def __init__(self) -> None:
        self._zones: dict[Zone, ZoneHealth] = {}
        self._of_node: dict[str, Zone] = {}
        self.all_down = False

    def __getitem__(self, zone: Zone) -> ZoneHealth:
        health = self._zones.get(zone)
        if health is None:
            health = self._zones[zone] = ZoneHealth()
        return health

    def put(self, node: str, zone: Zone, ready: str) -> bool:
        """Note how a node is: one of which nobody has said anything is no sign of trouble.

        Returns whether that may change the pace of its zone, or of all.
        """
        has_moved = self._of_node.get(node, zone) != zone
        if has_moved:
            self.remove(node)
        self._of_node[node] = zone
        health, is_up = self[zone], ready in ("", READY)
        is_news = health.nodes.get(node) is not is_up
        if is_news:
            health.put(node, is_up=is_up)
        # A healthy world takes no notice of one more healthy node.
        return is_news and bool(has_moved or self.all_down or health.down)

    def remove(self, node: str) -> None:
        zone = self._of_node.pop(node, None)
        if zone is not None:
            self[zone].remove(node)
            self[zone].waiting.pop(node, None)
            if not self[zone].nodes:
                del self._zones[zone]

    def wait(self, node: str, *, is_waiting: bool) -> bool:
        """Line a node up to be tainted, or take it out; whether that is news."""
        waiting = self[self._of_node[node]].waiting
        if is_waiting == (node in waiting):
            return False
        if is_waiting:
            waiting[node] = None
        else:
            del waiting[node]
        return True

    def adjust(self, now: int) -> bool:
        """Set every zone's pace by its state; whether everything is down only now."""
        states = [zone.state for zone in self._zones.values()]
        was_all_down, self.all_down = self.all_down, bool(states) and set(states) == {FULL}
        for zone in self._zones.values():
            zone.swap_interval(None if self.all_down else zone.pace, now)
        return self.all_down and not was_all_down

    def due(self, now: int) -> list[str]:
        """The nodes to be tainted now, at most one of each zone."""
        taken = [zone.take(now) for zone in self._zones.values()]
        return [node for node in taken if node is not None]

    def next_at(self) -> int | None:
        """When the next node may be tainted, if one waits for that."""
        zones = [zone for zone in self._zones.values() if zone.waiting]
        return min((zone.next_at for zone in zones if zone.interval is not None), default=None)

    def down(self) -> list[str]:
        """All nodes that are down."""
        zones = self._zones.values()
        return [name for zone in zones for name, is_up in zone.nodes.items() if not is_up]
