"""What a snapshot does not hold, and so cannot be known: said before anything else.

A kind that is not there may not exist in the cluster, or nobody asked for it. Where other objects
show that it must exist, that is said; where it would change answers, it is asked.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubescene.snapshots.owners import counts
from kubescene.types import JsonObject

ALL_KINDS = (
    "namespaces,nodes,csinodes,pods,deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,"
    "replicationcontrollers,controllerrevisions,services,serviceaccounts,persistentvolumes,"
    "persistentvolumeclaims,storageclasses,poddisruptionbudgets,priorityclasses,"
    "horizontalpodautoscalers,resourcequotas,limitranges"
)
COMMAND = f"kubectl get {ALL_KINDS} -A -o json > cluster.json"


class Absence(NamedTuple):
    """A kind that is not there, and what follows from that."""

    kind: str
    consequence: str
    is_certain: bool = True
    """Whether other objects show that the cluster has some."""


def absences(objects: Sequence[JsonObject]) -> Iterator[Absence]:
    """The kinds that are missing, those first without which least can be known."""
    found = counts(objects)
    pods = [obj for obj in objects if obj.get("kind") == "Pod"]
    if not found["Node"]:
        yield Absence("Node", "no pod has a place, and none can be found for one")
    if not found["Pod"]:
        yield Absence("Pod", "nothing is placed; controllers make their pods anew", False)
    if pods and not found["ReplicaSet"] and found["Deployment"]:
        yield Absence("ReplicaSet", "pods of Deployments are nobody's, and are made anew")
    if any(map(_has_claims, pods)) and not found["PersistentVolumeClaim"]:
        yield Absence("PersistentVolumeClaim", "pods that are placed anew wait for their claims")
    if found["PersistentVolumeClaim"]:
        if not found["PersistentVolume"]:
            yield Absence("PersistentVolume", "bound claims are lost, and hold pods in no zone")
        if not found["StorageClass"]:
            yield Absence("StorageClass", "no volume is made for a new claim", False)
    if pods and not found["PodDisruptionBudget"]:
        yield Absence("PodDisruptionBudget", "nothing keeps pods from being evicted", False)
    named = {str((pod.get("spec") or {}).get("priorityClassName") or "") for pod in pods}
    if any(each and not each.startswith("system-") for each in named) and (
        not found["PriorityClass"]
    ):
        yield Absence("PriorityClass", "new pods that name one are refused")


def missing(objects: Sequence[JsonObject]) -> list[str]:
    """The same in sentences, and in the end the command that gets everything."""
    told = []
    for each in absences(objects):
        if each.is_certain:
            told.append(f"there is no {each.kind} in it: {each.consequence}")
        else:
            told.append(
                f"there is no {each.kind} in it; if the cluster has some: {each.consequence}"
            )
    return [*told, f"what is missing comes along by: {COMMAND}"] if told else []


def _has_claims(pod: JsonObject) -> bool:
    spec = pod.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    listed = volumes if isinstance(volumes, list) else []
    return any(isinstance(each, dict) and "persistentVolumeClaim" in each for each in listed)
