"""Recordings of kube-controller-manager: what its workload controllers made of a world.

A line is one case: objects, then steps, each with what is done (``do``) and what the world looks
like afterwards (``see``). The replay plays user, scheduler and kubelet as the case says; between
two actions our controllers come to rest, as the recorded ones did. It knows the form of the
recordings and no rule of a controller.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import partial
from itertools import permutations
from typing import Any

from kubescene.api.feature_gates import MAX_UNAVAILABLE_STATEFUL_SET
from kubescene.api.options import DeleteOptions
from kubescene.clock import SECOND
from kubescene.clock.timestamps import format_time, parse_time
from kubescene.errors import ApiError, NotFoundError
from kubescene.testing.goldens.case_worlds import CaseWorld, OwnCaseWorld
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.testing.goldens.workload_views import KINDS, CaseObjects, sort_key
from kubescene.types import JsonObject

UNIT = "steps"

QUIET = {"job": 17 * SECOND // 10, "namespace": 22 * SECOND // 10}
USUALLY_QUIET = 7 * SECOND // 10
"""How long nothing was written before an action was over, by family."""
GATES = {"stsmax": frozenset({MAX_UNAVAILABLE_STATEFUL_SET})}
"""Feature gates that were on, by family."""
NAMESPACE = "case-namespace"
ZONES = {"n1": "z1", "n2": "z2", "n3": "z3"}
HOUR = 3600 * SECOND
ABSENT = "(absent)"
DESCRIPTION = "kubernetes.io/description"
OF_AUTHORITY = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class WorkloadAspect(StrEnum):
    """What can differ: a kind of object after a step, what was said, what was refused."""

    REPLAYED = "replayed"
    POD = "Pod"
    REPLICA_SET = "ReplicaSet"
    DEPLOYMENT = "Deployment"
    REPLICATION_CONTROLLER = "ReplicationController"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"
    CONTROLLER_REVISION = "ControllerRevision"
    JOB = "Job"
    CRON_JOB = "CronJob"
    ENDPOINT_SLICE = "EndpointSlice"
    ENDPOINTS = "Endpoints"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    RESOURCE_QUOTA = "ResourceQuota"
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"
    SERVICE_ACCOUNT = "ServiceAccount"
    NAMESPACE = "Namespace"
    EVENT = "Event"
    ANSWERS = "answers"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case has objects, and steps of which each says what is done and seen."""
    del result
    steps = case.get("steps")
    is_whole = isinstance(case.get("objects"), list) and isinstance(steps, list)
    if not is_whole or not all("do" in each and "see" in each for each in steps or ()):
        raise GoldenFormatError(
            f'{where}: {case["id"]} needs a list "objects" and a list "steps" of "do" and "see"'
        )


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    case = golden.case
    tally.attempts += len(case["steps"])
    try:
        seen = [*replayed(case, plain=golden.plain)]
    except Exception as error:
        # Whatever our controllers raise is a difference.
        comparison.failed(WorkloadAspect.REPLAYED, f"{type(error).__name__}: {error}", "")
        return
    wanted = [step["see"] for step in case["steps"]]
    ours = least_permuted(seen, case.get("alike") or [])
    # Every namespace has kube-root-ca.crt: a recording without it does not show ConfigMaps.
    shows_maps = any(WorkloadAspect.CONFIG_MAP in each for each in wanted)
    aspects = [each for each in WorkloadAspect if shows_maps or each != WorkloadAspect.CONFIG_MAP]
    for number, (mine, theirs) in enumerate(zip(ours, wanted, strict=True)):
        comparison.at = f"step {number}"
        before = comparison.differences
        for aspect in aspects:
            if aspect in mine or aspect in theirs:
                compare(comparison, aspect, mine.get(aspect), theirs.get(aspect))
        if comparison.differences != before:
            return  # What follows is another world.


def compare(comparison: GoldenComparison, aspect: WorkloadAspect, ours: Any, theirs: Any) -> None:
    """Compare the objects of a kind; of those that differ only the differing members are told."""
    comparison.equal(aspect, *(ours, theirs) if ours == theirs else narrowed(ours, theirs))


