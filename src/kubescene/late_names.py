"""Names that a package offers and does not load before somebody asks for one."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; ``homes`` are the modules below it that have the names."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load
