"""The order in which the scheduler walks nodes: round robin over zones.

Zones stand in order of first appearance, nodes within a zone in order of arrival. The list takes
the first node of every zone, then the second of every zone, so that a search that stops early has
looked at all zones alike. [N-2, N-3]
"""

from collections.abc import Mapping
from itertools import zip_longest

_REGION_KEYS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_KEYS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_key(labels: Mapping[str, str]) -> str:
    """What tells zones apart: region and zone, or nothing if a node has neither.

    A beta label that is present wins over the stable one, even if it is empty. [N-1]
    """
    region, zone = _first(labels, _REGION_KEYS), _first(labels, _ZONE_KEYS)
    return f"{region}:\0:{zone}" if region or zone else ""


class NodeTree:
    """Node names by zone."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._zone_of

    def __len__(self) -> int:
        return len(self._zone_of)

    def add(self, name: str, labels: Mapping[str, str]) -> None:
        """Append a node to its zone; one that is there already stays where it is."""
        zone = zone_key(labels)
        if self._zone_of.get(name) == zone:
            return
        self.remove(name)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str) -> None:
        """Take a node out; a zone goes with its last node."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]

    def order(self) -> list[str]:
        """All names, taking one of every zone in turn."""
        turns = zip_longest(*self._zones.values())
        return [name for turn in turns for name in turn if name is not None]


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    for key in keys:
        if key in labels:
            return labels[key]
    return ""
