"""Karpenter: the claims it makes for pods, and the nodes it gives up, one decision per question.

A case is a cluster at one moment; ``ask`` says what was asked of it, one after the other:
``provision``, then methods of disruption. Nodes to which pods were sent by the first are nominated
when the others are asked.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from kubescene.api.quantity import parse
from kubescene.clock.timestamps import parse_time
from kubescene.karpenter.budgets import EvictionBudgets
from kubescene.karpenter.disruption import METHODS, ClusterView, Disruption
from kubescene.karpenter.flags import read_karpenter_flags
from kubescene.karpenter.instance_types import InstanceCatalogue, read_catalogue
from kubescene.karpenter.nodepools import NodePool
from kubescene.karpenter.nodes import KarpenterNode
from kubescene.karpenter.packing import OpenClaim, Packed
from kubescene.karpenter.pods import PodSeen, daemon_pod
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject

UNIT = "decisions"
PROVISION = "provision"
_HOST = "hostname-placeholder-"


class KarpenterAspect(StrEnum):
    """What can differ."""

    REPLAYED = "replayed"
    CLAIMS = "claims and their pods"
    TYPES = "instance types"
    REQUIREMENTS = "requirements"
    REQUESTS = "requests"
    LABELS = "labels"
    EXISTING = "pods on existing nodes"
    ERRORS = "pods without a place, and why"
    CANDIDATES = "candidates"
    ALLOWED = "allowed disruptions"
    COMMANDS = "commands"
    SAVINGS = "savings"
    DECISIONS = "equal decisions"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case has an answer for each question."""
    asked = case.get("ask")
    if not isinstance(asked, list) or set(asked) != set(result):
        raise GoldenFormatError(f'{where}: {case["id"]} needs a list "ask" and an answer to each')
    if unknown := sorted({*asked} - {PROVISION, *METHODS}):
        raise GoldenFormatError(f"{where}: {case['id']} asks for {unknown[0]!r}")


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    try:
        _replay(golden, comparison, tally)
    except Exception as error:
        # Whatever ours raises is a difference.
        comparison.failed(KarpenterAspect.REPLAYED, f"{type(error).__name__}: {error}", "")


def _replay(golden: Golden, comparison: GoldenComparison, tally: GoldenTally) -> None:
    nominated: frozenset[str] = frozenset()
    for question in golden.case["ask"]:
        comparison.at = question
        tally.attempts += 1
        before = comparison.differences
        view, theirs = view_of(golden.case, nominated), golden.result[question]
        if question == PROVISION:
            packed = view.provision()
            _compare_packed(_packed(packed, view.catalogue), theirs, comparison)
            if packed is not None:
                nominated = frozenset(each.node.name for each in packed.existing if each.pods)
        else:
            _compare_disruption(_disrupted(view, question), theirs, comparison)
        tally.compared[KarpenterAspect.DECISIONS] += 1
        tally.equal[KarpenterAspect.DECISIONS] += comparison.differences == before


def view_of(case: JsonObject, nominated: frozenset[str] = frozenset()) -> ClusterView:
    """The cluster of a case."""
    pods = [PodSeen(each) for each in sorted(case["pods"], key=_key)]
    on_node: dict[str, list[PodSeen]] = {}
    for pod in pods:
        on_node.setdefault(pod.node, []).append(pod)
    by_provider = {each["spec"]["providerID"]: each for each in case["nodes"]}
    nodes = list[KarpenterNode]()
    claimed = set[str]()
    for claim in case["nodeClaims"]:
        node = by_provider.get(claim["status"]["providerID"])
        name = "" if node is None else node["metadata"]["name"]
        claimed.add(name)
        nodes.append(KarpenterNode(node, claim, on_node.get(name, ()) if name else ()))
    for node in case["nodes"]:
        name = node["metadata"]["name"]
        if name not in claimed:
            nodes.append(KarpenterNode(node, None, on_node.get(name, ())))
    return ClusterView(
        nodes,
        pods,
        [NodePool(each) for each in case["nodePools"]],
        read_catalogue({"instanceTypes": case["instanceTypes"]}, case["id"]),
        EvictionBudgets(case["budgets"]),
        [daemon_pod(each) for each in case["daemonSets"]],
        {
            each["metadata"]["name"]: each["metadata"].get("labels") or {}
            for each in case["namespaces"]
        },
        parse_time(case["now"]),
        read_karpenter_flags(case["karpenter"], case["id"]),
        nominated,
    )


