"""What a user's reconciler does wrong is told with its name, the object and the line."""

from collections.abc import Iterable, Sequence
from traceback import extract_tb

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import Reader
from kubescene.controllers.reconcile import ObjectKey, Plan, Reconciler, Write
from kubescene.errors import ApiError, ControllerError, KubesceneError


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

    def refused(self, key: ObjectKey, write: Write, error: ApiError, reader: Reader) -> Plan:
        try:
            plan: object = self._reconciler.refused(key, write, error, reader)
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
