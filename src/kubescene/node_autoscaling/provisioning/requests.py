"""One ProvisioningRequest as the autoscaler sees it: class, conditions, and the pods it is for."""

from collections.abc import Callable, Sequence
from functools import cached_property

from kubescene.api.defaulting.pods import default_pod
from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.clock.timestamps import format_time, parse_time
from kubescene.errors import KubesceneError
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provisioning.kinds import BEST_EFFORT_ATOMIC, GROUP
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.types import JsonObject

CONSUMES = f"{GROUP}/consume-provisioning-request"
_CLASS_OF = f"{GROUP}/provisioning-class-name"
_CONSUMED = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
PROCESSOR = "processorInstance"
NO_RETRY = "noRetry"
ACCEPTED, PROVISIONED, FAILED = "Accepted", "Provisioned", "Failed"
BOOKING_EXPIRED = "BookingExpired"
PODS = GroupResource("", "pods")


class MissingTemplatesError(KubesceneError):
    """PodTemplates that a request names do not exist; the text stands in its condition."""


class SeenRequest:
    """A request at one revision."""

    def __init__(self, obj: JsonObject) -> None:
        self.object = obj

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    @property
    def namespace(self) -> str:
        return str(self.object["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def created(self) -> int:
        return parse_time(self.object["metadata"]["creationTimestamp"])

    @property
    def class_name(self) -> str:
        return str(self.object["spec"]["provisioningClassName"])

    def parameter(self, name: str) -> str:
        return str((self.object["spec"].get("parameters") or {}).get(name, ""))

    # -- conditions ------------------------------------------------------------------------

    @cached_property
    def conditions(self) -> Sequence[JsonObject]:
        return (self.object.get("status") or {}).get("conditions") or ()

    def says(self, condition: str) -> bool | None:
        """Whether a condition is true; None if it was never written."""
        found = self._condition(condition)
        return None if found is None else bool(found["status"] == "True")

    def since(self, condition: str) -> int:
        """When a condition was written last; only for one that was."""
        found = self._condition(condition)
        assert found is not None
        return parse_time(found["lastTransitionTime"])

    def _condition(self, condition: str) -> JsonObject | None:
        return next((each for each in self.conditions if each["type"] == condition), None)

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return bool(self.says(FAILED) or self.says(BOOKING_EXPIRED))

    @property
    def is_booked(self) -> bool:
        return not self.is_over and bool(self.says(PROVISIONED))

    def stating(
        self, now: int, condition: str, status: bool, reason: str, message: str
    ) -> "SeenRequest":
        """The same with a condition that was written now, be it the same as before."""
        written: JsonObject = {
            "type": condition,
            "status": str(status),
            "lastTransitionTime": format_time(now),
            "reason": reason,
            "message": message,
        }
        if self.class_name != BEST_EFFORT_ATOMIC or condition != PROVISIONED:
            # Those are applied and not updated, and then nobody says which generation it was.
            written["observedGeneration"] = self.object["metadata"].get("generation", 1)
        others = [written if each["type"] == condition else each for each in self.conditions]
        if written not in others:
            others.append(written)
        status_of = {**(self.object.get("status") or {}), "conditions": others}
        return SeenRequest({**self.object, "status": status_of})

    # -- pods ------------------------------------------------------------------------------

    def pods(self, template: Callable[[str], JsonObject | None]) -> list[SeenPod]:
        """The pods that it is for; nobody has created them.

        Raises `MissingTemplatesError` if not all PodTemplates exist.
        """
        sets = self.object["spec"]["podSets"]
        names = [str(each["podTemplateRef"]["name"]) for each in sets]
        templates = [template(each) for each in names]
        missing = [name for name, it in zip(names, templates, strict=True) if it is None]
        if missing:
            raise MissingTemplatesError(
                f"missing pod templates, {len(names)} pod templates were referenced, "
                f"{len(missing)} templates were missing: {','.join(missing)}"
            )
        classes = PodClasses()
        return [
            self._pod(it, f"{self.name}-{at}-{number}", classes)
            for at, (each, it) in enumerate(zip(sets, templates, strict=True))
            if it is not None
            for number in range(each["count"])
        ]

    def _pod(self, template: JsonObject, name: str, classes: PodClasses) -> SeenPod:
        like = template.get("template") or {}
        metadata = like.get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        owner = {"apiVersion": self.object["apiVersion"], "kind": self.object["kind"]}
        owner |= {"name": self.name, "uid": self.uid, "controller": True}
        pod = {
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "uid": f"{self.namespace}/{name}",
                "creationTimestamp": self.object["metadata"]["creationTimestamp"],
                "labels": dict(metadata.get("labels") or {}),
                "annotations": {**annotations, CONSUMES: self.name, _CLASS_OF: self.class_name},
                "ownerReferences": [owner],
            },
            "spec": like.get("spec") or {},
        }
        pod = default_pod(pod)
        return SeenPod(PodInfo.read(make_record(PODS, pod, 1), pod, classes), pod)


def consumed_by(pod: SeenPod) -> str | None:
    """The request whose room a pod is to take, if it names one."""
    found = pod.annotations.get(CONSUMES)
    if found is None:
        found = pod.annotations.get(_CONSUMED)
    return None if found is None else str(found)


def is_for_request(pod: SeenPod) -> bool:
    """Whether it stands for a request: others that name one were left out before."""
    return CONSUMES in pod.annotations
