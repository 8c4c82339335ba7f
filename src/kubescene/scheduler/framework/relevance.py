"""Which plugins have anything to do with pods of one signature.

Most pods have no volumes, no claims, no host ports and no affinity. A plugin that says so
(`ConcernedPlugin`) is left out for them from PreFilter to PostBind, and what is left of a profile
is looked up once per signature, or once per kind if nobody looks at the names of claims. Where an
answer depends on the cluster, the plugin's ``concern_version`` says when it may have changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol, TypeAlias, TypeVar

from kubescene.scheduler.framework.extensions import Extension, PreFilterExtension
from kubescene.scheduler.framework.profile import ExtensionPoint
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.pod_kinds import PodSignature


class _Named(Protocol):
    @property
    def name(self) -> str: ...


E = TypeVar("E", bound=_Named)

_Names: TypeAlias = tuple[frozenset[str], frozenset[str]]
_version_of = attrgetter("concern_version")


class ProfilePlugins(Protocol):
    """What is asked of a profile (`runtime.Framework`) to find out."""

    pre_filter: tuple[PreFilterExtension, ...]
    pre_score: tuple[Extension, ...]
    reserve: tuple[Extension, ...]
    permit: tuple[Extension, ...]
    pre_bind: tuple[Extension, ...]
    post_bind: tuple[Extension, ...]

    @property
    def plugins(self) -> Mapping[str, Any]: ...

    def prepare_by_class(self, extensions: Iterable[PreFilterExtension | Extension]) -> bool: ...

    def answers(self, method: str, point: str) -> list[tuple[str, Callable[..., Any]]]: ...


class RelevantPlugins:
    """The plugins of a profile that matter to pods of one signature.

    ``skipped_filters`` and ``skipped_scores`` count as if PreFilter or PreScore had said ``SKIP``;
    ``unrated`` are Score plugins without PreScore that give every node 0. ``pre_filtered`` and
    ``pre_scored`` remember answers that the class of the pod decides.
    """

    __slots__ = (
        "asked_before_binding",
        "binds_at_once",
        "binds_at_once_alone",
        "permit",
        "plan",
        "post_bind",
        "pre_bind",
        "pre_filter",
        "pre_filtered",
        "pre_filters_by_class",
        "pre_score",
        "pre_scored",
        "pre_scores_by_class",
        "reserve",
        "skipped_filters",
        "skipped_scores",
        "unrated",
    )

    def __init__(
        self, framework: ProfilePlugins, unconcerned: frozenset[str], unrated: frozenset[str]
    ) -> None:
        pre_scores = frozenset(each.name for each in framework.pre_score)
        self.skipped_filters = unconcerned
        self.skipped_scores = unrated & pre_scores
        self.unrated = unrated - pre_scores
        self.pre_filter: tuple[PreFilterExtension, ...] = _others(framework.pre_filter, unconcerned)
        self.pre_score: tuple[Extension, ...] = _others(framework.pre_score, unrated)
        self.pre_filters_by_class = framework.prepare_by_class(self.pre_filter)
        self.pre_scores_by_class = framework.prepare_by_class(self.pre_score)
        self.reserve: tuple[Extension, ...] = _others(framework.reserve, unconcerned)
        self.permit: tuple[Extension, ...] = _others(framework.permit, unconcerned)
        self.pre_bind: tuple[Extension, ...] = _others(framework.pre_bind, unconcerned)
        self.post_bind: tuple[Extension, ...] = _others(framework.post_bind, unconcerned)
        self.binds_at_once = not (self.reserve or self.permit or self.pre_bind)
        """Whether nothing comes between a decision and Bind."""
        self.asked_before_binding = _answering(
            framework, (*self.reserve, *self.permit, *self.pre_bind, *self.post_bind)
        )
        """Who knows once there is a node whether anything is to be done beside Bind; None: it is.
        """
        self.binds_at_once_alone = self.binds_at_once and not self.post_bind
        """Whether nothing comes after Bind either."""
        self.pre_filtered: Any = None
        self.pre_scored: Any = None
        self.plan: Any = None
        """What the fast path has found out about it."""

    def binds_alone(self, state: Any, pod: Any) -> bool:
        """Whether it is known of a decision that nothing is to be done beside Bind."""
        asked = self.asked_before_binding
        return asked is not None and not any(concerns(state, pod) for concerns in asked)

    def alike(self) -> "RelevantPlugins":
        """The same for another signature, of which nothing is remembered yet."""
        twin: RelevantPlugins = object.__new__(RelevantPlugins)
        for name in RelevantPlugins.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.pre_filtered = twin.pre_scored = twin.plan = None
        return twin


class Relevance:
    """What is known of each signature, as long as no plugin changes its mind."""

    def __init__(self, framework: ProfilePlugins) -> None:
        self._framework = framework
        self._filtering = framework.answers("concerns", ExtensionPoint.PRE_FILTER)
        self._scoring = framework.answers("concerns_scoring", ExtensionPoint.PRE_SCORE)
        self._versioned = [
            each for each in framework.plugins.values() if hasattr(each, "concern_version")
        ]
        self._version = 0
        asked = dict.fromkeys(name for name, _ in (*self._filtering, *self._scoring))
        self._by_kind = all(
            getattr(framework.plugins[name], "concerns_by_kind", False) for name in asked
        )
        self._known = Memo(self._find)
        self._models: Memo[_Names, RelevantPlugins] = Memo(self._model)
        """One for each set of plugins: pods with claims are a signature each."""

    def of(self, signature: PodSignature) -> RelevantPlugins:
        version = sum(map(_version_of, self._versioned))
        if version != self._version:
            self._version = version
            self._known.clear()
        return self._known[signature.kind if self._by_kind else signature]

    def _find(self, signature: PodSignature) -> RelevantPlugins:
        unconcerned = _unconcerned(self._filtering, signature)
        return self._models[unconcerned, _unconcerned(self._scoring, signature)].alike()

    def _model(self, names: _Names) -> RelevantPlugins:
        return RelevantPlugins(self._framework, *names)


def _unconcerned(
    asked: Sequence[tuple[str, Callable[[PodSignature], bool]]], signature: PodSignature
) -> frozenset[str]:
    return frozenset(name for name, concerns in asked if not concerns(signature))


def _answering(
    framework: ProfilePlugins, extensions: Iterable[Extension]
) -> tuple[Callable[..., bool], ...] | None:
    """The ``concerns_binding`` of these plugins; None if one of them has none."""
    names = dict.fromkeys(each.name for each in extensions)
    known = dict(framework.answers("concerns_binding", ExtensionPoint.RESERVE))
    return tuple(known[name] for name in names) if known.keys() >= names.keys() else None


def _others(extensions: tuple[E, ...], names: frozenset[str]) -> tuple[E, ...]:
    return tuple(each for each in extensions if each.name not in names)
