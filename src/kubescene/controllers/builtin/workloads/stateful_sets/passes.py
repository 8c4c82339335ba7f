"""One pass over a StatefulSet, as kube-controller-manager makes it.

First every pod that should be there, lowest ordinal first, then those beyond, highest first, then
one that still has an old template. With ``OrderedReady`` a pass stops at the first pod that is not
available; with ``Parallel`` only updates wait. Claims are made before the pods that use them.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from msgspec.structs import replace

from kubescene.api.kinds import POD
from kubescene.api.options import LASTING, DeleteOptions
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.workloads.controller_revisions import (
    REVISION_LABEL,
    holds,
    is_stored,
    new_revision,
    next_number,
    removed,
    renumbered,
    template_of,
)
from kubescene.controllers.builtin.workloads.deployments.rolling import share
from kubescene.controllers.builtin.workloads.pod_tally import TERMINAL_PHASES
from kubescene.controllers.builtin.workloads.stateful_sets.claims import (
    CLAIM,
    ClaimSlot,
    changed_owners,
    claim_templates,
    claims_of,
    is_deleted_with,
    is_stale,
    uses_claims,
    with_claims,
)
from kubescene.controllers.builtin.workloads.stateful_sets.members import (
    INDEX_LABEL,
    NAME_LABEL,
    Members,
    StatefulReplica,
)
from kubescene.controllers.reconcile import (
    Create,
    Delete,
    Patch,
    Plan,
    Write,
)
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

REPORTER = "statefulset-controller"
HASH_LABEL = "controller.kubernetes.io/hash"
LARGEST_BATCH = 500


class PassOutcome(Enum):
    """What a pod means for those after it."""

    GO_ON = 0
    WAIT = 1
    FAILED = 2
    """Something is in the way; with ``Parallel`` the pods of later batches wait as well."""


class Sync:
    """One pass over one set, from what is known of its pods. It collects writes in order."""

    def __init__(
        self,
        stateful_set: JsonObject,
        members: Members,
        revisions: list[JsonObject],
        reader: Reader,
        now: int,
        *,
        several: bool = False,
    ) -> None:
        """``several`` says whether ``maxUnavailable`` counts."""
        self._set = stateful_set
        self._spec = spec = stateful_set["spec"]
        self._name: str = stateful_set["metadata"]["name"]
        self._revisions = revisions
        self._reader = reader
        self._now = now
        self._delay = int(spec.get("minReadySeconds") or 0) * SECOND
        self._ordered = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        self._start = int((spec.get("ordinals") or {}).get("start") or 0)
        self._size = int(spec.get("replicas", 1))
        self._members = members
        self._pods = members.pods
        self._writes: list[Write] = []
        self._notices: list[Notice] = []
        self._collisions = int((stateful_set.get("status") or {}).get("collisionCount") or 0)
        self._current, self._update = self._find_revisions()
        self._several = several
        self.awaited: list[str] = []
        """Claims that have to be gone before a pod can be made."""

    def plan(self) -> Plan:
        status, leaving = self._status(), "deletionTimestamp" in self._set["metadata"]
        if not leaving:
            gone = self._next_step()
            status["currentReplicas"] -= self._manage() if gone is None else gone
        self._tell(status)
        if not leaving:
            self._writes += removed(self._surplus())
        return Plan(self._writes, self._until_available(), self._notices)

    def status_writes(self) -> list[Write]:
        """The counts as they are, and nothing else."""
        self._writes = []
        self._tell(self._status())
        return self._writes

    # -- revisions -------------------------------------------------------------------------

    def _find_revisions(self) -> tuple[JsonObject, JsonObject]:
        """The revision that pods have, and the one that they should get; it is made if need be."""
        revisions, template = self._revisions, self._spec["template"]
        update = self._newest(template)
        wanted = (self._set.get("status") or {}).get("currentRevision")
        found = (each for each in revisions if each["metadata"]["name"] == wanted)
        return next(found, update), update

    def _newest(self, template: JsonObject) -> JsonObject:
        revisions = self._revisions
        number = next_number(revisions)
        equal = [each for each in revisions if holds(each, template)]
        if equal and equal[-1] is revisions[-1]:
            return equal[-1]
        if equal:
            self._writes.append(renumbered(equal[-1], number))
            return equal[-1]
        made, self._collisions = new_revision(
            self._set, number, self._collisions, HASH_LABEL, self._reader
        )
        if not is_stored(made) and "deletionTimestamp" not in self._set["metadata"]:
            self._writes.append(Create(made))
        return made

    def _surplus(self) -> list[JsonObject]:
        """Revisions that no pod has any more, beyond those that are kept as history."""
        limit = int(self._spec.get("revisionHistoryLimit", 10))
        live = {each["metadata"]["name"] for each in (self._current, self._update)}
        names = [(each["metadata"]["name"], each) for each in self._revisions]
        used = self._members.revisions
        history = [each for name, each in names if name not in live and not used[name]]
        return history[: max(len(history) - limit, 0)] if limit >= 0 else []

    # -- status ----------------------------------------------------------------------------

    def _status(self) -> JsonObject:
        current, update = (it["metadata"]["name"] for it in (self._current, self._update))
        members, available = self._members, self._members.ready
        if self._delay:
            pods = self._pods.values()
            available = sum(each.is_available(self._delay, self._now) for each in pods)
        return {
            "observedGeneration": self._set["metadata"].get("generation", 1),
            "replicas": len(self._pods),
            "readyReplicas": members.ready,
            "currentReplicas": members.staying[current],
            "updatedReplicas": members.staying[update],
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": self._collisions,
            "availableReplicas": available,
        }

    def _tell(self, status: JsonObject) -> None:
        """Write a status that has changed; a rolling update that is over ends here."""
        rolling = (self._spec.get("updateStrategy") or {}).get("type") == "RollingUpdate"
        counts = (status["updatedReplicas"], status["readyReplicas"], status["replicas"])
        if rolling and counts == (self._size,) * 3:
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = status["updateRevision"]
        for name in ("readyReplicas", "currentReplicas", "updatedReplicas"):
            if not status[name]:
                del status[name]
        old = self._set.get("status") or {}
        if status != old:
            gone = {name: None for name in old if name not in status}
            patch = {"status": {**gone, **status}}
            ref = ObjectRef.to(self._set)
            self._writes.append(Patch(ref, patch, subresource="status", options=LASTING))

    def _until_available(self) -> int | None:
        """How long until the next ready pod has been ready for long enough."""
        if not self._delay:
            return None
        since = (each.ready_since for each in self._pods.values() if each.is_ready)
        due = (each + self._delay - self._now for each in since if each is not None)
        return min((each for each in due if each > 0), default=None)

    # -- pods ------------------------------------------------------------------------------

    def _next_step(self) -> int | None:
        """`_manage` for a set that grows in order or has its pods; None if it takes more.

        What it would come to is told by counts, so that it takes no longer for many pods.
        """
        members = self._members
        if self._delay or members.odd or claim_templates(self._set):
            return None
        missing = members.first_missing(self._start)
        if len(members.pods) != missing - self._start or missing > self._start + self._size:
            return None
        if self._ordered and members.away:
            return 0
        if missing < self._start + self._size:
            if not self._ordered:
                return None
            self._create(self._missing(missing))
            return 0
        on_delete = (self._spec.get("updateStrategy") or {}).get("type") == "OnDelete"
        is_updated = members.revisions[self._update["metadata"]["name"]] == len(members.pods)
        return 0 if on_delete or is_updated else None

    def _manage(self) -> int:
        """Bring the pods closer to what they should be; how many go for an update."""
        replicas, condemned = self._sorted()
        unavailable = (each for each in (*replicas, *reversed(condemned)) if self._is_away(each))
        first_unavailable = next(unavailable, None)
        if not self._each(replicas, self._keep):
            return 0
        if not self._each(condemned, self._hand_over_claims):
            return 0
        if not self._each(condemned, lambda pod: self._condemn(pod, first_unavailable)):
            return 0
        strategy = self._spec.get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return 0
        return self._update_pods(replicas, strategy.get("rollingUpdate"))

    def _sorted(self) -> tuple[list[StatefulReplica], list[StatefulReplica]]:
        """Those that should be there, made up if they are missing, and those beyond."""
        found: dict[int, StatefulReplica] = {}
        condemned = []
        start, end = self._start, self._start + self._size
        for pod in self._pods.values():
            if start <= pod.ordinal < end:
                found[pod.ordinal] = pod
            elif pod.ordinal >= 0:
                condemned.append(pod)
        replicas = [found.get(each) or self._missing(each) for each in range(start, end)]
        return replicas, sorted(condemned, key=lambda pod: (-pod.ordinal, pod.name))

    def _missing(self, ordinal: int) -> StatefulReplica:
        revision = self._revision_for(ordinal)["metadata"]["name"]
        name = f"{self._name}-{ordinal}"
        return StatefulReplica(ordinal, name, "", revision, "", None, deleting=False, labelled=True)

    def _revision_for(self, ordinal: int) -> JsonObject:
        """New pods are of the newest revision, but for those below the partition."""
        strategy = self._spec.get("updateStrategy") or {}
        if strategy.get("type") != "RollingUpdate":
            return self._update
        if (rolling := strategy.get("rollingUpdate")) is not None:
            below = int(rolling.get("partition") or 0)
        else:
            below = int((self._set.get("status") or {}).get("currentReplicas") or 0)
        return self._current if ordinal < self._start + below else self._update

    def _is_away(self, pod: StatefulReplica) -> bool:
        return pod.deleting or not pod.is_available(self._delay, self._now)

    def _each(self, pods: Sequence[StatefulReplica], act: "Act") -> bool:
        """Go through pods; False if the pass ends there.

        In order, the first that has to be waited for ends it. In parallel it is only the batch,
        ever larger ones, in which something went wrong.
        """
        if self._ordered:
            return all(act(pod) is PassOutcome.GO_ON for pod in pods)
        for batch in batches(pods):
            outcomes = [act(pod) for pod in batch]
            if PassOutcome.FAILED in outcomes:
                return False
        return True

    def _keep(self, pod: StatefulReplica) -> PassOutcome:
        """A pod that should be there is made, replaced, waited for or mended."""
        if pod.phase in TERMINAL_PHASES:
            if not pod.deleting:
                self._delete(pod)
            return PassOutcome.WAIT
        if not pod.phase:
            if (outcome := self._create(pod)) is not None:
                return outcome
            if self._ordered:
                return PassOutcome.WAIT
        if pod.phase == "Pending" and not self._make_claims(pod):
            return PassOutcome.FAILED
        if self._ordered and self._is_away(pod):
            return PassOutcome.WAIT
        if pod.phase:
            self._mend(pod)
        return PassOutcome.GO_ON

    def _create(self, pod: StatefulReplica) -> PassOutcome | None:
        """Make a pod and its claims; None if that was done."""
        member = self._member(pod)
        if is_deleted_with(self._set, "whenScaled"):
            stale = [each for each in self._claims(pod) if is_stale(each, member)]
            if stale:
                self.awaited += [each["metadata"]["name"] for each in stale]
                return PassOutcome.WAIT
        body = self._body(pod, self._revision_for(pod.ordinal))
        made = Create(body, self._pod_news("Create", pod))
        return None if self._make_claims(pod, made) else PassOutcome.FAILED

    def _make_claims(self, pod: StatefulReplica, creation: Create | None = None) -> bool:
        """Create the claims of a pod that are missing, the pod, and see to the claims' owners.

        False if one of them is being deleted: the pod cannot use it, and has to wait for another.
        """
        handovers: list[Write] = []
        going = []
        member = self._member(pod)
        for claim in claims_of(self._set, pod.ordinal):
            name = claim["metadata"]["name"]
            known = self._reader.find(ObjectRef(CLAIM, name, claim["metadata"]["namespace"]))
            if known is None:
                message = f"Create Claim {name} Pod {pod.name} in StatefulSet {self._name} success"
                self._writes.append(Create(claim, self._notice("SuccessfulCreate", message)))
            elif "deletionTimestamp" in known["metadata"]:
                going.append(name)
                continue
            handovers += self._with_owners(known or claim, member)
        if going:
            self.awaited += going
            if creation is not None:
                told = ", ".join(f"pvc {name} is being deleted" for name in going)
                told = f"[{told}]" if len(going) > 1 else told
                self._notices.append(failed(self._set, "Create", f"Pod {pod.name}", told))
            return False
        if creation is not None:
            self._writes.append(creation)
        self._writes += handovers
        return True

    def _with_owners(self, claim: JsonObject, member: ClaimSlot) -> list[Patch]:
        references = changed_owners(claim, self._set, member)
        if references is None:
            return []
        return [Patch(ObjectRef.to(claim), {"metadata": {"ownerReferences": references or None}})]

    def _claims(self, pod: StatefulReplica) -> Iterator[JsonObject]:
        """The claims of a pod that are there."""
        for claim in claims_of(self._set, pod.ordinal):
            if (known := self._reader.find(ObjectRef.to(claim))) is not None:
                yield known

    def _member(self, pod: StatefulReplica) -> ClaimSlot:
        inside = self._start <= pod.ordinal < self._start + self._size
        return ClaimSlot(pod.name, pod.uid, shrunk=not inside)

    def _hand_over_claims(self, pod: StatefulReplica) -> PassOutcome:
        self._writes += self._handovers(pod)
        return PassOutcome.GO_ON

    def _handovers(self, pod: StatefulReplica) -> list[Patch]:
        """What gives the claims of a pod the owners that they should have."""
        member = self._member(pod)
        return [patch for claim in self._claims(pod) for patch in self._with_owners(claim, member)]

    def _mend(self, pod: StatefulReplica) -> None:
        """Give a pod, such as an adopted one, the labels and volumes of its place."""
        if pod.labelled and not claim_templates(self._set):
            return
        changes: JsonObject = {}
        if not pod.labelled:
            labels = {NAME_LABEL: pod.name, INDEX_LABEL: str(pod.ordinal)}
            changes["metadata"] = {"labels": labels}
        found = self._reader.find(ObjectRef(POD, pod.name, self._set["metadata"]["namespace"]))
        if found is not None and not uses_claims(found, self._set, pod.ordinal):
            volumes = with_claims(found["spec"], self._set, pod.ordinal)["volumes"]
            changes["spec"] = {"volumes": volumes}
            self._make_claims(pod)
        news = self._pod_news("Update", pod)
        patches = self._handovers(pod)
        if changes:
            ref = ObjectRef(POD, pod.name, self._set["metadata"]["namespace"])
            self._writes += [*patches, Patch(ref, changes, notice=news)]
        elif patches:
            # Upstream writes the pod as well, which changes nothing but is told.
            self._writes += [*patches[:-1], replace(patches[-1], notice=news)]

    def _condemn(
        self, pod: StatefulReplica, first_unavailable: StatefulReplica | None
    ) -> PassOutcome:
        """A pod beyond the set's size goes; in order, not while another one is unavailable."""
        if pod.deleting:
            return PassOutcome.WAIT if self._ordered else PassOutcome.GO_ON
        unavailable = not pod.is_available(self._delay, self._now)
        if self._ordered and unavailable and pod is not first_unavailable:
            return PassOutcome.WAIT
        self._delete(pod)
        return PassOutcome.WAIT

    def _update_pods(self, replicas: Sequence[StatefulReplica], rolling: JsonObject | None) -> int:
        """Delete pods of other revisions, highest ordinal first; how many."""
        first = int((rolling or {}).get("partition") or 0)
        if self._several:
            return self._update_some(replicas, first, rolling or {})
        for pod in reversed(replicas[first:]):
            if self._is_old(pod):
                self._delete(pod)
                return 1
            if self._is_away(pod):
                return 0
        return 0

    def _update_some(
        self, replicas: Sequence[StatefulReplica], first: int, rolling: JsonObject
    ) -> int:
        """The same, as many at once as may be unavailable."""
        limit = max(share(rolling.get("maxUnavailable", 1), self._size), 1)
        left = limit - sum(map(self._is_away, replicas))
        old = [pod for pod in reversed(replicas[first:]) if self._is_old(pod)][: max(left, 0)]
        for pod in old:
            self._delete(pod)
        return len(old)

    def _is_old(self, pod: StatefulReplica) -> bool:
        return pod.revision != self._update["metadata"]["name"] and not pod.deleting

    # -- writes ----------------------------------------------------------------------------

    def _body(self, pod: StatefulReplica, revision: JsonObject) -> JsonObject:
        template = template_of(revision) or self._spec["template"]
        given = template.get("metadata") or {}
        own = self._set["metadata"]
        metadata: JsonObject = {
            "generateName": f"{self._name}-",
            "name": pod.name,
            "namespace": own["namespace"],
            "labels": {
                **(given.get("labels") or {}),
                REVISION_LABEL: revision["metadata"]["name"],
                INDEX_LABEL: str(pod.ordinal),
                NAME_LABEL: pod.name,
            },
            "ownerReferences": [controller_of(self._set)],
        }
        for field in ("annotations", "finalizers"):
            if given.get(field):
                metadata[field] = given[field]
        spec = {**template["spec"], "hostname": pod.name}
        if self._spec.get("serviceName"):
            spec["subdomain"] = self._spec["serviceName"]
        spec = with_claims(spec, self._set, pod.ordinal)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _delete(self, pod: StatefulReplica) -> None:
        ref = ObjectRef(POD, pod.name, self._set["metadata"]["namespace"])
        options = DeleteOptions(uid=pod.uid)
        self._writes.append(Delete(ref, options, self._pod_news("Delete", pod)))

    def _pod_news(self, verb: str, pod: StatefulReplica) -> Notice:
        message = f"{verb} Pod {pod.name} in StatefulSet {self._name} successful"
        return self._notice(f"Successful{verb}", message)

    def _notice(self, reason: str, message: str) -> Notice:
        return Notice(regarding(self._set), NORMAL, reason, message, REPORTER)


Act: TypeAlias = Callable[[StatefulReplica], PassOutcome]


def batches(pods: Sequence[StatefulReplica]) -> Iterator[Sequence[StatefulReplica]]:
    """One pod, then two, four, and so on.

    Upstream the pods of a batch race, and the one that starts last mostly is first.
    """
    begin, size = 0, 1
    while begin < len(pods):
        batch = pods[begin : begin + size]
        yield (*batch[-1:], *batch[:-1])
        begin, size = begin + size, min(2 * size, LARGEST_BATCH)


def failed(stateful_set: JsonObject, verb: str, what: str, why: str) -> Notice:
    name = stateful_set["metadata"]["name"]
    message = f"{verb} {what} in StatefulSet {name} failed error: {why}"
    return Notice(regarding(stateful_set), WARNING, f"Failed{verb}", message, REPORTER)
