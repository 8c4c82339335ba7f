"""Which of several VerticalPodAutoscalers has the say over a pod.

A VPA controls the pods of its target whose labels the target's selector matches. Where several do,
the oldest wins, and of equally old ones the one whose name comes first. Updater and admission ask
only those whose mode lets them act, so a VPA in mode Off stands in nobody's way.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kubescene.api.selectors.label_selectors import LabelSelector
from kubescene.autoscalers.vertical.evictions import controller_of
from kubescene.autoscalers.vertical.objects import (
    ADMITTING_MODES,
    UPDATING_MODES,
    VerticalPodAutoscaler,
)
from kubescene.clock import parse_time
from kubescene.types import JsonObject

Controller = tuple[str, str]
"""Kind and name."""


class Candidate(NamedTuple):
    """A VPA and the selector of its target."""

    vpa: VerticalPodAutoscaler
    selector: LabelSelector


def controlling(
    pod: JsonObject,
    candidates: Iterable[Candidate],
    topmost: Mapping[Controller, Controller],
) -> VerticalPodAutoscaler | None:
    """The VPA of a pod, whatever its mode; None: no VPA, or the pod has no controller.

    ``topmost`` says for a controller which one is above all, as a Deployment is above its
    ReplicaSet. A controller that it does not name is the topmost itself.
    """
    owner = controller_of(pod)
    if owner == ("", ""):
        return None
    target = topmost.get(owner, owner)
    matching = (each.vpa for each in candidates if _controls(each, pod, target))
    return min(matching, key=_strength, default=None)


def for_updater(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that the updater looks at."""
    return [each for each in candidates if each.vpa.update_mode in UPDATING_MODES]


def for_admission(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that change pods when they are created."""
    return [each for each in candidates if each.vpa.update_mode in ADMITTING_MODES]


def controlled_pods(
    live: Iterable[JsonObject],
    candidates: Sequence[Candidate],
    topmost: Mapping[Controller, Controller],
) -> list[tuple[VerticalPodAutoscaler, list[JsonObject]]]:
    """The pods that each VPA has the updater act on, the strongest VPA first."""
    ranked = sorted(for_updater(candidates), key=lambda each: _strength(each.vpa))
    shares: list[tuple[VerticalPodAutoscaler, list[JsonObject]]] = [(c.vpa, []) for c in ranked]
    for pod in live:
        vpa = controlling(pod, ranked, topmost)
        for known, own in shares:
            if known is vpa:
                own.append(pod)
    return shares


def _controls(candidate: Candidate, pod: JsonObject, target: Controller) -> bool:
    vpa, wanted = candidate.vpa, candidate.vpa.spec.target_ref
    metadata = pod["metadata"]
    return (
        wanted is not None
        and (wanted.kind, wanted.name) == target
        and metadata.get("namespace", "default") == vpa.namespace
        and candidate.selector.matches(metadata.get("labels") or {})
    )


def _strength(vpa: VerticalPodAutoscaler) -> tuple[int, str]:
    """The less the stronger; an object without a time of creation is older than all others."""
    created = vpa.metadata.creation_timestamp
    return (parse_time(created) if created else -(2**63), vpa.name)
