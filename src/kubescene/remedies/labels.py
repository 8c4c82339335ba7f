"""One label on one node: where a selector or a node affinity is all that stands in the way.

A trial without these demands shows which nodes would do; a label is proposed for those of them that
lack just one.

The other way round, a pod has one demand less: an entry of its selector, a term of an affinity, a
constraint.
"""

from collections.abc import Iterator, Mapping

from kubescene.api.copies import own_copy
from kubescene.api.selectors.node_selectors import node_selector_term
from kubescene.api.selectors.requirements import int64
from kubescene.remedies.remedy import LABEL_COST, TERM_COST, Edit, Remedy, RemedyKind, replaced
from kubescene.remedies.trials import Trials
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.types import JsonObject, ReadOnlyObject

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


LABELS_TRIED = 20


def labels(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """Every label once, on the first node where it helps."""
    del reasons
    spec, tried = trials.pod["spec"], set[tuple[str, str]]()
    if not demands(spec):
        return
    for node in passing_otherwise(trials):
        label = missing(spec, node)
        if label is None or label in tried or len(tried) == LABELS_TRIED:
            continue
        tried.add(label)
        if remedy := labelled(trials, node, label):
            yield remedy


def labelled(trials: Trials, node: NodeInfo, label: tuple[str, str]) -> Remedy | None:
    """The remedy, if the pod goes somewhere with this label on this node."""
    obj = own_copy(node.record.decode()) if node.record is not None else {}
    obj["metadata"].setdefault("labels", {})[label[0]] = label[1]
    with trials.node(obj):
        found = trials.place()
    text = f"label node {node.name} with {label[0]}={label[1]}"
    edit = Edit("label", "Node", node.name, object={"metadata": {"labels": dict([label])}})
    kind = RemedyKind.LABEL
    return Remedy(kind, trials.key, text, LABEL_COST, found, (edit,)) if found else None


def demands(spec: ReadOnlyObject) -> bool:
    return bool(spec.get("nodeSelector")) or bool(required_terms(spec))


def required_terms(spec: ReadOnlyObject) -> list[JsonObject]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    found: list[JsonObject] = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    return found


def passing_otherwise(trials: Trials) -> list[NodeInfo]:
    """The nodes that would do if the pod demanded nothing of their labels."""
    pod = own_copy(trials.pod)
    pod["spec"].pop("nodeSelector", None)
    ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).pop(REQUIRED, None)
    explanation = trials.decide(pod).explanation
    nodes = trials.nodes
    return [] if explanation is None else [nodes[int(row)] for row in explanation.feasible]


def missing(spec: ReadOnlyObject, node: NodeInfo) -> tuple[str, str] | None:
    """The one label that a node lacks; None if it lacks none, or more than a label."""
    held, selector = node.labels, spec.get("nodeSelector") or {}
    lacking = [(key, value) for key, value in selector.items() if held.get(key) != value]
    if len(lacking) > 1:
        return None
    wanted = {**held, **dict(lacking)}
    listed = required_terms(spec)
    if not listed or any(matches(term, wanted, node.name) for term in listed):
        return lacking[0] if lacking else None
    if lacking:
        return None
    for term in listed:
        if (label := lacked(term, held, node.name)) is not None:
            return label
    return None


def lacked(term: JsonObject, held: Mapping[str, str], name: str) -> tuple[str, str] | None:
    """The label that would make a node match a term, if a single one does."""
    for requirement in term.get("matchExpressions") or ():
        value = satisfying(requirement)
        if value is not None and matches(term, {**held, requirement["key"]: value}, name):
            return requirement["key"], value
    return None


def satisfying(requirement: JsonObject) -> str | None:
    """A value of the label with which a requirement is met."""
    values = requirement.get("values") or []
    operator = requirement["operator"]
    if operator == "In" and values:
        return str(values[0])
    if operator == "Exists":
        return "true"
    bound = int64(values[0]) if values else None
    if bound is not None and operator in ("Gt", "Lt"):
        return str(bound + 1 if operator == "Gt" else bound - 1)
    return None


def matches(term: JsonObject, held: Mapping[str, str], name: str) -> bool:
    return node_selector_term(term).matches(held, name)
