"""Blueprints: which bodies are alike, and what becomes of those that differ in their claims."""

from typing import Any

from kubescene.api.records.templates import (
    Blueprint,
    ClaimingBlueprint,
    TargetedBlueprint,
    target_of,
    targeted,
)

CONTAINERS: list[Any] = [{"name": "c"}]
LABELS = {"a": "b"}


def body(claim: str, name: str = "p", **more: Any) -> dict[str, Any]:
    volume = {"name": SHARED, "persistentVolumeClaim": {"claimName": claim}}
    spec = {"containers": CONTAINERS, "volumes": [volume, EMPTY], **more}
    return {"kind": "Pod", "metadata": {"name": name, "labels": LABELS}, "spec": spec}


SHARED, EMPTY = "data", {"name": "tmp", "emptyDir": {}}


def test_bodies_that_differ_in_claims_are_alike() -> None:
    blueprint = ClaimingBlueprint(body("one"))
    assert blueprint.covers(blueprint.body)
    assert blueprint.covers(body("two", "q"))
    assert not blueprint.covers(body("two", hostNetwork=True))
    other = body("two")
    other["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = True
    assert not blueprint.covers(other)
    assert not Blueprint(blueprint.body).covers(body("two"))


def test_what_was_stored_is_given_the_claims_of_another_body() -> None:
    blueprint = ClaimingBlueprint(body("one"))
    token = {"name": "token", "projected": {}}
    stored = body("one", restartPolicy="Always")
    stored["spec"]["volumes"].append(token)
    poured = blueprint.poured(stored, body("two"))
    claims = [each.get("persistentVolumeClaim") for each in poured["spec"]["volumes"]]
    assert claims == [{"claimName": "two"}, None, None]
    assert poured["spec"]["volumes"][1:] == [EMPTY, token]
    assert poured["spec"]["restartPolicy"] == "Always"
    first = stored["spec"]["volumes"][0]["persistentVolumeClaim"]
    assert first == {"claimName": "one"}


def asking(node: str, **more: Any) -> dict[str, Any]:
    spec = targeted({"containers": CONTAINERS, "affinity": {"podAffinity": LABELS}, **more}, node)
    return {"kind": "Pod", "metadata": METADATA, "spec": spec}


METADATA: dict[str, Any] = {"generateName": "p-"}


def test_bodies_that_ask_for_different_nodes_are_alike() -> None:
    blueprint = TargetedBlueprint(asking("n1"))
    assert blueprint.covers(blueprint.body)
    assert blueprint.covers(asking("n2"))
    assert not blueprint.covers(asking("n2", hostNetwork=True))
    two = asking("n2")
    required = two["spec"]["affinity"]["nodeAffinity"].popitem()[1]
    required["nodeSelectorTerms"] *= 2
    two["spec"]["affinity"]["nodeAffinity"][REQUIRED] = required
    assert not blueprint.covers(two)
    other = asking("n2")
    other["spec"]["affinity"]["podAffinity"] = {"c": "d"}
    assert not blueprint.covers(other)
    assert not Blueprint(blueprint.body).covers(asking("n2"))


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_what_was_stored_is_given_the_node_of_another_body() -> None:
    stored = asking("n1", restartPolicy="Always")
    poured = TargetedBlueprint(asking("n1")).poured(stored, asking("n2"))
    assert poured["spec"] == asking("n2", restartPolicy="Always")["spec"]
    assert target_of(stored["spec"]) == "n1"
