"""DynamicResources through a scheduler that runs: what pods and their owners get to see."""

from kubescene.testing.builders import make_pod
from scheduler.staging import Stage


def test_m_4_a_pod_without_claims_hears_that_there_are_none_to_deallocate() -> None:
    stage = Stage()
    stage.nodes("a", cpu="1")
    stage.create(make_pod("p").cpu("2"))
    (attempt,) = stage.work()
    text = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    assert attempt.message.startswith(text)


def test_m_6_if_another_prefilter_ended_the_cycle_there_is_no_state() -> None:
    stage = Stage()
    stage.nodes("a")
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    for name in ("p", "q"):
        pod = make_pod(name).build()
        pod["spec"]["affinity"] = {"nodeAffinity": affinity}
        stage.create(pod)
    text = "0/1 nodes are available: pod affinity terms conflict. not found"
    assert [each.message for each in stage.work()] == [text, text]
