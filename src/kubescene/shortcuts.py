"""What is only faster, by name: every shortcut can be switched off alone, and all of them at once.

The plain way is the specification; a shortcut gives the same bytes sooner. Whoever has one asks the
value that a world is made with (`ClusterOptions.shortcuts`) once, when it is put together, and
works the plain way if its name is off. One field per shortcut, with what it spares; design note
0052 has what each of them saves.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

from kubescene.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcuts:
    """Which shortcuts a world takes; without arguments all of them."""

    templates: bool = True
    """Creates of one body: decoded, admitted and validated once."""
    status_patches: bool = True
    """The same patch of the status of alike pods or nodes: merged and validated once."""
    status_counts: bool = True
    """Counts that a controller keeps in a status: only what is new in them is looked at."""
    reworded_statuses: bool = True
    """A status told with other uids and at other times: merged and validated once."""
    small_patches: bool = True
    """A ReplicaSet of another size, a pod without a finalizer: only what is new is validated."""
    pod_deletions: bool = True
    """Deletions of pods that need not be decoded for it."""
    lane: bool = True
    """Like pods are decided about, bound and reported Running in one function (`kubescene.lane`).
    """

    kept_rows: bool = True
    """What plugins said of a node for a class of pods is kept until the node changes, so that the
    usual decision reads; failures repeat while nothing has changed (`kubescene.scheduler.fast`).
    """

    bunches: bool = True
    """Instances of a counted create are made many at a time (`kubescene.lane.lane`)."""

    alike_operations: bool = True
    """Operations that create pods or nodes which differ in nothing but their names are read once,
    and the registry is told so (`kubescene.scenario.reading.alike`)."""

    kubelet_reports: bool = True
    """What the kubelet stand-in reports of a pod or a node is made once for those that are alike.
    """

    pod_readings: bool = True
    """The scheduler reads equal specs and statuses of pods once (`scheduler.state.pods`)."""

    @classmethod
    def none(cls) -> Self:
        """The plain way: everything is done as the rules say it, step by step."""
        return cls().without(*cls.names())

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """All shortcuts, as they can be switched off."""
        return tuple(each.name for each in fields(cls))

    def one_by_one(self) -> Self:
        """These without those that let several pods pass at once: every loop is a moment."""
        return self.without("lane", "bunches")

    def without(self, *names: str) -> Self:
        """These without some; a name that is none of them is a `ConfigurationError`."""
        for name in names:
            if name not in self.names():
                known = ", ".join(self.names())
                raise ConfigurationError(f"there is no shortcut {name!r}; there are: {known}")
        return replace(self, **dict.fromkeys(names, False))


ALL = Shortcuts()
PLAIN = Shortcuts.none()
