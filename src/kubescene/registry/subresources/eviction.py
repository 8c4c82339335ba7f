"""The ``eviction`` subresource of pods: a deletion that disruption budgets have to allow.

The rules of kube-apiserver v1.36 (pkg/registry/core/pod/storage/eviction.go). One thread makes
every write, so nothing changes between looking and deleting: what upstream retries on a conflict is
decided here at once.
"""

from msgspec import structs

from kubescene.actors import Actor
from kubescene.api.disruption_budgets import (
    BUDGET,
    BUDGETS,
    SYNC_FAILED,
    allowance,
    budget_selector,
    with_allowance,
)
from kubescene.api.kinds import POD
from kubescene.api.objects import Pod
from kubescene.api.options import PLAIN_DELETE, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.clock import format_time
from kubescene.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InternalError,
    StatusCause,
    TooManyRequestsError,
)
from kubescene.registry.base import RegistryBase
from kubescene.registry.objects import set_condition
from kubescene.registry.writes import WriteRequest, options_of_deletion
from kubescene.types import JsonObject

MAX_DISRUPTED_PODS = 2000
RETRY_AFTER_S = 10
API_SERVER = "kube-apiserver"
"""Who owns the fields of a budget's status that an eviction writes."""

DISRUPTION_TARGET = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
_UNGUARDED = frozenset({"Pending", "Succeeded", "Failed"})


class ManyBudgetsError(InternalError):
    """More than one budget covers the pod. Its ``Status`` has no reason, as upstream."""

    reason = ""


class Evictions:
    """Evicts pods of one world."""

    def __init__(self, registry: RegistryBase) -> None:
        self._registry = registry

    def evict(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        """Delete a pod if its budget allows; 429 if it does not. The pod's newest state."""
        pods = self._registry.type_of(POD)
        current = self._registry.record(pods, namespace, name)
        options = self._admitted(actor, current, options)
        if not is_unguarded(current):
            options = self._ask_budget(actor, current, options)
        if not options.dry_run:
            options = self._announce(actor, current, options)
        return self._registry.delete(actor, pods, namespace, name, options=options, origin=origin)

    def _admitted(self, actor: Actor, pod: Record, options: DeleteOptions) -> DeleteOptions:
        """Ask whether somebody may evict; what follows from it is asked of nobody."""
        grace_s = options.grace_period_s
        wish: JsonObject = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        body: JsonObject = {"deleteOptions": wish} if wish else {}
        written = options_of_deletion(options, None)
        pods = self._registry.type_of(POD)
        request = WriteRequest(actor, "create", pods, "eviction", written, body)
        self._registry.checks.admit_part(request, body, pod.key)
        return structs.replace(options, is_admitted=True)

    def _ask_budget(self, actor: Actor, pod: Record, options: DeleteOptions) -> DeleteOptions:
        """Refuse, or the options with which the pod may go."""
        budgets = self._budgets_of(pod)
        if len(budgets) > 1:
            raise ManyBudgetsError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        for budget in budgets:
            if is_spare(self._registry.store.decoded(pod), budget):
                # Upstream binds the deletion to the pod that it looked at, whatever was asked for.
                return structs.replace(options, resource_version=str(pod.revision))
            self._take(actor, pod, budget, dry_run=options.dry_run)
        return options

    def _budgets_of(self, pod: Record) -> list[JsonObject]:
        store = self._registry.store
        budgets = map(store.decoded, store.list(BUDGETS, pod.namespace))
        return [it for it in budgets if budget_selector(it).matches(pod.labels)]

    def _take(self, actor: Actor, pod: Record, budget: JsonObject, *, dry_run: bool) -> None:
        """Use up one of the disruptions that a budget allows."""
        check_allowed(budget)
        if dry_run:
            return
        now = format_time(self._registry.clock.now())
        status = budget["status"]
        left = {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1}
        if not left["disruptionsAllowed"]:
            left = with_allowance(left, now)
        left["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod.name: now}
        self._registry.update(
            actor,
            {**budget, "status": left},
            subresource="status",
            options=WriteOptions(field_manager=API_SERVER, is_admitted=True),
        )

    def _announce(self, actor: Actor, pod: Record, options: DeleteOptions) -> DeleteOptions:
        """Note on the pod why it goes; a revision that was asked for moves along."""
        check_preconditions(pod, options)
        registry = self._registry
        status = registry.store.decoded(pod).get("status") or {}
        now = format_time(registry.clock.now())
        conditions = set_condition(status.get("conditions") or [], DISRUPTION_TARGET, now)
        changed = registry.patch(
            actor,
            registry.type_of(POD),
            pod.namespace,
            pod.name,
            {"status": {"conditions": conditions}},
            PatchType.MERGE,
            subresource="status",
            options=WriteOptions(field_manager=API_SERVER, is_admitted=True),
        )
        if not options.resource_version:
            return options
        return structs.replace(options, resource_version=str(changed.revision))


def is_unguarded(pod: Record) -> bool:
    """Whether a pod is evicted without asking a budget: it has ended, goes, or never started."""
    return pod.phase in _UNGUARDED or pod.deleting


def is_spare(pod: JsonObject, budget: JsonObject) -> bool:
    """Whether an unready pod may go because it does not count, or because enough others do."""
    if Pod(pod).is_ready:
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def check_allowed(budget: JsonObject) -> None:
    """Refuse unless the budget, as it was last counted, allows one more disruption."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        news = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(news, RETRY_AFTER_S)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED_PODS:
        raise _forbidden(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise _too_many(_exhausted(name, status))


def _exhausted(name: str, status: JsonObject) -> str:
    condition = allowance(status) or {}
    message = condition.get("message", "") if condition.get("status") == "False" else ""
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    subject = f"The disruption budget {name}"
    if message and condition.get("reason") == SYNC_FAILED:
        return f"{subject} does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= desired:
        return f"{subject} needs {desired} healthy pods and has {healthy} currently"
    if message:
        reason = condition.get("reason", "")
        return f"{subject} does not allow evicting pods currently ({reason}): {message}"
    return f"{subject} does not allow evicting pods currently"


def _too_many(message: str, retry_after_s: int = 0) -> ApiError:
    causes = (StatusCause("DisruptionBudget", message),)
    return TooManyRequestsError(_VIOLATION, causes=causes, retry_after_s=retry_after_s)


def _forbidden(name: str, why: str) -> ApiError:
    return ForbiddenError(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        name=name,
        group=BUDGET.group,
        kind="poddisruptionbudget",
    )


def check_preconditions(pod: Record, options: DeleteOptions) -> None:
    """A deleter who names a uid or a revision means exactly that pod."""
    if options.uid and options.uid != pod.uid:
        raise _conflict(
            pod,
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({pod.uid}). The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != str(pod.revision):
        raise _conflict(
            pod,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({pod.revision}). The object might have been modified",
        )


def _conflict(pod: Record, why: str) -> ConflictError:
    message = f'Operation cannot be fulfilled on Pod "{pod.name}": {why}'
    return ConflictError(message, name=pod.name, kind="Pod")