def narrowed(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Two values that differ without what they have in common, but for names."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        left, right = {}, {}
        for name in dict.fromkeys((*ours, *theirs)):
            if name == "name" or ours.get(name, ...) != theirs.get(name, ...):
                pair = narrowed(ours.get(name, ABSENT), theirs.get(name, ABSENT))
                left[name], right[name] = pair
        return left, right
    if isinstance(ours, list) and isinstance(theirs, list):
        only_ours = [each for each in ours if each not in theirs]
        only_theirs = [each for each in theirs if each not in ours]
        if len(only_ours) == len(only_theirs) > 0:
            pairs = [narrowed(*pair) for pair in zip(only_ours, only_theirs, strict=True)]
            return [each[0] for each in pairs], [each[1] for each in pairs]
        if only_ours or only_theirs:
            return only_ours, only_theirs
    return ours, theirs


def replayed(case: JsonObject, *, plain: bool = False) -> Iterator[JsonObject]:
    """What is seen in a world of ours after each step of a case."""
    family = case["family"]
    gates, quiet = GATES.get(family, frozenset()), QUIET.get(family, USUALLY_QUIET)
    world = OwnCaseWorld(parse_time(case["now"]), NAMESPACE, gates, quiet, plain=plain)
    return CasePlayer(case, world).play()


class CasePlayer:
    """One case in a world, action by action.

    Whoever records a case does not know yet when its steps are over: those have no time.
    """

    def __init__(self, case: JsonObject, world: CaseWorld) -> None:
        self._case = case
        self._begin = parse_time(case["now"])
        self._world = world
        self._seen_at = self._begin
        self._answers: list[JsonObject] = []
        self._view = CaseObjects(self._world, case["family"])
        self._furnish()

    def play(self) -> Iterator[JsonObject]:
        """What is seen after each step."""
        self._set_step(self._case["steps"][0])
        for at, obj in enumerate(self._case["objects"]):
            self._try(at, partial(self._create, obj))
            if self._case["family"] in ("gc", "quota"):
                self._rest()
        yield self._seen()
        for step in self._case["steps"][1:]:
            self._set_step(step)
            for at, action in enumerate(step["do"]):
                self._act(at, action)
                self._rest()
            yield self._seen()

    def _set_step(self, step: JsonObject) -> None:
        self._seen_at = self._begin + round(step.get("t", 0) * SECOND)

    def _furnish(self) -> None:
        nodes = self._case.get("nodes")
        for name, zone in ZONES.items() if nodes is None else ():
            labels = {"topology.kubernetes.io/zone": zone}
            self._create_node({"metadata": {"name": name, "labels": labels}})
        for node in nodes or ():
            self._create_node(node)
        metadata = {"name": self._world.namespace}
        self._world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self._rest()
        self._ensure("ServiceAccount", {"metadata": {"name": "default"}})
        authority = {"name": "kube-root-ca.crt", "annotations": {DESCRIPTION: OF_AUTHORITY}}
        self._ensure("ConfigMap", {"metadata": authority, "data": {"ca.crt": ""}})

    def _ensure(self, kind: str, obj: JsonObject) -> None:
        """Make what the namespace of every case has, unless a controller has made it."""
        try:
            self._world.get(kind, obj["metadata"]["name"])
        except NotFoundError:
            self._create({"apiVersion": "v1", "kind": kind, **obj})

    def _create_node(self, node: JsonObject) -> None:
        metadata = node["metadata"]
        labels = {**(metadata.get("labels") or {})}
        if "nodes" in self._case:
            labels["case"] = self._case["id"]
        self._world.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                **{name: each for name, each in node.items() if name != "metadata"},
                "metadata": {**metadata, "labels": labels},
                "status": {"conditions": [ready_condition("Ready", "True", self._begin)]},
            }
        )

    # -- time ------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Not beyond the instant at which the step was seen: the recorder was no slower."""
        self._world.rest(self._seen_at)

    def _seen(self) -> JsonObject:
        self._world.wait(self._seen_at)
        seen = self._view.see()
        if self._answers:
            seen["answers"] = [self._view.answered(each) for each in self._answers]
            self._answers = []
        return seen

    # -- what is done ----------------------------------------------------------------------

    def _act(self, at: int, action: JsonObject) -> None:
        match action:
            case {"create": obj}:
                self._try(at, partial(self._create, obj))
            case {"patch": patch}:
                self._try(at, partial(self._patch, patch))
            case {"delete": {"name": name, "kind": kind}}:
                self._try(at, partial(self._delete, kind, name, action["delete"]))
            case {"rounds": rounds}:
                self._oblige(rounds)
            case {"advanceWaitSeconds": seconds}:
                self._world.wait(self._world.now() + round(float(seconds) * SECOND))
            case {"minute": _}:
                minute = 60 * SECOND
                self._world.wait((self._world.now() // minute + 1) * minute + 3 * SECOND)
            case _:
                self._act_on_pods(at, action)

    def _act_on_pods(self, at: int, action: JsonObject) -> None:
        """An action on chosen pods, one after another; with rest in between unless together."""
        for verb, act in self._pod_verbs.items():
            for name in self._chosen(action[verb]) if verb in action else ():
                told = self._tell if verb == "evict" else None
                if verb == "label":
                    with suppress(ApiError):  # The recorder did not note what became of these.
                        act(name, action)
                else:
                    self._try(at, partial(act, name, action), told)
                if not action.get("together"):
                    self._rest()

    @property
    def _pod_verbs(self) -> dict[str, Callable[[str, JsonObject], None]]:
        return {
            "delete": lambda pod, action: self._delete("Pod", pod, action["delete"]),
            "evict": lambda pod, _: self._evict(pod),
            "pods": lambda pod, action: self._set(pod, action["set"]),
            "label": lambda pod, action: self._label(pod, action["set"]),
        }

    def _try(
        self, at: int, act: Callable[[], None], told: Callable[[int], None] | None = None
    ) -> None:
        """Note a refusal; what went well is ``told``."""
        try:
            act()
        except ApiError as error:
            self._answers.append(answer_of(at, error))
        else:
            if told is not None:
                told(at)

    def _tell(self, at: int) -> None:
        self._answers.append({"action": at, "code": 201})

    def _create(self, obj: JsonObject) -> None:
        kind = obj["kind"]
        if kind == "Node":
            self._create_node(obj)
            return
        metadata = {**obj["metadata"], "namespace": self._world.namespace}
        if owners := metadata.get("ownerReferences"):
            metadata["ownerReferences"] = [
                {**each, "uid": self._uid(each["uid"])} for each in owners
            ]
        self._world.create({**obj, "metadata": metadata})

    def _uid(self, text: str) -> str:
        if not text.startswith("uid:"):
            return text
        kind, _, name = text.removeprefix("uid:").partition("/")
        try:
            uid: str = self._world.get(kind, name)["metadata"]["uid"]
        except NotFoundError:
            return "00000000-0000-0000-0000-000000000000"
        return uid

    def _patch(self, patch: JsonObject) -> None:
        body = patch["patch"]
        how = "json" if isinstance(body, list) else "merge"
        self._world.patch(patch["kind"], patch["name"], body, how, patch.get("sub", ""))

    def _delete(self, kind: str, name: str, options: JsonObject) -> None:
        given = DeleteOptions(
            grace_period_s=options.get("grace"), propagation_policy=options.get("propagation", "")
        )
        self._world.delete(kind, self._world.namespace if kind == "Namespace" else name, given)

    def _evict(self, pod: str) -> None:
        self._world.evict(pod)

    def _label(self, pod: str, changes: JsonObject) -> None:
        self._world.patch("Pod", pod, {"metadata": changes}, "merge")

    # -- pods ------------------------------------------------------------------------------

    def _oblige(self, rounds: int) -> None:
        """An obliging kubelet: what terminates is gone, what is pending runs."""
        for _ in range(rounds):
            gone = [*self._chosen({"match": {"deleting": True}}, bound=True)]
            for pod in gone:
                self._oblige_one(pod, {"gone": True})
            pending = [*self._chosen({"match": {"phase": "Pending"}})]
            for pod in pending:
                self._oblige_one(pod, {"phase": "Running"})
            if not gone and not pending:
                return

    def _oblige_one(self, pod: str, changes: JsonObject) -> None:
        """A pod may have gone while another was looked after."""
        with suppress(NotFoundError):
            self._set(pod, changes)
        self._rest()

    def _chosen(self, choice: JsonObject, *, bound: bool = False) -> list[str]:
        """The names of pods, by completion index and then in order of creation."""
        match = choice.get("match") or {}
        pods = [
            pod
            for pod in self._pods()
            if self._is_of(pod, choice.get("of", ""))
            and self._matches(pod, match)
            and (not bound or pod["spec"].get("nodeName"))
        ]
        pods.sort(key=index_of)
        if "first" in choice:
            pods = pods[: choice["first"]]
        if "last" in choice:
            pods = pods[-choice["last"] :]
        return [pod["metadata"]["name"] for pod in pods]

    def _pods(self) -> list[JsonObject]:
        return list(self._world.objects("Pod"))

    def _is_of(self, obj: JsonObject, owner: str) -> bool:
        if not owner:
            return True
        for each in obj["metadata"].get("ownerReferences") or ():
            if not each.get("controller"):
                continue
            if f"{each['kind']}/{each['name']}" == owner:
                return True
            if each["kind"] in KINDS:
                try:
                    above = self._world.get(each["kind"], each["name"])
                except NotFoundError:
                    continue
                if self._is_of(above, owner):
                    return True
        return False

    def _matches(self, pod: JsonObject, match: JsonObject) -> bool:
        metadata, phase = pod["metadata"], pod["status"].get("phase", "Pending")
        deleting = "deletionTimestamp" in metadata
        if deleting != bool(match.get("deleting")):
            return False
        if "phase" in match:
            if phase != match["phase"]:
                return False
        elif phase in ("Succeeded", "Failed") and not deleting:
            return False
        wanted_labels = {
            name: self._view.hash_of(value) for name, value in (match.get("labels") or {}).items()
        }
        labels = metadata.get("labels") or {}
        return (
            match.get("name") in (None, metadata["name"])
            and match.get("index") in (None, index_of(pod))
            and match.get("node") in (None, node_of(pod))
            and match.get("ready") in (None, is_ready(pod))
            and all(labels.get(name) == value for name, value in wanted_labels.items())
        )

    def _set(self, name: str, changes: JsonObject) -> None:
        """What scheduler and kubelet do to a pod."""
        if changes.get("gone"):
            self._delete("Pod", name, {"grace": 0})
            return
        pod = self._world.get("Pod", name)
        phase = changes.get("phase", pod["status"].get("phase", "Pending"))
        if not pod["spec"].get("nodeName") and ("bind" in changes or phase != "Pending"):
            node = wanted_node(pod) or changes.get("bind", "n1")
            self._world.bind(name, node)
        if set(changes) <= {"bind"}:
            return
        status = self._status(pod, phase, changes)
        self._world.patch("Pod", name, {"status": status}, "strategic", "status")

    def _status(self, pod: JsonObject, phase: str, changes: JsonObject) -> JsonObject:
        now = self._world.now()
        is_now_ready = changes.get("ready", phase == "Running")
        is_news = changes.get("justReady") or changes.get("ready") is False
        since = now if is_news else self._begin - HOUR
        why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
        conditions = [ready_condition("Initialized", "True", self._begin - HOUR)]
        for name in ("Ready", "ContainersReady"):
            reason = "" if is_now_ready else why
            conditions.append(ready_condition(name, str(bool(is_now_ready)), since, reason))
        if "condition" in changes:
            given = {"lastTransitionTime": format_time(now), **changes["condition"]}
            conditions.append(given)
        status: JsonObject = {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [
                self._container(each, phase, changes) for each in pod["spec"]["containers"]
            ],
        }
        for name in ("reason", "message"):
            if name in changes:
                status[name] = changes[name]
        if "ip" in changes:
            status |= {"podIP": changes["ip"], "podIPs": [{"ip": changes["ip"]}]}
        return status

    def _container(self, container: JsonObject, phase: str, changes: JsonObject) -> JsonObject:
        now, begun = self._world.now(), format_time(self._begin - HOUR)
        state: JsonObject = {"running": {"startedAt": begun}}
        if phase in ("Succeeded", "Failed"):
            ended = self._begin - HOUR if changes.get("finishedLongAgo") else now
            exit_code = changes.get("exitCode", 0 if phase == "Succeeded" else 1)
            reason = "Completed" if exit_code == 0 else "Error"
            times = {"startedAt": begun, "finishedAt": format_time(ended)}
            state = {"terminated": {"exitCode": exit_code, "reason": reason, **times}}
        elif "waiting" in changes:
            state = {"waiting": {"reason": changes["waiting"]}}
        return {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": bool(changes.get("ready", phase == "Running")),
            "restartCount": changes.get("restarts", 0),
            "state": state,
        }


def ready_condition(name: str, status: str, since: int, reason: str = "") -> JsonObject:
    told = {"type": name, "status": status, "lastTransitionTime": format_time(since)}
    return {**told, "reason": reason} if reason else told


def answer_of(at: int, error: ApiError) -> JsonObject:
    answer: JsonObject = {
        "action": at,
        "code": error.code,
        "reason": error.reason or None,
        "message": error.message,
    }
    if error.causes:
        answer["causes"] = [each.to_dict() for each in error.causes]
    return answer


def index_of(pod: JsonObject) -> int:
    """The completion index; pods without one stay in order of creation."""
    annotations = pod["metadata"].get("annotations") or {}
    return int(annotations.get("batch.kubernetes.io/job-completion-index", -1))


def wanted_node(pod: JsonObject) -> str:
    """The node that a daemon pod asks for."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name":
                return str(field["values"][0])
    return ""


def node_of(pod: JsonObject) -> str:
    return pod["spec"].get("nodeName") or wanted_node(pod)


def is_ready(pod: JsonObject) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def least_permuted(seen: list[JsonObject], alike: list[list[str]]) -> list[JsonObject]:
    """The same with nodes that look alike renamed among each other, the least of all texts."""
    best = seen
    for group in alike:
        named = [
            renamed(best, dict(zip(group, order, strict=True))) for order in permutations(group)
        ]
        best = min(named, key=sort_key)
    return best


def renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {name: renamed(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    return value
