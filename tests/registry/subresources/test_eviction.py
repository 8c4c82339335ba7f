"""Evicting pods: when a disruption budget is asked, what it says, what is written."""

import pytest

from kubescene.actors import Actor, Role
from kubescene.api.gates import role_without_scenario
from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions
from kubescene.client import DirectClient, ObjectRef
from kubescene.clock import SECOND, VirtualClock
from kubescene.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
)
from kubescene.registry import Registry
from kubescene.testing import make_pod
from kubescene.types import JsonObject

WEB = ObjectRef(POD, "web", "default")
VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


def run_pod(
    client: DirectClient, name: str = "web", *, phase: str = "Running", ready: str = "True"
) -> None:
    """A pod on a node, so that its deletion takes time and it can be looked at."""
    client.create(make_pod(name).label(app="web").on("n1").build())
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"phase": phase, "conditions": [condition]}
    client.patch(ObjectRef(POD, name, "default"), {"status": status}, subresource="status")


def guard(client: DirectClient, name: str = "guard", *, policy: str = "", **status: object) -> None:
    """A budget that was counted: one disruption is allowed unless ``status`` says otherwise."""
    spec: JsonObject = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    body: JsonObject = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    client.create(body)
    counted = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
        **status,
    }
    client.patch(budget_ref(name), {"status": counted}, subresource="status")


def budget_ref(name: str = "guard") -> ObjectRef:
    return ObjectRef.to(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
        }
    )


def budget_status(client: DirectClient) -> JsonObject:
    status: JsonObject = client.get(budget_ref())["status"]
    return status


def is_deleting(client: DirectClient, name: str = "web") -> bool:
    pod = client.find(ObjectRef(POD, name, "default"))
    return pod is None or "deletionTimestamp" in pod["metadata"]


def refusal(client: DirectClient, options: DeleteOptions | None = None) -> ApiError:
    with pytest.raises(ApiError) as caught:
        client.evict(WEB, options=options or DeleteOptions())
    return caught.value


# -- without asking ------------------------------------------------------------------------------


def test_a_pod_without_budget_goes_and_says_why(client: DirectClient) -> None:
    run_pod(client)
    client.evict(WEB)
    pod = client.get(WEB)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": pod["status"]["conditions"][-1]["lastTransitionTime"],
    }


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_what_does_not_run_is_not_guarded(client: DirectClient, phase: str) -> None:
    run_pod(client, phase=phase)
    guard(client, disruptionsAllowed=0)
    client.evict(WEB)
    assert is_deleting(client)
    assert "disruptedPods" not in budget_status(client)


def test_what_is_going_already_is_not_guarded(client: DirectClient) -> None:
    run_pod(client)
    client.delete(WEB)
    guard(client, disruptionsAllowed=0)
    client.evict(WEB)


def test_budgets_of_other_pods_have_no_say(client: DirectClient) -> None:
    run_pod(client)
    guard(client, disruptionsAllowed=0)
    selector = {"matchLabels": {"app": "other"}}
    client.patch(budget_ref(), {"spec": {"selector": selector}})
    client.evict(WEB)
    assert is_deleting(client)


def test_a_pod_that_is_not_there(client: DirectClient) -> None:
    with pytest.raises(NotFoundError, match='pods "web" not found'):
        client.evict(WEB)


# -- taking from a budget ------------------------------------------------------------------------


def test_an_eviction_uses_up_a_disruption(client: DirectClient, registry: Registry) -> None:
    assert isinstance(registry.clock, VirtualClock)
    run_pod(client)
    guard(client, disruptionsAllowed=2)
    client.evict(WEB)
    status = budget_status(client)
    assert status["disruptionsAllowed"] == 1
    assert list(status["disruptedPods"]) == ["web"]
    assert "conditions" not in status


def test_the_last_disruption_turns_the_condition(client: DirectClient) -> None:
    run_pod(client)
    guard(client)
    client.evict(WEB)
    (condition,) = budget_status(client)["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")
    assert (condition["reason"], condition["message"]) == ("InsufficientPods", "")
    assert condition["observedGeneration"] == 1


def test_a_used_up_budget_refuses(client: DirectClient) -> None:
    run_pod(client)
    guard(client, disruptionsAllowed=0, currentHealthy=1)
    error = refusal(client)
    assert isinstance(error, TooManyRequestsError)
    status = error.to_status()
    assert (status["code"], status["reason"], status["message"]) == (
        429,
        "TooManyRequests",
        VIOLATION,
    )
    assert status["details"] == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget guard needs 1 healthy pods and has 1 currently",
            }
        ]
    }
    assert not is_deleting(client)
    assert "disruptedPods" not in budget_status(client)


def verdict(reason: str, message: str) -> list[JsonObject]:
    return [
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            {"conditions": verdict("SyncFailed", "no idea")},
            "does not allow evicting pods currently because it failed sync: no idea",
        ),
        (
            {"conditions": verdict("Busy", "wait")},
            "does not allow evicting pods currently (Busy): wait",
        ),
        ({}, "does not allow evicting pods currently"),
        (
            {"conditions": verdict("Busy", "wait"), "currentHealthy": 0},
            "needs 1 healthy pods and has 0 currently",
        ),
    ],
    ids=["failed", "condition", "plain", "unhealthy"],
)
def test_a_refusal_says_what_is_known(
    client: DirectClient, status: JsonObject, message: str
) -> None:
    run_pod(client)
    guard(client, disruptionsAllowed=0, **status)
    assert refusal(client).causes[0].message == f"The disruption budget guard {message}"


