"""Every process-wide cache of Kubescene: listed and cleared in one place.

They are found where they are defined, so that none can be forgotten. What a world, a run or a
scheduler keeps for itself goes with it and is not of this kind.
"""

import sys
from functools import _lru_cache_wrapper
from typing import Any

from kubescene.bounded import BoundedDict


def function_caches() -> dict[str, "_lru_cache_wrapper[Any]"]:
    """By the dotted name of the function whose answers are kept."""
    found: dict[str, _lru_cache_wrapper[Any]] = {}
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


def kept_in_modules() -> dict[str, BoundedDict[Any, Any]]:
    """The dicts in which a module keeps what it has found, by their dotted names."""
    return {
        f"{name}.{own}": each
        for name, module in [*sys.modules.items()]
        if name.partition(".")[0] == "kubescene"
        for own, each in [*vars(module).items()]
        if isinstance(each, BoundedDict)
    }


def used_caches() -> list[str]:
    """Those that hold something."""
    functions = [name for name, it in function_caches().items() if it.cache_info().currsize]
    return functions + [name for name, it in kept_in_modules().items() if it]


def clear_caches() -> None:
    for cache in function_caches().values():
        cache.cache_clear()
    for kept in kept_in_modules().values():
        kept.clear()
