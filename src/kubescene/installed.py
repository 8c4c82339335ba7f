"""What installed packages offer, by entry points.

The library that knows packages is large, and in most places no package offers anything: it is
imported when one does.
"""

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
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
    places = map(os.path.abspath, dict.fromkeys(sys.path))
    return any(_mentions(each, group.encode(), _changed(each)) for each in places)


def _changed(place: str) -> int:
    """When something was last added to a place or taken from it; 0 for one that does not exist."""
    try:
        return os.stat(place).st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=256)
def _mentions(place: str, group: bytes, changed: int) -> bool:
    """Looked up again once the place has changed: servers ask for every run."""
    del changed
    found = Path(place)
    if found.is_file():
        return True  # an archive
    return any(group in text for text in _entry_points(found))


def _entry_points(place: Path) -> Iterator[bytes]:
    try:
        found = [each for each in place.iterdir() if each.name.lower().endswith(_METADATA)]
    except OSError:
        return  # Not every place that is searched for packages exists.
    for each in found:
        file = each / "entry_points.txt"
        if file.is_file():
            yield file.read_bytes()
