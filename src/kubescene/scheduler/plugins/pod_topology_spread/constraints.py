"""Topology spread constraints, as pods write them and as defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from kubescene.api.selectors import LabelSelector, Operator, Requirement, from_label_selector
from kubescene.scheduler.domains.affinity_terms import CarriedTerm
from kubescene.scheduler.domains.groups import NO_SHARE, ONE, LabelGroup, LabelPair, Share, a_pair
from kubescene.types import ReadOnlyObject

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HONOR, IGNORE = "Honor", "Ignore"

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS: Sequence[ReadOnlyObject] = (
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": SOFT, "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": SOFT, "maxSkew": 5},
)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    max_skew: int
    topology_key: str
    selector: LabelSelector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.selector.matches(labels)

    def selecting(self, selector: LabelSelector) -> "SpreadConstraint":
        """The same for pods that another selector finds."""
        return replace(self, selector=selector)


def constraints_of(
    written: Sequence[ReadOnlyObject], labels: Mapping[str, str], action: str
) -> tuple[SpreadConstraint, ...]:
    """Those that demand ``action``, for a pod with these labels; raises `SelectorError`."""
    return tuple(
        _constraint(each, labels) for each in written if each.get("whenUnsatisfiable") == action
    )


def _constraint(written: ReadOnlyObject, labels: Mapping[str, str]) -> SpreadConstraint:
    """What is left out has its default (PTS-2)."""
    minimum = written.get("minDomains")
    return SpreadConstraint(
        written.get("maxSkew") or 0,
        written.get("topologyKey") or "",
        _selector(written, labels),
        1 if minimum is None else minimum,
        (written.get("nodeAffinityPolicy") or HONOR) == HONOR,
        (written.get("nodeTaintsPolicy") or IGNORE) == HONOR,
    )


def _selector(written: ReadOnlyObject, labels: Mapping[str, str]) -> LabelSelector:
    selector = from_label_selector(written.get("labelSelector"))
    keys = dict.fromkeys(key for key in written.get("matchLabelKeys") or () if key in labels)
    return selector.adding(*(Requirement(key, Operator.IN, (labels[key],)) for key in keys))


class SpreadPods(Struct, frozen=True):
    """Pods that are spread: of one namespace, selected, and not being deleted (PTS-6).

    A selector without requirements finds none of them.
    """

    namespace: str
    selector: LabelSelector
    reads_labels = True
    held_against = None

    @property
    def pair(self) -> LabelPair | None:
        return a_pair(self.selector)

    def of_labels(self, group: LabelGroup) -> Share:
        if group.terminating or group.namespace != self.namespace or self.selector.is_everything:
            return NO_SHARE
        return ONE if self.selector.matches(group.labels) else NO_SHARE

    def of_term(self, carried: CarriedTerm) -> Share:
        return NO_SHARE
