"""The disruption controller: how many pods of a PodDisruptionBudget may go right now.

It counts; the eviction of a pod takes from the count and notes the pod in ``disruptedPods``, where
it stays until it is seen to go or two minutes have passed.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubescene.api.disruption_budgets import (
    BUDGET,
    DELETION_TIMEOUT,
    SYNC_FAILED,
    budget_selector,
    with_allowance,
    with_verdict,
)
from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.api.objects import Pod
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind, Scheme
from kubescene.api.selectors import LabelSelector
from kubescene.client import ObjectRef, Reader
from kubescene.clock import format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.deployments.deployment import DEPLOYMENT
from kubescene.controllers.builtin.workloads.deployments.rolling import share
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, KubesceneError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

REPORTER = "controllermanager"


class CoveredPod(Struct, frozen=True):
    """What the counts need to know of a pod. ``owner`` refers to its controller, if it has one."""

    healthy: bool
    deleting: bool
    owner: JsonObject | None


def covered_pod(pod: JsonObject) -> CoveredPod:
    view = Pod(pod)
    healthy = view.is_ready and not view.is_deleting
    return CoveredPod(healthy, view.is_deleting, controller_of(pod))


def controller_of(obj: JsonObject) -> JsonObject | None:
    """The reference to the one that manages an object."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: JsonObject = reference
            return found
    return None


class CoveredPods:
    """Counts over the pods of one budget. Not ``filled``: those that were there before are not in.

    Whether a pod is covered is for the caller to find out, with ``selector``.
    """

    def __init__(self, selector: LabelSelector) -> None:
        self.selector = selector
        self.filled = False
        self.healthy = 0
        self.unmanaged = 0
        self._pods: dict[str, CoveredPod] = {}
        self._owners: dict[str, dict[str, None]] = {}

    def put(self, name: str, pod: CoveredPod) -> None:
        self.remove(name)
        self._pods[name] = pod
        self.healthy += pod.healthy
        if pod.owner is None:
            self.unmanaged += 1
        else:
            self._owners.setdefault(pod.owner["uid"], {}).setdefault(name)

    def remove(self, name: str) -> None:
        pod = self._pods.pop(name, None)
        if pod is None:
            return
        self.healthy -= pod.healthy
        if pod.owner is None:
            self.unmanaged -= 1
        else:
            of_owner = self._owners[pod.owner["uid"]]
            del of_owner[name]
            if not of_owner:
                del self._owners[pod.owner["uid"]]

    def find(self, name: str) -> CoveredPod | None:
        return self._pods.get(name)

    def owners(self) -> list[tuple[JsonObject, str]]:
        """Each controller that has pods here, with the name of one of them."""
        found = []
        for names in self._owners.values():
            name = next(iter(names))
            owner = self._pods[name].owner
            assert owner is not None
            found.append((owner, name))
        return found

    def __len__(self) -> int:
        return len(self._pods)


class UncountablePodsError(KubesceneError):
    """It cannot be said how many pods there should be. The message goes into the status."""


class WantedPods(Struct, frozen=True):
    """How many pods there should be, and how many of them have to be healthy."""

    expected: int
    healthy: int


