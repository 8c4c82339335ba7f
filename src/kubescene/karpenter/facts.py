"""What Karpenter tells of its decisions: for the timeline, and for those who read it."""

from kubescene.node_autoscaling.facts import NodesDecided


class KarpenterDecided(NodesDecided, frozen=True):
    """Claims that were made, or a command that gives nodes up; why, and why the others stay.

    Groups are NodePools, options what became a claim; there are no expanders.
    """

    why: str = ""

    @property
    def why_ordered(self) -> str:
        """In words."""
        return self.why
