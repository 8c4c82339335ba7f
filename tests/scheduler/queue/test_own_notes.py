"""What the scheduler writes into a waiting pod brings the pod back a few times at most."""

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
from kubescene.scheduler.queue.cluster_events import is_note
from kubescene.scheduler.watcher import NOTES_AT_ONCE
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
    assert bounded(stage) == NOTES_AT_ONCE + 1
    stage.scheduler.begin_step()
    stage.client.patch(_ref("p"), {"metadata": {"labels": {"new": "one"}}})
    assert bounded(stage) == NOTES_AT_ONCE + 1


def _ref(name: str) -> ObjectRef:
    return ObjectRef(POD, name, "default")


def pod(**changes: Any) -> dict[str, Any]:
    metadata = {"name": "p", "resourceVersion": "1", "generation": 1, **changes.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"containers": []}, "status": {}, **changes}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (pod(status={"conditions": [{"type": "PodScheduled"}]}), True),
        (pod(status={"nominatedNodeName": "a"}), True),
        (pod(metadata={"resourceVersion": "2", "generation": 2}), True),
        (pod(metadata={"managedFields": [{}], "finalizers": ["x/y"]}), True),
        (pod(metadata={"annotations": {"a": "b"}}), False),
        (pod(spec={"containers": [], "activeDeadlineSeconds": 5}), False),
    ],
    ids=["condition", "nomination", "version", "bookkeeping", "annotation", "spec"],
)
def test_q_14_what_is_but_a_note(after: dict[str, Any], *, expected: bool) -> None:
    assert is_note(pod(), after) is expected


def test_q_14_claim_statuses_have_an_event_of_their_own() -> None:
    claims = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}
    assert not is_note(pod(), pod(status=claims))
