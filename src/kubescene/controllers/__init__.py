"""Controllers that run inside the simulation: reconcilers on work queues, and the kubelet stand-in.

A reconciler looks at one object and returns what to do; the runtime owns watches, queue and order,
and makes the writes. `kubescene.control.loops` is the interface the engine sees. What the author of
a controller needs is here: derive from `ObjectReconciler` and return a `Plan`.
"""

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.authoring import ObjectReconciler, controller_of
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    Evict,
    ObjectKey,
    Patch,
    Plan,
    Reconciler,
    Scale,
    Update,
    Write,
)

__all__ = [
    "NOTHING",
    "Change",
    "Create",
    "Delete",
    "Evict",
    "GroupVersionKind",
    "ObjectKey",
    "ObjectReconciler",
    "ObjectRef",
    "Patch",
    "Plan",
    "Reader",
    "Reconciler",
    "Scale",
    "Update",
    "Write",
    "controller_of",
]
