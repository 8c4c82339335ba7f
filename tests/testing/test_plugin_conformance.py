"""The conformance suite: good plugins pass, and each promise that is broken is found."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from headroom import Headroom
from node_number import NodeNumber

from kubescene.api.records.changes import Change
from kubescene.errors import ConfigurationError
from kubescene.scheduler import (
    SKIP,
    SUCCESS,
    Action,
    ClusterEvent,
    Codes,
    CycleState,
    EventRegistration,
    EventResource,
    Handle,
    Hint,
    NodeInfo,
    NodeTable,
    PodInfo,
    PodSignature,
    Reads,
    Rows,
    Scores,
    Status,
)
from kubescene.testing import make_pod
from kubescene.testing.plugins import CHECKS, ConformanceError, PluginConformance, conformance
from kubescene.testing.plugins import fault_of as found_by
from kubescene.testing.plugins.worlds import PluginWorld, Subject

NO = Status.unschedulable("no")


class TestNodeNumber(PluginConformance):
    plugin = NodeNumber


class TestHeadroom(PluginConformance):
    plugin = Headroom
    arguments: ClassVar = {"percent": 40}


class Counting:
    """A good plugin with everything: one pod of an app per zone, counted in PreFilter."""

    name = "Counting"

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self._nodes = handle.nodes

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        if not self.concerns(pod.signature):
            return SKIP, None
        counts = Counts()
        for info in nodes.infos:
            for each in info.pods:
                counts.add(pod, each, info, 1)
        state.write(self.name, counts)
        return SUCCESS, None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        state.read(self.name, Counts).add(pod, added, node, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status:
        state.read(self.name, Counts).add(pod, removed, node, -1)
        return SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        counts = state.read(self.name, Counts)
        return NO if counts.by_zone.get(zone(node), 0) > 1 else SUCCESS

    def concerns(self, signature: PodSignature) -> bool:
        return signature.labels.get("app") == "web"

    def events_to_register(self) -> list[EventRegistration]:
        event = ClusterEvent(EventResource.POD, Action.ALL)
        return [EventRegistration(event, self.hint, by_signature=True)]

    def hint(self, pod: PodInfo, change: Change) -> Hint:
        mine = change.record.labels.get("app") == pod.labels.get("app")
        return Hint.QUEUE if mine else Hint.SKIP


class Counts:
    def __init__(self) -> None:
        self.by_zone: dict[str, int] = {}

    def add(self, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        if other.labels.get("app") == pod.labels.get("app"):
            self.by_zone[zone(node)] = self.by_zone.get(zone(node), 0) + sign

    def clone(self) -> "Counts":
        copy = Counts()
        copy.by_zone = dict(self.by_zone)
        return copy


def zone(node: NodeInfo) -> str:
    return node.labels.get("topology.kubernetes.io/zone", "")


class TestCounting(PluginConformance):
    plugin = Counting


# -- plugins that break one promise each ------------------------------------------------------


class Base:
    name = "Broken"


class AnswersTrue(Base):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Any:
        return True


class InventsACode(Base):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Any:
        return Status(0)  # type: ignore[arg-type]  # what a careless author writes


class Raises(Base):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        raise KeyError("mine")


class ScoresTooHigh(Base):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 101


class TooFewCodes(Base):
    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return np.zeros(len(rows) - 1, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return NO


class CodeOneIsFine(TooFewCodes):
    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return np.ones(len(rows), dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return SUCCESS


class FormsDisagree(Headroom):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class ScoresDisagree(Headroom):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return super().score(state, pod, node) // 2


class IgnoresRows(Base):
    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.arange(len(rows), dtype=np.int64)


class ChangesANode(Base):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        node.requested["cpu"] += 1
        return SUCCESS


class ChangesRows(Base):
    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        rows.sort()
        rows += 0
        rows[:] = rows[::-1].copy()
        return np.zeros(len(rows), dtype=np.int64)


class ChangesScores(Base):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 50

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        scores += 1
        return scores


class Writes(Base):
    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        metadata = {"generateName": "x-", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        self._handle.client.create(body)
        return SUCCESS


class Moody(Base):
    def __init__(self) -> None:
        self._asked = 0

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self._asked += 1
        return self._asked % 11


class LooksElsewhere(Base):
    """Says that it reads a node, and looks at the whole cluster."""

    reads = Reads.NODE

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return np.full(len(rows), int(nodes.requested("pods").sum()) % 2, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return NO


class LooksAtNames(Base):
    """Says that it reads a node, and tells pods of one class apart."""

    reads = Reads.NODE

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return int(pod.name[-1]) % 10


class StampStays(Base):
    reads = Reads.DOMAIN

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return np.full(len(rows), int(nodes.requested("pods").sum()) % 2, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return NO

    def stamp(self, state: CycleState, pod: PodInfo) -> int:
        return 1


class PreparesForOne(Base):
    prepares_by_class = True

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Any:
        return (SKIP if pod.labels.get("other") else SUCCESS), None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class PreparesInState(PreparesForOne):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Any:
        state.write("mine", 1)
        return SUCCESS, None


class SaysItIsNotConcerned(Base):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return NO

    def concerns(self, signature: PodSignature) -> bool:
        return False


class DoesNotSkip(SaysItIsNotConcerned):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Any:
        return SUCCESS, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class RatesUnconcerned(Base):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1

    def concerns_scoring(self, signature: PodSignature) -> bool:
        return False


class ChangesItsMind(Base):
    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def concerns(self, signature: PodSignature) -> bool:
        return int(self._handle.nodes.requested("pods").sum()) % 2 == 0


class LooksAtClaims(Base):
    concerns_by_kind = True

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def concerns(self, signature: PodSignature) -> bool:
        claims = [each.get("persistentVolumeClaim") or {} for each in signature.volumes]
        return any(each.get("claimName") == "mine" for each in claims)


class HasAClosure(Base):
    """Looks at the world that it was made in, also when that has been copied."""

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self._count: Callable[[], int] = lambda: int(handle.nodes.requested("pods").sum())

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self._count() % 100


class GrowsStale(Base):
    """Remembers what it saw first."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self._seen.setdefault(node.name, len(node.pods))


