"""One demand of the pod less: an entry of its selector, a term of an affinity, a constraint."""

from collections.abc import Iterator

from kubescene.api.copies import own_copy
from kubescene.remedies.remedy import TERM_COST, Remedy, RemedyKind, replaced
from kubescene.remedies.trials import Trials
from kubescene.types import JsonObject

TERMS_TRIED = 40
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """In the order of the pod's spec."""
    del reasons
    for tried, (text, pod) in enumerate(without_one(trials.pod)):
        if tried == TERMS_TRIED:
            return
        if node := trials.place(pod):
            edits = (replaced(pod),)
            yield Remedy(RemedyKind.TERM, trials.key, f"drop {text}", TERM_COST, node, edits)


def without_one(pod: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The pod without one of its demands, with the name of that demand."""
    spec = pod["spec"]
    for key, value in (spec.get("nodeSelector") or {}).items():
        copy = own_copy(pod)
        del copy["spec"]["nodeSelector"][key]
        yield f"nodeSelector {key}={value}", copy
    yield from _without_node_term(pod)
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _without_pod_term(pod, kind)
    for at, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            copy = own_copy(pod)
            del copy["spec"]["topologySpreadConstraints"][at]
            yield f"topologySpreadConstraints[{at}] over {constraint['topologyKey']}", copy


def _without_node_term(pod: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """One requirement less; a term that asks for nothing matches no node, so it goes whole."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    listed = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    for at, term in enumerate(listed):
        kinds = [(kind, term.get(kind) or []) for kind in ("matchExpressions", "matchFields")]
        if sum(len(found) for _, found in kinds) == 1:
            if len(listed) == 1:
                copy = own_copy(pod)
                del copy["spec"]["affinity"]["nodeAffinity"][REQUIRED]
                yield f"nodeAffinity {_told(next(f[0] for _, f in kinds if f))}", copy
            continue
        for kind, found in kinds:
            for place, requirement in enumerate(found):
                copy = own_copy(pod)
                required = copy["spec"]["affinity"]["nodeAffinity"][REQUIRED]
                del required["nodeSelectorTerms"][at][kind][place]
                yield f"nodeAffinity {_told(requirement)} of term {at}", copy


def _without_pod_term(pod: JsonObject, kind: str) -> Iterator[tuple[str, JsonObject]]:
    listed = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(REQUIRED) or []
    for at, term in enumerate(listed):
        copy = own_copy(pod)
        del copy["spec"]["affinity"][kind][REQUIRED][at]
        yield f"required {kind} term {at} over {term['topologyKey']}", copy


def _told(requirement: JsonObject) -> str:
    values = requirement.get("values") or []
    listed = f" ({', '.join(values)})" if values else ""
    return f"{requirement['key']} {requirement['operator']}{listed}"
