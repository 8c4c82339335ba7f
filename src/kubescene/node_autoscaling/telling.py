"""What the autoscaler says of nodes, pods and of itself, as Events."""

from typing import Protocol

from kubescene.node_autoscaling.pods import SeenPod


class Teller(Protocol):
    """Who records Events."""

    def about_status(self, kind: str, reason: str, message: str) -> None:
        """About the ConfigMap with the autoscaler's status; ``kind`` is Normal or Warning."""

    def about_node(self, node: str, kind: str, reason: str, message: str) -> None: ...

    def about_pod(self, pod: SeenPod, kind: str, reason: str, message: str) -> None: ...
