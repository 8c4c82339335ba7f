"""REST mappings of the built-in kinds, read from the source of ``lightkube-models``.

The package is parsed, never imported: each resource class carries one ``_api_info`` call whose
arguments are literals, and its base class tells the scope.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.schemas.handwritten import (
    CATEGORIES,
    CONNECT_SUBRESOURCES,
    GROUP_ORDER,
    SHORT_NAMES,
    STORAGE,
    VERBS_NOT_SERVED,
)

VERB_OF_METHOD = {"post": "create", "put": "update"}
STANDARD_VERBS = "create delete deletecollection get list patch update watch"
STAGES = {"": 2, "beta": 1, "alpha": 0}


@dataclass
class Kind:
    """One served version of one resource, while it is put together."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: list[str]
    subresources: dict[str, list[Any]] = field(default_factory=dict)


def built_in_kinds(site_packages: Path) -> list[dict[str, Any]]:
    """All resources in discovery order, one JSON object each; what is usual is left out."""
    kinds = {(k.group, k.version, k.plural): k for k in _resources(site_packages)}
    for kind in kinds.values():
        if kind.group == "":
            for name, (options, verbs) in CONNECT_SUBRESOURCES.get(kind.plural, {}).items():
                kind.subresources[name] = ["v1", options, " ".join(verbs)]
    return [_encode(kind) for kind in sorted(kinds.values(), key=_discovery_order)]


def _resources(site_packages: Path) -> Iterator[Kind]:
    for module in sorted((site_packages / "lightkube" / "resources").glob("*_v*.py")):
        classes = [n for n in ast.parse(module.read_text()).body if isinstance(n, ast.ClassDef)]
        kinds: dict[str, Kind] = {}
        actions: list[tuple[str, str, list[Any]]] = []
        for node in classes:
            info = _api_info(node)
            group, version, kind = info["resource"]
            if "action" in info:
                body = [_api_version(group, version), kind, " ".join(_verbs(info["verbs"]))]
                actions.append((info["plural"], info["action"], body))
                continue
            verbs = _verbs(info["verbs"])
            verbs = [v for v in verbs if v not in VERBS_NOT_SERVED.get((group, info["plural"]), ())]
            kinds[info["plural"]] = Kind(
                group, version, kind, info["plural"], _is_namespaced(node), verbs
            )
        for plural, action, body in actions:
            kinds[plural].subresources[action] = body
        yield from kinds.values()


def _api_info(node: ast.ClassDef) -> dict[str, Any]:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            return {k.arg: _literal(k.value) for k in statement.value.keywords if k.arg}
    raise ValueError(f"class {node.name} has no _api_info: is this a lightkube resource module?")


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return tuple(ast.literal_eval(argument) for argument in node.args)
    return ast.literal_eval(node)


def _is_namespaced(node: ast.ClassDef) -> bool:
    return ast.unparse(node.bases[0]).startswith("res.Namespaced")


def _verbs(methods: list[str]) -> list[str]:
    return sorted(VERB_OF_METHOD.get(m, m) for m in methods if not m.startswith("global_"))


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _discovery_order(kind: Kind) -> tuple[int, tuple[int, int, int], str]:
    major, stage, minor = _version_rank(kind.version)
    return GROUP_ORDER.index(kind.group), (-stage, -major, -minor), kind.plural


def _version_rank(version: str) -> tuple[int, int, int]:
    for stage in ("alpha", "beta"):
        if stage in version:
            major, minor = version[1:].split(stage)
            return int(major), STAGES[stage], int(minor)
    return int(version[1:]), STAGES[""], 0


def _encode(kind: Kind) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "apiVersion": _api_version(kind.group, kind.version),
        "kind": kind.kind,
        "plural": kind.plural,
    }
    if kind.namespaced:
        encoded["namespaced"] = True
    if short := SHORT_NAMES.get(kind.plural):
        encoded["shortNames"] = short
    if categories := [c for c, plurals in CATEGORIES.items() if kind.plural in plurals]:
        encoded["categories"] = categories
    if (verbs := " ".join(kind.verbs)) != STANDARD_VERBS:
        encoded["verbs"] = verbs
    storage = STORAGE.get((kind.group, kind.plural), encoded["apiVersion"])
    if storage != encoded["apiVersion"]:
        encoded["storage"] = storage
    if kind.subresources:
        encoded["subresources"] = dict(sorted(kind.subresources.items()))
    return encoded
