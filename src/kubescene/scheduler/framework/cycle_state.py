"""What a plugin remembers from one extension point to the next, within one attempt at one pod."""

from typing import TYPE_CHECKING, Any, TypeVar, cast

from kubescene.scheduler.framework.status import Status

if TYPE_CHECKING:
    from kubescene.scheduler.framework.relevance import RelevantPlugins

T = TypeVar("T")

_NONE: frozenset[str] = frozenset()


class CycleState:
    """A bag keyed by plugin. Plugins themselves stay free of per-pod state.

    Filters are also asked about suppositions, with a clone of the state that `PreFilterPlugin`
    methods ``add_pod`` and ``remove_pod`` have changed. A value that they change in place must have
    a ``clone()`` method; all others are shared by the clones.
    """

    __slots__ = (
        "_entries",
        "annotations",
        "explains",
        "filter_errors",
        "passing_codes",
        "relevant",
        "skipped_filters",
        "skipped_scores",
        "unrated_scores",
    )

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}
        self.relevant: RelevantPlugins | None = None
        """The plugins that matter to the pod, as it was when PreFilter began."""
        self.skipped_filters: frozenset[str] = _NONE
        self.skipped_scores: frozenset[str] = _NONE
        self.unrated_scores: frozenset[str] = _NONE
        """Score plugins without PreScore that give every node 0."""
        self.annotations: dict[str, str] | None = None
        """What Bind writes into the pod together with its node, if there is anything."""
        self.explains = False
        """Whether somebody wants to know how a failed attempt came about."""
        self.filter_errors = False
        self.passing_codes: list[Status] = []
        """Statuses that an adapted Filter numbered for this attempt only; shared with clones."""

    def write(self, key: str, value: object) -> None:
        self._entries[key] = value

    def read(self, key: str, expected: type[T]) -> T:
        """What was written under ``key``; raises KeyError if nothing was."""
        del expected
        return cast("T", self._entries[key])

    def clone(self) -> "CycleState":
        copy = CycleState()
        copy._entries = {key: _cloned(value) for key, value in self._entries.items()}
        copy.relevant = self.relevant
        copy.skipped_filters = self.skipped_filters
        copy.skipped_scores = self.skipped_scores
        copy.unrated_scores = self.unrated_scores
        copy.explains = self.explains
        copy.filter_errors = self.filter_errors
        copy.passing_codes = self.passing_codes
        return copy

    def find(self, key: str) -> Any:
        return self._entries.get(key)


def _cloned(value: Any) -> Any:
    clone = getattr(value, "clone", None)
    return value if clone is None else clone()
