"""Terms of pod affinity and anti-affinity, compiled once per signature of pods."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct

from kubescene.api.selectors import LabelSelector, SelectorError, aggregate, from_label_selector
from kubescene.scheduler.state.pod_kinds import PodSignature

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

NO_LABELS: Mapping[str, str] = {}


class AffinityTerm(Struct, frozen=True):
    """Which pods a term speaks of, and within which topology.

    Without ``namespaces`` and ``namespaceSelector`` it speaks of the namespace of the pod that
    carries it (IPA-1). ``matchLabelKeys`` were merged into the selector by the API server (IPA-3).
    """

    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    selector: LabelSelector
    topology_key: str

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str] = NO_LABELS,
    ) -> bool:
        """Whether it speaks of a pod with these labels, in a namespace with those."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


class TermKind(Enum):
    """What a pod on a node says with a term about pods that come later."""

    AFFINITY = "required affinity"
    ANTI_AFFINITY = "required anti-affinity"
    PREFERENCE = "preferred affinity or, with a negative weight, anti-affinity"


class CarriedTerm(NamedTuple):
    """A term that pods on nodes carry. The weight is that of a preference."""

    kind: TermKind
    weight: int
    term: AffinityTerm


class PodAffinity(Struct, frozen=True):
    """All terms of a pod. Weights of preferred anti-affinity are negative.

    A list with a term that cannot be parsed counts as empty; ``error`` tells of it (IPA-7).
    """

    required: tuple[AffinityTerm, ...]
    required_anti: tuple[AffinityTerm, ...]
    preferred: tuple[tuple[int, AffinityTerm], ...]
    has_preferred: bool
    carried: tuple[CarriedTerm, ...]
    error: str = ""

    @property
    def requires_something(self) -> bool:
        return bool(self.required or self.required_anti)

    @property
    def is_unclear(self) -> bool:
        """Whether a required term cannot be parsed."""
        return "requiredA" in self.error


def pod_affinity(signature: PodSignature) -> PodAffinity:
    """The terms of pods of one signature."""
    return signature.compiled(_compile)


def names_others(signature: PodSignature) -> bool:
    """Whether pods speak of other pods at all, if only with an empty list."""
    affinity = signature.pod_class.spec.get("affinity") or {}
    return any(affinity.get(each) is not None for each in ("podAffinity", "podAntiAffinity"))


def repels_others(signature: PodSignature) -> bool:
    """Whether pods have required anti-affinity."""
    anti = (signature.pod_class.spec.get("affinity") or {}).get("podAntiAffinity") or {}
    return bool(anti.get(REQUIRED))


def read_terms(
    namespace: str, written: Sequence[Mapping[str, Any]] | None
) -> tuple[AffinityTerm, ...]:
    """The terms of a list in the spec of a pod; raises `SelectorError`."""
    return tuple(_term(namespace, each) for each in written or ())


_NO_AFFINITY = PodAffinity((), (), (), has_preferred=False, carried=())


def _compile(signature: PodSignature) -> PodAffinity:
    affinity = signature.pod_class.spec.get("affinity") or {}
    pods, anti = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not pods and not anti:
        return _NO_AFFINITY
    faults: list[str] = []
    reading = _Reading(signature.namespace, faults)
    required = reading.terms("requiredAffinityTerms", pods.get(REQUIRED))
    required_anti = reading.terms("requiredAntiAffinityTerms", anti.get(REQUIRED))
    attracted = reading.weighted("preferredAffinityTerms", pods.get(PREFERRED), 1)
    repelled = reading.weighted("preferredAntiAffinityTerms", anti.get(PREFERRED), -1)
    preferred = attracted + repelled
    return PodAffinity(
        required,
        required_anti,
        preferred,
        has_preferred=bool(pods.get(PREFERRED) or anti.get(PREFERRED)),
        carried=(
            *(CarriedTerm(TermKind.AFFINITY, 0, term) for term in required),
            *(CarriedTerm(TermKind.ANTI_AFFINITY, 0, term) for term in required_anti),
            *(CarriedTerm(TermKind.PREFERENCE, weight, term) for weight, term in preferred),
        ),
        error=aggregate(faults) if faults else "",
    )


class _Reading:
    """Reads the lists of terms of one pod and notes what cannot be parsed."""

    def __init__(self, namespace: str, faults: list[str]) -> None:
        self._namespace = namespace
        self._faults = faults

    def terms(
        self, name: str, written: Sequence[Mapping[str, Any]] | None
    ) -> tuple[AffinityTerm, ...]:
        try:
            return read_terms(self._namespace, written)
        except SelectorError as error:
            self._faults.append(f"{name}: {error}")
            return ()

    def weighted(
        self, name: str, written: Sequence[Mapping[str, Any]] | None, sign: int
    ) -> tuple[tuple[int, AffinityTerm], ...]:
        terms = self.terms(name, [each.get("podAffinityTerm") or {} for each in written or ()])
        weights = [sign * (each.get("weight") or 0) for each in written or ()]
        return tuple(zip(weights, terms, strict=bool(terms)))


def _term(namespace: str, written: Mapping[str, Any]) -> AffinityTerm:
    named, by_selector = written.get("namespaces"), written.get("namespaceSelector")
    own = not named and by_selector is None
    return AffinityTerm(
        frozenset([namespace] if own else named or ()),
        from_label_selector(by_selector),
        from_label_selector(written.get("labelSelector")),
        written.get("topologyKey") or "",
    )