class HintLooksAtNames(Base):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def events_to_register(self) -> list[EventRegistration]:
        event = ClusterEvent(EventResource.POD, Action.ALL)
        return [EventRegistration(event, self.hint, by_signature=True)]

    def hint(self, pod: PodInfo, change: Change) -> Any:
        return Hint.QUEUE if int(pod.name[-1]) % 2 else Hint.SKIP


class HintIsABool(HintLooksAtNames):
    def hint(self, pod: PodInfo, change: Change) -> Any:
        return True


class NamesTooFew(HintLooksAtNames):
    def events_to_register(self) -> list[EventRegistration]:
        event = ClusterEvent(EventResource.POD, Action.ALL)
        return [EventRegistration(event, self.hint, pods=self.none)]

    def hint(self, pod: PodInfo, change: Change) -> Hint:
        return Hint.QUEUE

    def none(self, change: Change) -> list[str]:
        return []


class ForgetsToAdd(Counting):
    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class ForgetsToRemove(Counting):
    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status:
        return SUCCESS


@pytest.mark.parametrize(
    ("plugin", "check", "message"),
    [
        (AnswersTrue, "answers_are_answers", "answered with True, expected a Status"),
        (InventsACode, "answers_are_answers", "expected a Code"),
        (Raises, "answers_are_answers", "score raised KeyError: 'mine'"),
        (ScoresTooHigh, "answers_are_answers", "is 101: bring it into 0..100"),
        (TooFewCodes, "answers_are_answers", "codes for"),
        (CodeOneIsFine, "answers_are_answers", "only 0 is one"),
        (ChangesScores, "answers_are_answers", "normalize changed the scores"),
        (FormsDisagree, "forms_agree", "filter and filter_nodes disagree"),
        (ScoresDisagree, "forms_agree", "score and score_nodes disagree"),
        (IgnoresRows, "forms_agree", "among some rows"),
        (ChangesANode, "nothing_is_changed", "changed something"),
        (ChangesRows, "nothing_is_changed", "the rows that were passed in"),
        (Writes, "nothing_is_changed", "wrote to the API"),
        (Moody, "same_question_same_answer", "was asked about twice"),
        (LooksElsewhere, "reads_what_it_says", "something elsewhere changed"),
        (LooksAtNames, "reads_what_it_says", "pods of one class are told apart"),
        (StampStays, "reads_what_it_says", "the stamp 1 stayed"),
        (PreparesForOne, "prepares_by_class", "but said"),
        (PreparesInState, "prepares_by_class", "writes into the state"),
        (SaysItIsNotConcerned, "concerns_what_it_says", "but Filter refuses"),
        (DoesNotSkip, "concerns_what_it_says", "PreFilter does not say SKIP"),
        (RatesUnconcerned, "concerns_what_it_says", "has a score"),
        (ChangesItsMind, "concerns_what_it_says", "concern_version stayed"),
        (HasAClosure, "can_be_copied", "the answers differ"),
        (GrowsStale, "keeps_up", "has just begun"),
        (HintLooksAtNames, "hints_are_honest", "by_signature, but the hint says"),
        (HintIsABool, "hints_are_honest", "expected a Hint"),
        (NamesTooFew, "hints_are_honest", "pods does not name"),
        (ForgetsToAdd, "suppositions_hold", "disagree about"),
        (ForgetsToRemove, "suppositions_hold", "disagree about"),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_a_broken_promise_is_found(plugin: type, check: str, message: str) -> None:
    assert message in found_by(check, Subject(plugin))


def test_names_of_claims_are_no_part_of_a_kind() -> None:
    pod = make_pod("claiming").build()
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "mine"}}]
    subject = Subject(LooksAtClaims, pods=(pod,))
    assert "concerns_by_kind, but concerns looks" in found_by("concerns_what_it_says", subject)


def test_every_check_has_a_plugin_that_fails_it() -> None:
    text = Path(__file__).read_text()
    assert all(f'"{check}", "' in text for check in CHECKS)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConformanceError) as caught:
        conformance(Moody, clusters=1)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Broken:"
    assert any(line.startswith("  same_question_same_answer: ") for line in lines)


def test_what_is_no_plugin_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="none of the methods"):
        conformance(Counts)


def test_the_same_number_gives_the_same_cluster() -> None:
    one, two = PluginWorld(Subject(Counting), 3), PluginWorld(Subject(Counting), 3)
    assert one.cluster.export() == two.cluster.export()
    assert one.cluster.export() != PluginWorld(Subject(Counting), 4).cluster.export()