def _key(obj: JsonObject) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


# -- ours ------------------------------------------------------------------------------------------


def _packed(packed: Packed | None, catalogue: InstanceCatalogue) -> JsonObject:
    if packed is None:
        return {"claims": [], "existing": {}, "errors": {}}
    return {
        "claims": [_claim(each, catalogue) for each in packed.claims],
        "existing": {
            each.node.name: [pod.key for pod in each.pods] for each in packed.existing if each.pods
        },
        "errors": {key: str(fault) for key, fault in packed.faults.items()},
    }


def _claim(claim: OpenClaim, catalogue: InstanceCatalogue) -> JsonObject:
    obj = claim.object(catalogue)
    types = catalogue.by_price(claim.types, claim.requirements)
    return {
        "pool": claim.pool.name,
        "pods": [each.key for each in claim.pods],
        "types": [each.name for each in types],
        "requirements": obj["spec"]["requirements"],
        "requests": obj["spec"]["resources"]["requests"],
        "labels": obj["metadata"]["labels"],
    }


def _disrupted(view: ClusterView, method: str) -> JsonObject:
    decided = Disruption(view).decide(method)
    return {
        "candidates": [
            {"node": each.name, "price": each.price, "cost": each.cost}
            for each in decided.candidates
        ],
        "allowed": decided.allowed,
        "commands": [
            {
                "decision": each.decision,
                "candidates": [it.name for it in each.candidates],
                "replacements": [_claim(it, view.catalogue) for it in each.replacements],
                "savings": each.savings(view.catalogue),
            }
            for each in decided.commands
        ],
    }


# -- comparing -------------------------------------------------------------------------------------


def _compare_packed(ours: JsonObject, theirs: JsonObject, to: GoldenComparison) -> None:
    _compare_claims(ours["claims"], theirs["claims"], to)
    to.equal(KarpenterAspect.EXISTING, ours["existing"], theirs["existing"])
    errors = [
        {key: _anonymous(text) for key, text in sorted(each["errors"].items())}
        for each in (ours, theirs)
    ]
    to.equal(KarpenterAspect.ERRORS, *errors)


def _compare_claims(ours: list[JsonObject], theirs: list[JsonObject], to: GoldenComparison) -> None:
    shapes = [[(each["pool"], each["pods"]) for each in side] for side in (ours, theirs)]
    if not to.equal(KarpenterAspect.CLAIMS, *shapes):
        return
    for mine, real in zip(ours, theirs, strict=True):
        to.equal(KarpenterAspect.TYPES, mine["types"], real["types"])
        to.equal(
            KarpenterAspect.REQUIREMENTS,
            _listed(mine["requirements"]),
            _listed(real["requirements"]),
        )
        to.equal(KarpenterAspect.REQUESTS, _nanos(mine["requests"]), _nanos(real["requests"]))
        to.equal(KarpenterAspect.LABELS, mine["labels"], real["labels"])


def _compare_disruption(ours: JsonObject, theirs: JsonObject, to: GoldenComparison) -> None:
    to.equal(KarpenterAspect.CANDIDATES, ours["candidates"], theirs["candidates"])
    to.equal(KarpenterAspect.ALLOWED, ours["allowed"], theirs["allowed"])
    shapes = [
        [(each["decision"], each["candidates"]) for each in side["commands"]]
        for side in (ours, theirs)
    ]
    if not to.equal(KarpenterAspect.COMMANDS, *shapes):
        return
    for mine, real in zip(ours["commands"], theirs["commands"], strict=True):
        _compare_claims(mine["replacements"], real["replacements"], to)
        to.equal(KarpenterAspect.SAVINGS, mine["savings"], real["savings"])


def _listed(requirements: list[JsonObject]) -> list[JsonObject]:
    return sorted(requirements, key=lambda each: (each["key"], each["operator"]))


def _nanos(amounts: Mapping[str, Any]) -> dict[str, int]:
    return {name: parse(amount).nanos for name, amount in sorted(amounts.items())}


def _anonymous(text: str) -> str:
    """Without the numbers of nodes that do not exist yet: upstream counts them per process."""
    head, *rest = text.split(_HOST)
    return head + "".join(f"{_HOST}N{each.lstrip('0123456789')}" for each in rest)
