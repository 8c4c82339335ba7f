"""What a world looks like in a recording of workload controllers: its objects without chance.

Names, uids, hashes and times that differ from run to run are placeholders, and what an API server
fills in by itself is left out, as the recordings have it.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from kubescene.clock import SECOND
from kubescene.clock.timestamps import parse_time
from kubescene.testing.goldens.case_worlds import CaseWorld
from kubescene.types import JsonObject

DAY = 24 * 3600 * SECOND
MINUTE = 60 * SECOND
KINDS = (
    "Pod",
    "ReplicaSet",
    "Deployment",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "ControllerRevision",
    "Job",
    "CronJob",
    "EndpointSlice",
    "Endpoints",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
    "ResourceQuota",
)
KINDS_OF_FAMILIES = {
    "gc": ("ConfigMap",),
    "namespace": ("ConfigMap", "Secret", "ServiceAccount", "Namespace"),
    "serviceaccount": ("ConfigMap", "Secret", "ServiceAccount"),
}
"""Kinds that only some families show, beside `KINDS`."""

GENERATORS = ("ReplicaSet", "ReplicationController", "Job", "DaemonSet", "Service")
"""Whose objects have names that are made up."""
BORN = ("Pod", "ReplicaSet", "Job", "ControllerRevision", "PersistentVolumeClaim")
UNNUMBERED = ("Pod", "EndpointSlice", "Endpoints", "ControllerRevision")
"""Kinds that are shown without their generation."""
LIKE_OTHERS = ("ReplicaSet", "ReplicationController")
"""Owners that choose among equal pods: which one stays is chance."""
WORKLOADS = (
    "ReplicaSet",
    "Deployment",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
)
ONCE = ("JobAlreadyActive", "SawCompletedJob", "MissingJob")
"""Events of a CronJob that are shown once, as warnings are: how often they repeat is chance."""
COMBINED = "(combined from similar events): "
SORTED_RUNS = ("SuccessfulCreate", "SuccessfulDelete")

_RANDOM_ENDING = "[a-z0-9]{5}(?![a-z0-9])"
_ENDING = re.compile(_RANDOM_ENDING)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DEFAULT_POD: JsonObject = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "serviceAccount": "default",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 30,
}
_SET_BY_ADMISSION = ("hostNetwork", "imagePullSecrets", "priority", "serviceAccount")
"""Not shown: what admission fills in, and what follows from other fields."""
_DEFAULT_CONTAINER: JsonObject = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_ADDED_TOLERATIONS = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


class CaseObjects:
    """The objects of one case, step by step: it remembers which of them are new."""

    def __init__(self, world: CaseWorld, family: str) -> None:
        self._world = world
        self._namespace = world.namespace
        self._kinds = (*KINDS, *KINDS_OF_FAMILIES.get(family, ()))
        self._step = 0
        self._born: dict[str, int] = {}
        self._hashes: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._generators: dict[str, None] = {}
        self._events: dict[str, str] = {}
        self._said: set[tuple[str, ...]] = set()

    def hash_of(self, placeholder: str) -> str:
        """The hash that a placeholder stands for; the placeholder itself if there is none yet."""
        found = (real for real, shown in self._hashes.items() if shown == placeholder)
        return next(found, placeholder)

    def see(self) -> JsonObject:
        """The world at the end of a step, by kind, each a sorted list; and its events."""
        objects = self._learned()
        words = self._words()
        seen: JsonObject = {}
        for kind in self._kinds:
            shown = [words.replaced(self._shown(kind, obj, words)) for obj in objects[kind]]
            if shown:
                seen[kind] = sorted(shown, key=lambda each: (each["name"], sort_key(each)))
        if events := self._new_events(words):
            seen["Event"] = events
        self._step += 1
        return seen

    def answered(self, answer: JsonObject) -> JsonObject:
        """A refusal in the words of the recording."""
        self._learned()
        replaced: JsonObject = self._words().replaced(answer)
        return replaced

    def _words(self) -> "Words":
        now = self._world.now()
        return Words(now, self._namespace, self._hashes, self._uids, self._generators)

    def _learned(self) -> dict[str, list[JsonObject]]:
        """All objects by kind; new ones get their step, new hashes and uids placeholders."""
        objects = {kind: list(self._world.objects(kind)) for kind in (*self._kinds, *GENERATORS)}
        for kind, each_of in objects.items():
            for obj in each_of:
                uid = obj["metadata"]["uid"]
                self._born.setdefault(uid, self._step)
                self._uids[uid] = f"UID({kind})"
                if kind in GENERATORS:
                    self._generators[obj["metadata"]["name"]] = None
        for kind in ("ReplicaSet", "ControllerRevision"):
            for obj in objects[kind]:
                if real := hash_in(obj):
                    self._hashes.setdefault(real, f"H{len(self._hashes) + 1}")
        return objects

    def _shown(self, kind: str, obj: JsonObject, words: "Words") -> JsonObject:
        metadata = obj["metadata"]
        shown: JsonObject = {"name": words.name_of(kind, obj)}
        for name in ("labels", "annotations", "finalizers"):
            if metadata.get(name):
                shown[name] = metadata[name]
        if owners := metadata.get("ownerReferences"):
            shown["owners"] = [owner_shown(each) for each in owners]
        if metadata.get("deletionTimestamp"):
            grace = metadata.get("deletionGracePeriodSeconds", 0)
            shown["deleting"] = True if kind == "Namespace" else grace
        if "generation" in metadata and kind not in UNNUMBERED:
            shown["generation"] = metadata["generation"]
        if kind in BORN and not is_like_others(metadata):
            shown["born"] = self._born[metadata["uid"]]
        shown |= contents(kind, obj)
        return shown

    def _new_events(self, words: "Words") -> JsonObject:
        """By object, what was said or repeated in this step, in order of writing."""
        said: dict[str, list[list[Any]]] = {}
        written = sorted(
            self._world.objects("Event"), key=lambda it: int(it["metadata"]["resourceVersion"])
        )
        for event in written:
            about, metadata = event["involvedObject"], event["metadata"]
            if self._events.get(metadata["uid"]) == metadata["resourceVersion"]:
                continue
            self._events[metadata["uid"]] = metadata["resourceVersion"]
            if about["kind"] == "Service":
                continue
            subject = words.replaced(f"{about['kind']}/{words.name(about['name'])}")
            entry = words.replaced(
                [event["type"], event["reason"], event["message"], event.get("count", 1)]
            )
            if entry[0] == "Warning" or entry[1] in ONCE:
                entry[2:] = [entry[2].removeprefix(COMBINED), None]
                if (subject, *entry[:3]) in self._said:
                    continue
                self._said.add((subject, *entry[:3]))
            said.setdefault(subject, []).append(entry)
        return {
            subject: sorted(each, key=sort_key)
            if subject.startswith("CronJob/")
            else with_sorted_runs(each)
            for subject, each in sorted(said.items())
        }


class Words:
    """Placeholders for what differs from run to run."""

    def __init__(
        self,
        now: int,
        namespace: str,
        hashes: dict[str, str],
        uids: dict[str, str],
        generators: Iterable[str],
    ) -> None:
        self._now = now
        known = {**hashes, **uids, namespace: "NS"}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = known
        self._fixed = re.compile("|".join(re.escape(each) for each in longest_first))
        names = sorted(generators, key=len, reverse=True)
        prefixes = "|".join(re.escape(each) for each in names)
        self._made_up = re.compile(rf"\b((?:{prefixes or '(?!)'})(?:-\d+)?-){_RANDOM_ENDING}")

    def name_of(self, kind: str, obj: JsonObject) -> str:
        metadata = obj["metadata"]
        prefix, name = metadata.get("generateName", ""), str(metadata["name"])
        if prefix and kind in ("Pod", "EndpointSlice") and not is_numbered(metadata):
            made_up = name.startswith(prefix) and _ENDING.fullmatch(name.removeprefix(prefix))
            return f"{prefix}?" if made_up else name
        return name

    def name(self, name: str) -> str:
        return self._made_up.sub(r"\1?", name)

    def replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._replaced(value)
        if isinstance(value, dict):
            return {self._replaced(key): self.replaced(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.replaced(each) for each in value]
        return value

    def _replaced(self, text: str) -> str:
        text = self._made_up.sub(r"\1?", text)
        text = self._fixed.sub(lambda found: self._known[found[0]], text)
        text = _INSTANT.sub(lambda found: self._instant(found[0]), text)
        return re.sub(r"(?<=-)\d{8}(?!\d)", lambda found: self._minute(found[0]), text)

    def _instant(self, text: str) -> str:
        return "TIME" if abs(self._now - parse_time(text)) < DAY else text

    def _minute(self, text: str) -> str:
        return "MINUTE" if abs(self._now - int(text) * MINUTE) < DAY else text


def hash_in(obj: JsonObject) -> str:
    labels = obj["metadata"].get("labels") or {}
    names = ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash")
    return next((str(labels[name]) for name in names if name in labels), "")


def is_numbered(metadata: JsonObject) -> bool:
    """Whether it is a pod of a StatefulSet: its name is fixed, whatever its ``generateName``."""
    return any(each["kind"] == "StatefulSet" for each in metadata.get("ownerReferences") or ())


def is_like_others(metadata: JsonObject) -> bool:
    owners = metadata.get("ownerReferences") or ()
    return any(each["kind"] in LIKE_OTHERS for each in owners)


def owner_shown(reference: JsonObject) -> JsonObject:
    shown = {"kind": reference["kind"], "name": reference["name"]}
    flags = ("controller", "blockOwnerDeletion")
    return shown | {name: True for name in flags if reference.get(name)}


def contents(kind: str, obj: JsonObject) -> JsonObject:
    """Spec, status and what else a kind has."""
    if kind == "Pod":
        return {"spec": pod_spec(obj["spec"]), "status": pod_status(obj["status"], obj["spec"])}
    if kind in WORKLOADS:
        return workload(kind, obj)
    match kind:
        case "ControllerRevision":
            data = obj.get("data") or {}
            template = data.get("spec", {}).get("template", {})
            return {"revision": obj["revision"], "images": images(template)}
        case "EndpointSlice":
            endpoints = sorted(
                (endpoint(each) for each in obj.get("endpoints") or ()), key=sort_key
            )
            return {
                "addressType": obj["addressType"],
                "endpoints": endpoints,
                "ports": obj.get("ports"),
            }
        case "Endpoints":
            return {"subsets": sorted(map(subset, obj.get("subsets") or ()), key=sort_key)}
        case "ConfigMap":
            return config_map(obj)
        case "Secret":
            return {"type": obj.get("type"), "keys": sorted(obj.get("data") or ())}
        case "ServiceAccount":
            return {}
        case "Namespace":
            return {"spec": obj["spec"], "status": with_conditions(obj["status"])}
        case "PersistentVolumeClaim":
            spec = {name: obj["spec"][name] for name in ("accessModes", "resources")}
            return {"spec": spec, "status": with_conditions(obj.get("status") or {})}
    spec = {name: each for name, each in obj["spec"].items() if name != "selector"}
    return {"spec": spec, "status": with_conditions(obj.get("status") or {})}


def config_map(obj: JsonObject) -> JsonObject:
    shown: JsonObject = {"keys": sorted(obj.get("data") or ())}
    if obj["metadata"]["name"] != "kube-root-ca.crt":
        shown["data"] = obj.get("data")
    return shown


def workload(kind: str, obj: JsonObject) -> JsonObject:
    hidden = ("selector", "template", "jobTemplate", "volumeClaimTemplates")
    spec = {name: each for name, each in obj["spec"].items() if name not in hidden}
    shown: JsonObject = {"spec": spec}
    if kind != "CronJob":
        template = obj["spec"]["template"]
        labels = (template.get("metadata") or {}).get("labels")
        shown["template"] = {"labels": labels, "images": images(template)}
    status = with_conditions(obj.get("status") or {})
    if kind == "CronJob":
        status["active"] = sorted(each["name"] for each in status.get("active") or ())
    if "uncountedTerminatedPods" in status:
        counted = status["uncountedTerminatedPods"]
        status["uncountedTerminatedPods"] = {name: len(each) for name, each in counted.items()}
    return {**shown, "status": status}


def images(template: JsonObject) -> list[str]:
    return [each["image"] for each in template.get("spec", {}).get("containers", ())]


def with_conditions(status: JsonObject) -> JsonObject:
    """A status without the times of its conditions."""
    shown = dict(status)
    if conditions := status.get("conditions"):
        shown["conditions"] = [condition(each) for each in conditions]
    for each in shown.get("conditions", ()):
        if each.get("type") == "Progressing" and each.get("reason") == "NewReplicaSetCreated":
            name = each["message"].removeprefix("Created new replica set ").strip('"')
            each["reason"] = "ReplicaSetUpdated"
            each["message"] = f'ReplicaSet "{name}" is progressing.'
    return shown


def condition(given: JsonObject) -> JsonObject:
    names = ("type", "status", "observedGeneration", "reason", "message")
    return {name: given[name] for name in names if given.get(name) not in (None, "")}


def pod_spec(spec: JsonObject) -> JsonObject:
    shown = {
        name: each
        for name, each in spec.items()
        if each != _DEFAULT_POD.get(name, ...) and name not in _SET_BY_ADMISSION
    }
    for name in ("containers", "initContainers"):
        if name in spec:
            shown[name] = [container(each) for each in spec[name]]
    tolerations = [each for each in spec.get("tolerations", ()) if each not in _ADDED_TOLERATIONS]
    tolerations.sort(key=sort_key)
    volumes = [each for each in spec.get("volumes", ()) if "projected" not in each]
    for name, left in (("tolerations", tolerations), ("volumes", volumes)):
        shown.pop(name, None)
        if left:
            shown[name] = left
    return shown


def container(given: JsonObject) -> JsonObject:
    hidden = ("imagePullPolicy", "volumeMounts")
    return {
        name: each
        for name, each in given.items()
        if name not in hidden and each != _DEFAULT_CONTAINER.get(name, ...)
    }


def pod_status(status: JsonObject, spec: JsonObject) -> JsonObject:
    shown: JsonObject = {"phase": status.get("phase", "Pending")}
    for name in ("reason", "message", "podIP"):
        if status.get(name):
            shown[name] = status[name]
    if any(each.get("resources") for each in spec["containers"]):
        shown["qosClass"] = status.get("qosClass")
    hidden = ("Initialized", "ContainersReady")
    conditions = [
        condition({**each, "observedGeneration": None})
        for each in status.get("conditions") or ()
        if each["type"] not in hidden
    ]
    if conditions:
        shown["conditions"] = sorted(conditions, key=lambda each: each["type"])
    if containers := status.get("containerStatuses"):
        shown["containers"] = [container_status(each) for each in containers]
    return shown


def container_status(given: JsonObject) -> JsonObject:
    shown = {"restarts": given.get("restartCount", 0), "ready": given.get("ready", False)}
    state = given.get("state") or {}
    if "terminated" in state:
        shown["exitCode"] = state["terminated"]["exitCode"]
    if "waiting" in state:
        shown["waiting"] = state["waiting"]["reason"]
    return shown


def endpoint(given: JsonObject) -> JsonObject:
    shown = dict(given)
    if target := given.get("targetRef"):
        shown["targetRef"] = f"{target['kind']}/{target['name']}"
    return shown


def subset(given: JsonObject) -> JsonObject:
    shown = dict(given)
    for name in ("addresses", "notReadyAddresses"):
        if name in given:
            shown[name] = [endpoint(each) for each in given[name]]
    return shown


def with_sorted_runs(entries: Iterable[list[Any]]) -> list[list[Any]]:
    """Creations in one batch come in any order: runs of them are sorted."""
    result: list[list[Any]] = []
    run: list[list[Any]] = []
    for entry in entries:
        if run and entry[1] != run[0][1]:
            result += sorted(run, key=sort_key)
            run = []
        if entry[1] in SORTED_RUNS:
            run.append(entry)
        else:
            result.append(entry)
    return result + sorted(run, key=sort_key)


def sort_key(value: Any) -> str:
    """A text that orders values as the recordings do."""
    return json.dumps(value, sort_keys=True)
