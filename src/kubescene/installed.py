"""What installed packages offer, by entry points.

The library that knows packages is large, and in most places no package offers anything: it is
imported when one does.
"""

import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_METADATA = (".dist-info", ".egg-info", "egg-info")


def offered(group: str, name: str | None = None) -> "list[EntryPoint]":
    """The entry points of a group, or those of one name, in order of their names."""
    if not _may_offer(group):
        return []
    from importlib.metadata import entry_points

    found = entry_points(group=group) if name is None else entry_points(group=group, name=name)
    return sorted(found, key=lambda point: (point.name, point.value))


def _may_offer(group: str) -> bool:
    """Whether a package mentions the group, or there are packages that we do not see."""
    finders = (each for each in sys.meta_path if hasattr(each, "find_distributions"))
    if any(each is not PathFinder for each in finders):
        return True
    return any(_mentions(Path(each), group.encode()) for each in dict.fromkeys(sys.path))


def _mentions(place: Path, group: bytes) -> bool:
    if place.is_file():
        return True  # an archive
    return any(group in text for text in _entry_points(place))


def _entry_points(place: Path) -> Iterator[bytes]:
    try:
        found = [each for each in place.iterdir() if each.name.lower().endswith(_METADATA)]
    except OSError:
        return  # Not every place that is searched for packages exists.
    for each in found:
        file = each / "entry_points.txt"
        if file.is_file():
            yield file.read_bytes()
