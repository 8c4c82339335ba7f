"""ClusterRoles that gather the rules of others, whom labels choose."""

from collections.abc import Iterable, Sequence

from kubescene.api.records.changes import DELETED, Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

CLUSTER_ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")


class ClusterRoleAggregation:
    """Writes the rules of a ClusterRole that has an ``aggregationRule``: all of those it chooses.

    In the order of their names, each rule once.
    """

    name = "clusterrole-aggregation"
    kinds: Sequence[GroupVersionKind] = (CLUSTER_ROLE,)

    def __init__(self) -> None:
        self._gathering: set[str] = set()

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        name = change.record.name
        if change.type is DELETED:
            self._gathering.discard(name)
        elif change.object.get("aggregationRule"):
            self._gathering.add(name)
        return [ObjectKey("", each) for each in sorted(self._gathering)]

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        ref = ObjectRef(CLUSTER_ROLE, key.name)
        role = reader.find(ref)
        if role is None or not role.get("aggregationRule"):
            return NOTHING
        rules = gathered(role, reader.list(CLUSTER_ROLE))
        if rules == (role.get("rules") or []):
            return NOTHING
        return Plan((Patch(ref, {"rules": rules}),))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error


def gathered(role: JsonObject, roles: Iterable[JsonObject]) -> list[JsonObject]:
    """The rules of those that a role chooses, itself left out."""
    rules: list[JsonObject] = []
    others = sorted(
        (each for each in roles if each["metadata"]["name"] != role["metadata"]["name"]),
        key=lambda each: str(each["metadata"]["name"]),
    )
    for chosen in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = from_label_selector(chosen)
        for other in others:
            if selector.matches(other["metadata"].get("labels") or {}):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules


def cluster_role_aggregation(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(ClusterRoleAggregation(), context)