class DisruptionReconciler:
    """Keys are budgets. Between passes it remembers the pods that they cover."""

    name = "disruption"
    kinds: Sequence[GroupVersionKind] = (BUDGET,)

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._covered: dict[str, dict[str, CoveredPods]] = {}

    # -- watching --------------------------------------------------------------------------

    @property
    def needs_pods(self) -> bool:
        """Pods matter as soon as there is a budget."""
        return bool(self._covered)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "pods":
            return self._observe_pod(change) if record.namespace in self._covered else ()
        self._observe_budget(change)
        return (ObjectKey(record.namespace, record.name),)

    def _observe_budget(self, change: Change) -> None:
        record = change.record
        budgets = self._covered.setdefault(record.namespace, {})
        if change.type is ChangeType.DELETED:
            budgets.pop(record.name, None)
            if not budgets:
                del self._covered[record.namespace]
            return
        selector = budget_selector(change.object)
        known = budgets.get(record.name)
        if known is None or known.selector != selector:
            budgets[record.name] = CoveredPods(selector)

    def _observe_pod(self, change: Change) -> Iterable[ObjectKey]:
        """Count the pod; the budgets that cover it, or did before its labels changed.

        Those that have not counted the pods before them wait to do so, and count this one, too.
        """
        record, keys = change.record, []
        for name, covered in self._covered[record.namespace].items():
            if not covered.filled:
                continue
            covers = change.type is not ChangeType.DELETED and covered.selector.matches(
                record.labels
            )
            if covers:
                covered.put(record.name, covered_pod(change.object))
            elif covered.find(record.name) is None:
                continue
            else:
                covered.remove(record.name)
            keys.append(ObjectKey(record.namespace, name))
        return keys

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        budget = reader.find(ObjectRef(BUDGET, key.name, key.namespace))
        if budget is None:
            return NOTHING
        covered = self._covered[key.namespace][key.name]
        if not covered.filled:
            fill(covered, key.namespace, reader)
        try:
            demand = self._demand(budget, covered, reader)
        except UncountablePodsError as error:
            plan = told(budget, failed_status(budget, str(error), now))
            return replace(plan, notices=(uncounted(budget, error),))
        disrupted = still_expected(budget, covered, now)
        status = counted_status(budget, covered, demand, disrupted, now)
        due = [parse_time(since) + DELETION_TIMEOUT for since in disrupted.values()]
        plan = told(budget, status, min(due) - now if due else None)
        if not covered:
            return replace(plan, notices=(empty(budget),))
        if covered.unmanaged and counts_owners(budget):
            return replace(plan, notices=(unmanaged(budget),))
        return plan

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    # -- how many there should be ------------------------------------------------------------

    def _demand(self, budget: JsonObject, covered: CoveredPods, reader: Reader) -> WantedPods:
        """Counts ask for the pods that are there, percentages for what their owners want."""
        spec, place = budget.get("spec") or {}, budget["metadata"]["namespace"]
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if counts_owners(budget):
            expected = self._wanted(covered, place, reader)
            if most is None:
                return WantedPods(expected, share(least, expected, rounded_up=True))
            return WantedPods(expected, max(expected - share(most, expected, rounded_up=True), 0))
        # A budget that says neither protects nothing and expects nothing.
        return WantedPods(0, 0) if least is None else WantedPods(len(covered), least)

    def _wanted(self, covered: CoveredPods, namespace: str, reader: Reader) -> int:
        """The replicas of all owners together. Pods that nobody manages do not count."""
        scales: dict[str, int] = {}
        for owner, pod in covered.owners():
            ref = self._scaled(owner, namespace, reader)
            if ref is None:
                raise UncountablePodsError(f'found no controllers for pod "{pod}"')
            scale = reader.get_scale(ref)
            scales[scale["metadata"]["uid"]] = scale["spec"].get("replicas", 0)
        return sum(scales.values())

    def _scaled(self, owner: JsonObject, namespace: str, reader: Reader) -> ObjectRef | None:
        """Whose scale counts: the owner's, or its Deployment's if it is a ReplicaSet of one."""
        if is_of(owner, REPLICA_SET):
            replica_set = find(ObjectRef(REPLICA_SET, owner["name"], namespace), owner, reader)
            above = controller_of(replica_set) if replica_set else None
            if above is not None and is_of(above, DEPLOYMENT):
                ref = ObjectRef(DEPLOYMENT, above["name"], namespace)
                if find(ref, above, reader):
                    return ref
        ref = ObjectRef(self._scalable(owner), owner["name"], namespace)
        return ref if find(ref, owner, reader) else None

    def _scalable(self, owner: JsonObject) -> GroupVersionKind:
        try:
            resource_type = self._scheme.of_kind(owner["apiVersion"], owner["kind"])
        except ApiError:
            raise UncountablePodsError(
                f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"'
            ) from None
        if "scale" not in resource_type.subresources:
            resource = resource_type.named_resource
            raise UncountablePodsError(f"{resource} does not implement the scale subresource")
        return resource_type.gvk


