"""Where in an object a problem is: ``spec.containers[0].resources.limits[cpu]``.

A `Path` only links to its parent. Text is made when an error asks for it, so walking a valid
object builds no strings.
"""


class Path:
    """One step into an object, linked to the step before it. Immutable by convention."""

    __slots__ = ("_parent", "_step")

    def __init__(self, step: str, parent: "Path | None" = None) -> None:
        self._parent = parent
        self._step = step

    def child(self, name: str) -> "Path":
        """The field ``name`` below this one."""
        return Path("." + name, self)

    def index(self, position: int) -> "Path":
        """The item at ``position`` of this list."""
        return Path(f"[{position}]", self)

    def key(self, key: str) -> "Path":
        """The value under ``key`` of this map."""
        return Path(f"[{key}]", self)

    def __str__(self) -> str:
        steps = []
        at: Path | None = self
        while at is not None:
            steps.append(at._step)
            at = at._parent
        return "".join(reversed(steps))


METADATA = Path("metadata")
SPEC = Path("spec")
STATUS = Path("status")
