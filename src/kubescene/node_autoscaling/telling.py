"""What the autoscaler says of nodes, pods and of itself, as Events."""

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from kubescene.node_autoscaling.pods import SeenPod

if TYPE_CHECKING:
    from kubescene.node_autoscaling.scale_up import ScaleUp, Unhelped


class Teller(Protocol):
    """Who records Events."""

    def about_status(self, kind: str, reason: str, message: str) -> None:
        """About the ConfigMap with the autoscaler's status; ``kind`` is Normal or Warning."""

    def about_node(self, node: str, kind: str, reason: str, message: str) -> None: ...

    def about_pod(self, pod: SeenPod, kind: str, reason: str, message: str) -> None: ...


def tell_pods(teller: Teller, done: "ScaleUp") -> None:
    """Tell waiting pods what was ordered for them, or why nothing was."""
    if done.result not in ("ScaleUpSuccessful", "ScaleUpError"):
        for each in done.remaining:
            message = f"pod didn't trigger scale-up: {_reasons(done, each)}"
            teller.about_pod(each.pod, "Normal", "NotTriggerScaleUp", message)
    if done.resizes:
        resizes = " ".join(map(str, done.resizes))
        for pod in done.triggered:
            message = f"pod triggered scale-up: [{resizes}]"
            teller.about_pod(pod, "Normal", "TriggeredScaleUp", message)


def _reasons(done: "ScaleUp", unhelped: "Unhelped") -> str:
    if done.result == "ScaleUpLimitedByMaxNodesTotal":
        return "max total nodes in cluster reached"
    counts = Counter(
        reason
        for groups in (unhelped.rejected, unhelped.skipped)
        for reasons in groups.values()
        for reason in reasons
    )
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
