"""Kubescene rehearses a Kubernetes cluster on a virtual clock.

>>> import kubescene
>>> result = kubescene.run("examples/01-first-scenario/scenario.yaml")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from kubescene.version import __version__

if TYPE_CHECKING:
    from kubescene.cluster import Cluster
    from kubescene.errors import KubesceneError
    from kubescene.runs.local import Run, run
    from kubescene.scenario.build import ScenarioBuilder
    from kubescene.sizing.searching import SizingResult, size

__all__ = [
    "Cluster",
    "KubesceneError",
    "Run",
    "ScenarioBuilder",
    "SizingResult",
    "__version__",
    "run",
    "size",
]

_HOMES = {
    "Cluster": "kubescene.cluster",
    "KubesceneError": "kubescene.errors",
    "Run": "kubescene.runs.local",
    "ScenarioBuilder": "kubescene.scenario.build",
    "SizingResult": "kubescene.sizing.searching",
    "run": "kubescene.runs.local",
    "size": "kubescene.sizing.searching",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `import kubescene` costs nothing.
    if name not in _HOMES:
        raise AttributeError(f"module 'kubescene' has no attribute {name!r}")
    from importlib import import_module

    from kubescene.garbage import uncollected

    with uncollected():
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
