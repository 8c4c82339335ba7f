"""Every process-wide cache of Kubescene: listed and cleared in one place.

They are found where they are defined, so that none can be forgotten. What a world, a run or a
scheduler keeps for itself goes with it and is not of this kind.
"""

import sys
from functools import _lru_cache_wrapper
from typing import Any, TypeAlias

Cache: TypeAlias = "_lru_cache_wrapper[Any]"


def process_caches() -> dict[str, Cache]:
    """By the dotted name of the function whose answers are kept."""
    found: dict[str, Cache] = {}
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == "kubescene":
            for owner in (module, *filter(lambda each: isinstance(each, type), owned(module))):
                found |= {
                    f"{name}.{each.__qualname__}": each
                    for each in owned(owner)
                    if isinstance(each, _lru_cache_wrapper) and each.__module__ == name
                }
    return found


def owned(owner: object) -> list[Any]:
    return [*vars(owner).values()]


def clear_caches() -> None:
    for cache in process_caches().values():
        cache.cache_clear()