def test_a_budget_that_was_changed_has_to_be_counted_first(client: DirectClient) -> None:
    run_pod(client)
    guard(client)
    client.patch(budget_ref(), {"spec": {"minAvailable": 0}})
    error = refusal(client)
    assert (error.code, error.retry_after_s) == (429, 10)
    assert error.causes[0].message == (
        "The disruption budget guard is still being processed by the server."
    )


def test_too_many_pending_evictions(client: DirectClient) -> None:
    run_pod(client)
    pending = {f"p{number}": "2026-01-01T00:00:00Z" for number in range(2001)}
    guard(client, disruptedPods=pending)
    error = refusal(client)
    assert isinstance(error, ForbiddenError)
    assert error.message == (
        'poddisruptionbudget.policy "guard" is forbidden: DisruptedPods map too big - too many '
        "evictions not confirmed by PDB controller"
    )
    client.patch(budget_ref(), {"status": {"disruptedPods": {"p0": None}}}, subresource="status")
    client.evict(WEB)


def test_two_budgets_cannot_be_weighed(client: DirectClient) -> None:
    run_pod(client)
    guard(client)
    guard(client, "second")
    error = refusal(client)
    assert (error.code, error.message) == (
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.",
    )
    assert not is_deleting(client)


# -- pods that are not ready ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "healthy", "goes"),
    [
        ("", 1, True),
        ("", 0, False),
        ("IfHealthyBudget", 1, True),
        ("IfHealthyBudget", 0, False),
        ("AlwaysAllow", 0, True),
    ],
)
def test_an_unready_pod_goes_if_the_others_are_enough(
    client: DirectClient, policy: str, healthy: int, goes: bool
) -> None:
    run_pod(client, ready="False")
    guard(client, policy=policy, disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=1)
    if goes:
        client.evict(WEB)
    else:
        refusal(client)
    assert is_deleting(client) is goes
    assert "disruptedPods" not in budget_status(client)


def test_a_spare_pod_goes_whatever_revision_was_asked_for(client: DirectClient) -> None:
    """Upstream puts the revision that it looked at in its place."""
    run_pod(client, ready="False")
    guard(client, policy="AlwaysAllow", disruptionsAllowed=0)
    client.evict(WEB, options=DeleteOptions(resource_version="1"))
    assert is_deleting(client)


def test_a_budget_that_wants_nobody_healthy_is_asked_all_the_same(client: DirectClient) -> None:
    run_pod(client, ready="False")
    guard(client, disruptionsAllowed=0, currentHealthy=0, desiredHealthy=0)
    refusal(client)


# -- options -------------------------------------------------------------------------------------


def test_a_dry_run_asks_and_leaves_everything(client: DirectClient) -> None:
    run_pod(client)
    guard(client)
    revision = client.get(WEB)["metadata"]["resourceVersion"]
    client.evict(WEB, options=DeleteOptions(dry_run=True))
    assert client.get(WEB)["metadata"]["resourceVersion"] == revision
    assert budget_status(client)["disruptionsAllowed"] == 1
    client.patch(budget_ref(), {"status": {"disruptionsAllowed": 0}}, subresource="status")
    assert refusal(client, DeleteOptions(dry_run=True)).code == 429


def test_grace_is_passed_on(client: DirectClient) -> None:
    run_pod(client)
    client.evict(WEB, options=DeleteOptions(grace_period_s=5))
    assert client.get(WEB)["metadata"]["deletionGracePeriodSeconds"] == 5
    client.evict(WEB, options=DeleteOptions(grace_period_s=0))
    assert client.find(WEB) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DeleteOptions(uid="x"), r"the UID in the precondition \(x\) does not match the UID in"),
        (
            DeleteOptions(resource_version="1"),
            r"the ResourceVersion in the precondition \(1\) does",
        ),
    ],
    ids=["uid", "revision"],
)
def test_preconditions_name_exactly_one_pod(
    client: DirectClient, options: DeleteOptions, message: str
) -> None:
    run_pod(client)
    with pytest.raises(ConflictError, match=f'cannot be fulfilled on Pod "web": {message}'):
        client.evict(WEB, options=options)
    assert not is_deleting(client)


def test_a_revision_that_fits_survives_the_note_on_the_pod(client: DirectClient) -> None:
    run_pod(client)
    metadata = client.get(WEB)["metadata"]
    options = DeleteOptions(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    client.evict(WEB, options=options)
    assert is_deleting(client)


class ClosedGate:
    """Lets nobody write."""

    def role_of(self, actor: Actor) -> Role:
        return role_without_scenario(actor)

    def before_write(
        self, actor: Actor, resource_type: object, subresource: str, name: str
    ) -> None:
        raise ForbiddenError("closed")


def test_who_may_not_write_takes_nothing_from_the_budget(
    client: DirectClient, registry: Registry
) -> None:
    run_pod(client)
    guard(client)
    registry.gate = ClosedGate()
    assert refusal(client).message == "closed"
    assert budget_status(client)["disruptionsAllowed"] == 1


def test_time_of_an_eviction_is_the_worlds(client: DirectClient, registry: Registry) -> None:
    assert isinstance(registry.clock, VirtualClock)
    run_pod(client)
    guard(client)
    registry.clock.wait_until(registry.clock.now() + 90 * SECOND)
    client.evict(WEB)
    assert budget_status(client)["disruptedPods"] == {"web": "2026-01-01T00:01:30Z"}
