"""Controllers of your own: a class with `reconcile`, and what turns it into one.

`ObjectReconciler` has the rest with sensible answers, so that a controller can be one method::

    class Labeller(ObjectReconciler):
        name = "labeller"
        kinds = (NODE,)

        def reconcile(self, key, reader, now):
            ...
            return Plan([Patch(...)])

A class is named by ``module:Class`` (``--controller``) or by an entry point of the group
``kubescene.controllers``. It is imported by name, so names must come from whoever started the
program, never from a scenario or a request.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from traceback import extract_tb
from typing import Any

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import Reader
from kubescene.control.loops import ControllerContext, Progress
from kubescene.controllers.reconcile import ObjectKey, Plan, Reconciler, Write
from kubescene.controllers.registrations import Registration
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, ConfigurationError, ControllerError, KubesceneError
from kubescene.installed import offered
from kubescene.types import JsonObject

ENTRY_POINTS = "kubescene.controllers"

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class LateReconcilerController(ReconcilerController):
    """Watches those of its kinds that exist, and the others from their definition on."""

    def __init__(self, reconciler: Reconciler, context: ControllerContext) -> None:
        self._missing = [kind for kind in reconciler.kinds if kind not in context.scheme]
        super().__init__(reconciler, context)
        if self._missing:
            context.client.watch(DEFINITION, self._defined, quiet=True)

    def run_once(self) -> Progress:
        # Not where the definition is told of: who is being told does not look yet.
        for kind in [kind for kind in self._missing if kind in self._context.scheme]:
            self._missing.remove(kind)
            self._client.watch(kind, self._changed, quiet=True)
        return super().run_once()

    def _watched(self, kinds: Sequence[GroupVersionKind]) -> list[GroupVersionKind]:
        return [kind for kind in kinds if kind not in self._missing]

    def _defined(self, change: Change) -> None:
        del change
        if self._missing:
            self._context.wake()


class ObjectReconciler:
    """A `Reconciler` whose answers suit most controllers.

    Objects of the first kind are reconciled when they change, and when an object of the other kinds
    changes that they own. A refused write ends the run. ``definitions`` are the
    CustomResourceDefinitions that every world with this controller has.
    """

    name: str = ""
    kinds: Sequence[GroupVersionKind] = ()
    definitions: Sequence[JsonObject] = ()

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record, own = change.record, self.kinds[0]
        if change.object["kind"] == own.kind and record.resource.group == own.group:
            return (ObjectKey(record.namespace, record.name),)
        objects = (change.object, change.previous_object)
        return [key for obj in objects if obj and (key := owner_key(obj, own))]

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        """Compare what is with what should be; ``now`` is virtual, in nanoseconds."""
        raise NotImplementedError

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        raise error


def owner_key(obj: JsonObject, kind: GroupVersionKind) -> ObjectKey | None:
    """The key of the controlling owner, if it is of this kind."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        group = owner["apiVersion"].rpartition("/")[0]
        if owner.get("controller") and (group, owner["kind"]) == (kind.group, kind.kind):
            return ObjectKey(obj["metadata"].get("namespace", ""), owner["name"])
    return None


def controller_of(owner: JsonObject) -> JsonObject:
    """The owner reference that makes an object belong to its controller's object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def start_reconciler(context: ControllerContext, made: type) -> LateReconcilerController:
    """The factory of a reconciler class: every scenario gets a new one."""
    return LateReconcilerController(GuardedReconciler(made()), context)


def controller_from(made: type) -> Registration:
    """A reconciler class as a controller; raises `ConfigurationError` for what is none."""
    reference = f"{made.__module__}:{made.__qualname__}"
    if not callable(getattr(made, "reconcile", None)):
        raise ConfigurationError(f"{reference} has no method reconcile(key, reader, now)")
    for method in ("observe", "refused"):
        if not callable(getattr(made, method, None)):
            raise ConfigurationError(
                f"{reference} has no method {method}: derive it from "
                "kubescene.controllers.ObjectReconciler"
            )
    name, kinds = getattr(made, "name", None), getattr(made, "kinds", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{reference} needs a name, such as name = 'labeller'")
    if not isinstance(kinds, Sequence) or not kinds:
        raise ConfigurationError(f"{reference} needs kinds, the first is the one it reconciles")
    if not all(isinstance(kind, GroupVersionKind) for kind in kinds):
        raise ConfigurationError(f"{reference}: every one of its kinds must be a GroupVersionKind")
    definitions = getattr(made, "definitions", ())
    return Registration(name, partial(start_reconciler, made=made), tuple(definitions))


def import_controller(reference: str) -> type:
    """The class that ``package.module:Class`` names; raises `ConfigurationError`."""
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise ConfigurationError(f"controller {reference!r} must be written as module:Class")
    try:
        module = import_module(module_name)
    except Exception as error:
        # Whatever the author's module does when it is imported.
        why = str(error) if isinstance(error, ImportError) else repr(error)
        raise ConfigurationError(f"controller {reference!r} cannot be imported: {why}") from error
    found: Any = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ConfigurationError(
            f"controller {reference!r}: {module_name} has no class {class_name}"
        )
    controller_from(found)
    return found


def installed_controllers() -> list[type]:
    """Those that installed packages bring, in the order of their entry points' names."""
    return [import_controller(point.value) for point in offered(ENTRY_POINTS)]


class GuardedReconciler:
    """The same reconciler; whatever it raises by accident becomes a `ControllerError`."""

    def __init__(self, reconciler: Reconciler) -> None:
        self._reconciler = reconciler
        self.name = reconciler.name

    @property
    def kinds(self) -> Sequence[GroupVersionKind]:
        return self._reconciler.kinds

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        try:
            return tuple(self._reconciler.observe(change))
        except Exception as error:
            raise self._told(error, "observe", change.record.name) from error

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        try:
            plan: object = self._reconciler.reconcile(key, reader, now)
        except Exception as error:
            raise self._told(error, "reconcile", key.name) from error
        return self._checked(plan, "reconcile")

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        try:
            plan: object = self._reconciler.refused(key, write, error, reader, now)
        except ApiError:
            raise
        except Exception as other:
            raise self._told(other, "refused", key.name) from other
        return self._checked(plan, "refused")

    def _checked(self, plan: object, method: str) -> Plan:
        if isinstance(plan, Plan):
            return plan
        raise ControllerError(
            f"{method} returned {type(plan).__name__}, not a Plan", controller=self.name
        )

    def _told(self, error: Exception, method: str, name: str) -> KubesceneError:
        if isinstance(error, KubesceneError):
            return error
        frame = extract_tb(error.__traceback__)[-1]
        return ControllerError(
            f"{method} of {name!r} raised {type(error).__name__}: {error} "
            f"({frame.filename}, line {frame.lineno})",
            controller=self.name,
        )
