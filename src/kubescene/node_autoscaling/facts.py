"""What the cluster autoscaler tells of its decisions: for the timeline, and for those who read it.

What has a default may be missing in a timeline of an earlier version. Members of what stands in
lists are declared, and so written, in the order of their names.
"""

from collections.abc import Mapping

from msgspec import Struct, field


class GroupGrown(Struct, frozen=True, kw_only=True):
    """A group that grows."""

    before: int = field(name="from")
    group: str
    after: int = field(name="to")


class NodeRemoved(Struct, frozen=True, kw_only=True):
    """A node whose deletion begins; its utilization is in thousandths."""

    evicted: tuple[str, ...] = ()
    """Pods."""
    group: str
    node: str
    size: int = 0
    """Of the group."""
    utilization: int = 0


class GroupOption(Struct, frozen=True, kw_only=True, rename="camel"):
    """What could have been ordered; waste is in thousandths."""

    chosen: bool = False
    group: str
    nodes: int
    per_hour: str | None = None
    pods: int
    similar: tuple[str, ...] = ()
    waste_cpu: int = field(default=0, name="wasteCPU")
    waste_memory: int = 0


class KeptOptions(Struct, frozen=True):
    """The groups that an expander kept of the options."""

    expander: str
    kept: tuple[str, ...]


class NodesDecided(Struct, frozen=True):
    """A loop that ordered machines, gave some back, or failed to; why, and why the others stay."""

    ordered: tuple[GroupGrown, ...] = ()
    removed: tuple[NodeRemoved, ...] = ()
    options: tuple[GroupOption, ...] = ()
    expanders: tuple[KeptOptions, ...] = ()
    """Those that were asked, one after the other."""
    triggered: tuple[str, ...] = ()
    """The pods for which groups grow."""
    skipped: Mapping[str, str] = {}
    """Groups that were not asked, and why."""
    unhelped: Mapping[str, Mapping[str, str]] = {}
    """Pods that no group helps: by group, why."""
    staying: Mapping[str, str] = {}
    """Nodes that stay, and why."""
    deleted: Mapping[str, str] = {}
    """What became of deletions since the last loop."""
    idle: int = 0
    """So many loops before this one decided nothing."""
    error: str = ""

    @property
    def why_ordered(self) -> str:
        """In words."""
        best = next((each for each in self.options if each.chosen), None)
        if best is None:
            return "below its least size"
        others = len(self.options) - 1
        by = ", ".join(each.expander for each in self.expanders)
        chosen = f", chosen of {others + 1} options by {by}" if others and by else ""
        return f"{best.nodes} of {best.group} hold {best.pods} of the pods that wait{chosen}"