def counts_owners(budget: JsonObject) -> bool:
    """Whether it matters how many pods the owners want, not only how many there are."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def is_of(owner: JsonObject, gvk: GroupVersionKind) -> bool:
    """Whether a reference is to this kind, in whichever version."""
    known = GroupVersionKind.of(owner["apiVersion"], owner["kind"])
    return (known.group, known.kind) == (gvk.group, gvk.kind)


def find(ref: ObjectRef, owner: JsonObject, reader: Reader) -> JsonObject | None:
    """The object that is referred to; None if it has gone, or another has its name."""
    obj = reader.find(ref)
    return obj if obj is not None and obj["metadata"]["uid"] == owner["uid"] else None


# -- how many there are ----------------------------------------------------------------------


def fill(covered: CoveredPods, namespace: str, reader: Reader) -> None:
    """Count the pods that were there before the budget."""
    for pod in reader.list(POD, namespace=namespace, labels=covered.selector):
        covered.put(pod["metadata"]["name"], covered_pod(pod))
    covered.filled = True


def still_expected(budget: JsonObject, covered: CoveredPods, now: int) -> dict[str, str]:
    """Evicted pods that have not been seen to go, and still may."""
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    return {
        name: since
        for name, since in noted.items()
        if (pod := covered.find(name)) is not None
        and not pod.deleting
        and parse_time(since) + DELETION_TIMEOUT > now
    }


def counted_status(
    budget: JsonObject,
    covered: CoveredPods,
    demand: WantedPods,
    disrupted: Mapping[str, str],
    now: int,
) -> JsonObject:
    leaving = (covered.find(name) for name in disrupted)
    healthy = covered.healthy - sum(pod is not None and pod.healthy for pod in leaving)
    # A budget without pods allows nothing: its first ones are safe before they are counted.
    allowed = max(healthy - demand.healthy, 0) if demand.expected > 0 else 0
    before = budget.get("status") or {}
    status: JsonObject = {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": demand.healthy,
        "expectedPods": demand.expected,
        "conditions": before.get("conditions") or [],
    }
    if disrupted:
        status["disruptedPods"] = dict(disrupted)
    return with_allowance(status, format_time(now))


def failed_status(budget: JsonObject, message: str, now: int) -> JsonObject:
    """Nothing may go while nobody knows how many there should be."""
    status = {**(budget.get("status") or {}), "disruptionsAllowed": 0}
    return with_verdict(status, "False", SYNC_FAILED, message, format_time(now))


def empty(budget: JsonObject) -> Notice:
    return Notice(regarding(budget), NORMAL, "NoPods", "No matching pods found", REPORTER)


def unmanaged(budget: JsonObject) -> Notice:
    message = (
        "Pods selected by this PodDisruptionBudget (selector: "
        f"{printed((budget.get('spec') or {}).get('selector'))}) were found to be unmanaged. As a "
        "result, the status of the PDB cannot be calculated correctly, which may result in "
        'undefined behavior. To account for these pods please set ".spec.minAvailable" field of '
        "the PDB to an integer value."
    )
    return Notice(regarding(budget), WARNING, "UnmanagedPods", message, REPORTER)


def printed(selector: JsonObject | None) -> str:
    """A selector as Go prints it."""
    if selector is None:
        return "nil"
    labels = sorted((selector.get("matchLabels") or {}).items())
    pairs = "".join(f"{name}: {value}," for name, value in labels)
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def uncounted(budget: JsonObject, error: UncountablePodsError) -> Notice:
    message = f"Failed to calculate the number of expected pods: {error}"
    reason = "CalculateExpectedPodCountFailed"
    return Notice(regarding(budget), WARNING, reason, message, REPORTER)


def told(budget: JsonObject, status: JsonObject, again: int | None = None) -> Plan:
    """Write the status if it has changed; look again when a disrupted pod is due."""
    before = budget.get("status") or {}
    if status == before:
        return Plan(requeue_after=again)
    patch = {"status": {**dict.fromkeys(before), **status}}
    if before.get("disruptedPods") and status.get("disruptedPods"):
        gone = dict.fromkeys(before["disruptedPods"])
        patch["status"]["disruptedPods"] = {**gone, **status["disruptedPods"]}
    write = Patch(ObjectRef.to(budget), patch, subresource="status")
    return Plan((write,), requeue_after=again)


def disruption(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(DisruptionReconciler(context.scheme), context, EVERYTHING)
