"""Server-side defaulting: what kube-apiserver makes of an object before admission sees it.

A request body goes through `drop_nulls` and `apply_defaults`, in this order. Together they
have the effect of decoding into the typed object and printing it again: missing fields have their
defaults, old and new spellings of a field agree, quantities are in canonical form, and the
members that the server always prints are there. What is allocated (cluster IPs), counted
(generations) or timed is not a default and is added elsewhere.
"""

from kubescene.api.defaulting import (
    access,
    autoscaling,
    cluster,
    devices,
    extensions,
    networking,
    pods,
    storage,
    workloads,
)
from kubescene.api.defaulting.nulls import drop_nulls
from kubescene.api.defaulting.presence import ALWAYS_PRESENT, completed
from kubescene.api.defaulting.sharing import Defaulter
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

__all__ = ["apply_defaults", "default_metadata", "drop_nulls"]


def apply_defaults(obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
    """The object as the server would complete it; the object itself if nothing is missing.

    The input is never changed, and the result shares its unchanged parts. Kinds without
    defaults, custom ones among them, pass through.
    """
    default = _DEFAULTERS.get(gvk)
    done = obj if default is None else default(obj)
    zeros = ALWAYS_PRESENT.get(gvk)
    return done if zeros is None else completed(done, zeros)


def default_metadata(obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
    """`apply_defaults` for an object whose other parts have their defaults already."""
    default = _OF_METADATA.get(gvk)
    return obj if default is None else default(obj)


_FAMILIES = (
    access,
    autoscaling,
    cluster,
    devices,
    extensions,
    networking,
    pods,
    storage,
    workloads,
)

_DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    gvk: default for family in _FAMILIES for gvk, default in family.DEFAULTERS.items()
}
_OF_METADATA: dict[GroupVersionKind, Defaulter] = {
    gvk: default
    for family in (cluster, pods, workloads)
    for gvk, default in family.OF_METADATA.items()
}
"""A namespace is labelled with its name, a job as its pods are."""
