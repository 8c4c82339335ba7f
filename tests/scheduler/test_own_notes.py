"""What the scheduler writes into a waiting pod does not bring the pod back."""

from typing import Any

import pytest

from kubescene.client.interfaces import ObjectRef
from kubescene.scheduler import (
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PodInfo,
    Status,
)
from kubescene.scheduler.cluster_events import POD_UPDATED, pending_pod_events
from kubescene.testing.builders import make_pod
from scheduler.staging import POD, Stage


class EverNew(FilterPlugin):
    """Gives another reason at every attempt, and does not say what it waits for."""

    name = "EverNew"

    def __init__(self, handle: Handle) -> None:
        self.asked = 0

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked += 1
        return Status.unschedulable(f"not for the {self.asked}. time")


def bounded(stage: Stage, most: int = 20) -> int:
    """How often the scheduler tries until it rests; ``most`` if it does not."""
    before = len(stage.attempts.made)
    for _ in range(most):
        if not stage.scheduler.run_once().more:
            break
    return len(stage.attempts.made) - before


def test_a_reason_that_changes_at_every_attempt_is_not_tried_for_ever() -> None:
    stage = Stage(EverNew)
    stage.nodes("a")
    stage.create(make_pod("p"))
    assert bounded(stage) == 1
    assert "not for the 1. time" in stage.pod("p")["status"]["conditions"][0]["message"]


def test_an_update_of_the_spec_or_of_labels_does_bring_it_back() -> None:
    stage = Stage(EverNew)
    stage.nodes("a")
    stage.create(make_pod("p"))
    bounded(stage)
    stage.client.patch(_ref("p"), {"metadata": {"labels": {"new": "one"}}})
    assert bounded(stage) == 1
    stage.client.patch(_ref("p"), {"metadata": {"annotations": {"new": "one"}}})
    assert bounded(stage) == 1


def _ref(name: str) -> ObjectRef:
    return ObjectRef(POD, name, "default")


def pod(**changes: Any) -> dict[str, Any]:
    metadata = {"name": "p", "resourceVersion": "1", "generation": 1, **changes.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"containers": []}, "status": {}, **changes}


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (pod(status={"conditions": [{"type": "PodScheduled"}]}), 0),
        (pod(status={"nominatedNodeName": "a"}), 0),
        (pod(metadata={"resourceVersion": "2", "generation": 2}), 0),
        (pod(metadata={"managedFields": [{}], "finalizers": ["x/y"]}), 0),
        (pod(metadata={"annotations": {"a": "b"}}), 1),
        (pod(spec={"containers": [], "activeDeadlineSeconds": 5}), 1),
    ],
    ids=["condition", "nomination", "version", "bookkeeping", "annotation", "spec"],
)
def test_q_14_only_what_may_matter_is_told(after: dict[str, Any], told: int) -> None:
    assert pending_pod_events(pod(), after) == [POD_UPDATED] * told


def test_q_14_claim_statuses_have_an_event_of_their_own() -> None:
    claims = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}
    (event,) = pending_pod_events(pod(), pod(status=claims))
    assert event != POD_UPDATED
