"""NodeNumber: a pod whose name ends in a digit prefers nodes whose names end in the same one."""

from collections.abc import Mapping
from typing import Any

from kubescene.scheduler import CycleState, Handle, NodeInfo, PodInfo, ScorePlugin


class NodeNumber(ScorePlugin):
    name = "NodeNumber"

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self.reverse = bool(arguments.get("reverse", False))

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        digit = pod.name[-1]
        if not digit.isdigit():
            return 0
        return 10 if (node.name[-1] == digit) is not self.reverse else 0
