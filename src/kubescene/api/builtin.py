"""The kinds that every Kubernetes v1.36 API server knows.

``data/kinds.json`` holds one line a resource, in discovery order, with what is usual left out
(``tools/schemas`` builds it). It is read once per process, in about a millisecond, apart from
the schemas, which few runs need. Alpha and beta versions are listed too, as on a server started
with ``--runtime-config=api/all=true``; a default server serves stable versions only.
"""

from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kubescene.api.scheme import (
    ALL_VERBS,
    GroupVersionKind,
    ResourceType,
    Scheme,
    Subresource,
)

_KINDS = Path(__file__).parent / "data" / "kinds.json"


def builtin_scheme(*, prereleases: bool = True) -> Scheme:
    """A fresh scheme of all built-in kinds; without ``prereleases`` only of stable versions."""
    return _scheme(prereleases).copy()


@cache
def _scheme(prereleases: bool) -> Scheme:
    types = [_resource_type(row) for row in orjson.loads(_KINDS.read_bytes())]
    return Scheme(t for t in types if prereleases or _is_stable(t.gvk.version))


def _is_stable(version: str) -> bool:
    return "alpha" not in version and "beta" not in version


def _resource_type(row: dict[str, Any]) -> ResourceType:
    kind = row["kind"]
    verbs = row.get("verbs")
    storage = row.get("storage")
    subresources = row.get("subresources", {})
    return ResourceType(
        gvk=GroupVersionKind.of(row["apiVersion"], kind),
        plural=row["plural"],
        namespaced=row.get("namespaced", False),
        singular=kind.lower(),
        short_names=tuple(row.get("shortNames", ())),
        categories=tuple(row.get("categories", ())),
        verbs=tuple(verbs.split()) if verbs else ALL_VERBS,
        subresources=frozenset(subresources),
        stored_as=GroupVersionKind.of(storage, kind) if storage else None,
        subresource_types=tuple(
            Subresource(name, GroupVersionKind.of(api_version, body), tuple(allowed.split()))
            for name, (api_version, body, allowed) in subresources.items()
        ),
    )
