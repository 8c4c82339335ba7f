"""What kube-scheduler says about pods, in Events of events.k8s.io: rules E-1, E-3, E-5.

Of gated pods it says nothing: the API server does (E-8).
"""

from kubescene.api.kinds import POD
from kubescene.recording import NORMAL, WARNING, Notice, regarding_record
from kubescene.scheduler.state.pods import PodInfo

MAX_BYTES = 1024
_CUT = b" ..."


def scheduled(pod: PodInfo, node: str) -> Notice:
    message = f"Successfully assigned {pod.key} to {node}"
    return _notice(pod, NORMAL, "Scheduled", "Binding", message)


def failed(pod: PodInfo, message: str) -> Notice:
    return _notice(pod, WARNING, "FailedScheduling", "Scheduling", shortened(message))


def skipped(pod: PodInfo) -> Notice:
    return failed(pod, f"skip schedule deleting pod: {pod.key}")


def preempted(victim: PodInfo, preemptor: PodInfo, node: str, where: str) -> Notice:
    """[E-5] Said of the victim; ``where`` tells of one that had not been bound yet."""
    return Notice(
        regarding_record(victim.record, POD),
        NORMAL,
        "Preempted",
        f"Preempted by pod {preemptor.uid} on node {node}{where}",
        preemptor.scheduler_name,
        action="Preempting",
        related=regarding_record(preemptor.record, POD),
    )


def shortened(message: str) -> str:
    """A note holds 1024 bytes; what is cut off is marked."""
    data = message.encode()
    if len(data) <= MAX_BYTES:
        return message
    return (data[: MAX_BYTES - len(_CUT)] + _CUT).decode(errors="ignore")


def _notice(pod: PodInfo, kind: str, reason: str, action: str, message: str) -> Notice:
    about = regarding_record(pod.record, POD)
    return Notice(about, kind, reason, message, pod.scheduler_name, action=action)
