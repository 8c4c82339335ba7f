"""CustomResourceDefinitions of kinds that controllers bring: what they have in common, once."""

from collections.abc import Sequence

from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

GROUP, VERSION = "kubescene.dev", "v1alpha1"
"""Of the kinds that come with Kubescene."""

MOST = 100_000
TEXT: JsonObject = {"type": "string"}
COUNT: JsonObject = {"type": "integer", "minimum": 0, "maximum": MOST}
ANYTHING: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
AMOUNT: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
"""A scalar or a distribution (`kubescene.clock.distributions`)."""


def own_kind(kind: str) -> GroupVersionKind:
    """A kind that comes with Kubescene."""
    return GroupVersionKind(GROUP, VERSION, kind)


def definition(
    kind: GroupVersionKind,
    spec: JsonObject,
    status: JsonObject,
    *,
    short: Sequence[str] = (),
    columns: Sequence[tuple[str, str, str]] = (),
    scale: tuple[str, str] | None = None,
) -> JsonObject:
    """The definition of a cluster-scoped kind with a status.

    ``columns`` are name, type and path of what kubectl prints; ``scale`` has the paths of the
    replicas that are wanted and of those that are there.
    """
    singular = kind.kind.lower()
    names: JsonObject = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": f"{singular}s",
        "singular": singular,
    }
    if short:
        names["shortNames"] = list(short)
    schema: JsonObject = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": spec, "status": status},
    }
    subresources: JsonObject = {"status": {}}
    if scale is not None:
        subresources["scale"] = {"specReplicasPath": scale[0], "statusReplicasPath": scale[1]}
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        "additionalPrinterColumns": [
            {"name": name, "type": of, "jsonPath": path} for name, of, path in columns
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{kind.group}"},
        "spec": {"group": kind.group, "scope": "Cluster", "names": names, "versions": [version]},
    }
