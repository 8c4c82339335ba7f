"""Who is where: all pods on nodes, in groups, kept up to date with the node table.

`sync` reads what has happened since the last look. A pod that comes or goes changes its groups, and
each group tells its counters: the cost is that of the counters in question, however many pods and
nodes there are. A new question is answered from the groups, not from the pods. Counters that
nobody asks for are put to sleep, so that there are only so many of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from kubescene.bounded import BoundedDict
from kubescene.scheduler.domains.affinity_terms import CarriedTerm, pod_affinity
from kubescene.scheduler.domains.groups import (
    CountedGroup,
    Filed,
    LabelGroup,
    LabelPair,
    Matcher,
    RowCounter,
    Share,
    TermGroup,
    a_pair,
    label_key,
)
from kubescene.scheduler.domains.tallies import ALL_NODES, CountedNodes, DomainTally
from kubescene.scheduler.state.deltas import Delta, DeltaKind
from kubescene.scheduler.state.node_info import NO_ROW, NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import ReadOnlyObject

_LabelKey: TypeAlias = tuple[tuple[str, tuple[LabelPair, ...]], bool]
_Spec: TypeAlias = tuple[Mapping[str, str], Sequence[ReadOnlyObject]]


class PodCensus:
    """The pods of one node table. Call `sync` before asking."""

    def __init__(self, nodes: NodeTable, cells_kept: int = POLICY.counter_cells_kept) -> None:
        self.epoch = 0
        """Grows when nodes came, went, or changed labels or taints."""
        self.term_version = 0
        """Grows when a term is carried that was not before, or is not any more."""
        self._nodes = nodes
        self._reader = nodes.follow()
        self._cells_kept = cells_kept
        self._uses = 0
        self._specs: dict[str, _Spec] = {}
        self._label_groups: dict[_LabelKey, LabelGroup] = {}
        self._labelled: Filed[LabelGroup] = Filed()
        self._empty = 0
        self._known: BoundedDict[PodSignature, LabelGroup] = BoundedDict(POLICY.classes_kept)
        """Groups of pods that carry no terms and are not being deleted."""
        self._term_groups: dict[CarriedTerm, TermGroup] = {}
        self._terms: Filed[TermGroup] = Filed()
        self._counters: dict[Matcher, RowCounter] = {}
        self._counting_labels: Filed[RowCounter] = Filed()
        self._counting_terms: dict[RowCounter, None] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "PodCensus":
        """What nodes look like is many and immutable: shared."""
        copy: PodCensus = object.__new__(PodCensus)
        memo[id(self)] = copy
        for name, value in vars(self).items():
            setattr(copy, name, value.copy() if name == "_specs" else deepcopy(value, memo))
        return copy

    # -- asking ----------------------------------------------------------------------------

    def sync(self) -> None:
        """Take in what has happened to the table."""
        deltas = self._reader.read()
        if deltas is None:
            self._count_anew()
        elif deltas:
            self._follow(deltas)

    def counter(self, known: RowCounter | None, matcher: Matcher) -> RowCounter:
        """The counter of a question; ``known`` is the one that it had the last time."""
        if known is None or not known.awake:
            known = self._counters.get(matcher) or self._new_counter(matcher)
        self._uses += 1
        known.used = self._uses
        return self._in_place(known)

    def tally(
        self, counter: RowCounter, key: str, counted: CountedNodes = ALL_NODES
    ) -> DomainTally:
        """A counter by domain of a topology key."""
        return counter.tally(self._nodes, self.epoch, key, counted)

    def carried_terms(self, labels: Mapping[str, str]) -> Iterator[CarriedTerm]:
        """The terms of pods on nodes that may match a pod with these labels."""
        return (group.carried for group in self._terms.among(labels))

    # -- following -------------------------------------------------------------------------

    def _count_anew(self) -> None:
        for counter in [*self._counters.values()]:
            self._put_to_sleep(counter)
        self._label_groups.clear()
        self._labelled.clear()
        self._known.clear()
        self._empty = 0
        self._term_groups.clear()
        self._terms.clear()
        self._specs.clear()
        self.epoch += 1
        self.term_version += 1
        for info in self._nodes.infos:
            self._join(info, info.pods)

    def _follow(self, deltas: Sequence[Delta]) -> None:
        known = self._known
        for kind, node, pods in deltas:
            if kind is DeltaKind.POD_ADDED:
                group = known.get(pods[0].signature)
                if group is None or group.counters or pods[0].terminating:
                    self._add(node, pods[0], 1)
                else:
                    # A pod that carries no terms comes, and nobody asks: the rule.
                    group.nodes[node.name] = group.nodes.get(node.name, 0) + 1
            elif kind is DeltaKind.POD_REMOVED:
                self._add(node, pods[0], -1)
            elif kind is DeltaKind.POD_CHANGED:
                # Labels, or being deleted; the terms that a pod carries never change.
                self._change(self._label_group(pods[0]), node, -1)
                self._change(self._label_group(pods[1]), node, 1)
            elif kind is DeltaKind.NODE_CHANGED:
                self._note_spec(node)
            elif kind is DeltaKind.NODE_JOINED:
                self._join(node, pods)
            else:
                self._leave(node)

    def _join(self, node: NodeInfo, pods: Sequence[PodInfo]) -> None:
        self._note_spec(node)
        for pod in pods:
            self._add(node, pod, 1)

    def _leave(self, node: NodeInfo) -> None:
        self.epoch += 1
        self._specs.pop(node.name, None)
        groups: list[CountedGroup] = [*self._label_groups.values(), *self._term_groups.values()]
        for group in groups:
            if group.nodes.pop(node.name, 0):
                if node.row != NO_ROW:
                    for counter in group.counters:
                        self._in_place(counter).clear(node.row)
                self._drop_if_empty(group)

    def _note_spec(self, node: NodeInfo) -> None:
        """Nodes are written all the time; only labels and taints matter."""
        spec = (node.labels, node.taints)
        if self._specs.get(node.name) != spec:
            self._specs[node.name] = spec
            self.epoch += 1

    def _add(self, node: NodeInfo, pod: PodInfo, sign: int) -> None:
        group = self._label_group(pod)
        self._change(group, node, sign)
        terms = pod_affinity(pod.signature).carried
        for carried in terms:
            self._change(self._term_group(carried), node, sign)
        if sign > 0 and not terms and not pod.terminating:
            self._known[pod.signature] = group

    def _change(self, group: CountedGroup, node: NodeInfo, sign: int) -> None:
        if group.counters:
            for counter, share in group.counters.items():
                self._in_place(counter)
                if node.row != NO_ROW:
                    counter.add(node.row, share, sign)
        count = group.nodes.get(node.name, 0) + sign
        if count:
            group.nodes[node.name] = count
        else:
            del group.nodes[node.name]
            self._drop_if_empty(group)

    # -- groups ----------------------------------------------------------------------------

    def _label_group(self, pod: PodInfo) -> LabelGroup:
        key = (pod.signature.compiled(label_key), pod.terminating)
        group = self._label_groups.get(key)
        if group is None:
            group = self._label_groups[key] = LabelGroup(pod)
            for pair in group.labels.items():
                self._labelled.put(group, pair)
            for counter in self._counting_labels.among(group.labels):
                _attach(group, counter, counter.matcher.of_labels(group))
        return group

    def _term_group(self, carried: CarriedTerm) -> TermGroup:
        group = self._term_groups.get(carried)
        if group is None:
            self.term_version += 1
            group = self._term_groups[carried] = TermGroup(carried)
            self._terms.put(group, a_pair(carried.term.selector))
            for counter in self._counting_terms:
                _attach(group, counter, counter.matcher.of_term(carried))
        return group

    def _drop_if_empty(self, group: CountedGroup) -> None:
        if group.nodes:
            return
        if isinstance(group, TermGroup):
            self.term_version += 1
            del self._term_groups[group.carried]
            self._terms.take(group, a_pair(group.carried.term.selector))
            return
        # Labels that a node gives its pods empty the group of those that have just come: the next
        # pod will be there soon.
        self._empty += 1
        if self._empty > max(POLICY.empty_groups_kept, len(self._label_groups) // 2):
            self._drop_empty_groups()

    def _drop_empty_groups(self) -> None:
        self._empty = 0
        self._known.clear()
        empty = [(key, group) for key, group in self._label_groups.items() if not group.nodes]
        for key, group in empty:
            del self._label_groups[key]
            for pair in group.labels.items():
                self._labelled.take(group, pair)

    # -- counters --------------------------------------------------------------------------

    def _new_counter(self, matcher: Matcher) -> RowCounter:
        self._make_room()
        counter = self._counters[matcher] = RowCounter(matcher, self._nodes)
        if matcher.reads_labels:
            self._counting_labels.put(counter, matcher.pair)
        if matcher.held_against is not None:
            self._counting_terms[counter] = None
        for group, share in self._shares(matcher):
            _attach(group, counter, share)
        self._fill(counter)
        return counter

    def _shares(self, matcher: Matcher) -> Iterator[tuple[CountedGroup, Share]]:
        if matcher.reads_labels:
            pair = matcher.pair
            groups = self._label_groups.values() if pair is None else self._labelled.under(pair)
            yield from ((group, matcher.of_labels(group)) for group in groups)
        if (labels := matcher.held_against) is not None:
            for term_group in self._terms.among(labels):
                yield term_group, matcher.of_term(term_group.carried)

    def _fill(self, counter: RowCounter) -> None:
        nodes = self._nodes
        for group, share in self._shares(counter.matcher):
            if share.matches:
                for name, pods in group.nodes.items():
                    if (row := nodes.row_of(name)) is not None:
                        counter.add(row, share, pods)

    def _in_place(self, counter: RowCounter) -> RowCounter:
        if counter.layout != self._nodes.layout and not counter.place(self._nodes):
            counter.reset(self._nodes)
            self._fill(counter)
        return counter

    def _make_room(self) -> None:
        allowed = max(POLICY.fewest_counters_kept, self._cells_kept // max(1, 2 * len(self._nodes)))
        if len(self._counters) >= allowed:
            # Half of them at once: finding the oldest ones costs as much as there are.
            by_use = sorted(self._counters.values(), key=_last_use)
            for counter in by_use[: allowed // 2]:
                self._put_to_sleep(counter)

    def _put_to_sleep(self, counter: RowCounter) -> None:
        matcher = counter.matcher
        del self._counters[matcher]
        if matcher.reads_labels:
            self._counting_labels.take(counter, matcher.pair)
        self._counting_terms.pop(counter, None)
        for group, _ in self._shares(matcher):
            group.counters.pop(counter, None)
        counter.sleep()


def _attach(group: CountedGroup, counter: RowCounter, share: Share) -> None:
    if share.matches:
        group.counters[counter] = share


def _last_use(counter: RowCounter) -> int:
    return counter.used
