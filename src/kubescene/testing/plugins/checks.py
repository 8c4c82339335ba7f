"""What every plugin promises, one check each. A check raises `AssertionError` if it is broken."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import orjson

from kubescene.scheduler import Hint, NodeTable, PodInfo, Reads, Status
from kubescene.scheduler.cycle.suppositions import SupposedNodes
from kubescene.scheduler.framework.points import implements
from kubescene.testing.plugins.asking import Asking, PodAnswers, WrongAnswerError, call, verdict
from kubescene.testing.plugins.worlds import PluginWorld, Subject

CHANGES = 6

Check = Callable[[Subject, int], None]


def answers_are_answers(subject: Subject, number: int) -> None:
    """Every method answers with what the manual says, for every node, and scores lie in 0..100."""
    world = PluginWorld(subject, number)
    for pod in world.candidates:
        Asking(world, pod).all()
        if implements(world.plugin, "pre_enqueue"):
            call(world.plugin, "pre_enqueue", pod)
        _at_the_end(world, pod)


def _at_the_end(world: PluginWorld, pod: PodInfo) -> None:
    """Reserve and what undoes it, Permit: they may be asked about any node."""
    asking, node = Asking(world, pod), world.nodes.names[0]
    asking.all()
    if implements(world.plugin, "reserve"):
        call(world.plugin, "reserve", asking.state, pod, node)
        call(world.plugin, "unreserve", asking.state, pod, node)
    if implements(world.plugin, "permit"):
        call(world.plugin, "permit", asking.state, pod, node)


def forms_agree(subject: Subject, number: int) -> None:
    """Per node and whole cluster say the same; of some rows the same as of all."""
    world = PluginWorld(subject, number)
    for _ in range(CHANGES):
        for pod in world.candidates:
            _agree(world, pod)
        world.change()


def _agree(world: PluginWorld, pod: PodInfo) -> None:
    asking = Asking(world, pod)
    some = asking.rows[::-2]
    if asking.pre_filter():
        whole = asking.whole_filter()
        if asking.has("filter") and asking.has("filter_nodes"):
            _same("filter", asking.single_filter(), "filter_nodes", whole)
        _within("filter_nodes", asking.whole_filter(some), whole)
    if asking.pre_score():
        scores = asking.whole_score()
        if asking.has("score") and asking.has("score_nodes"):
            _same("score", asking.single_score(), "score_nodes", scores)
        _within("score_nodes", asking.whole_score(some), scores)


def nothing_is_changed(subject: Subject, number: int) -> None:
    """Deciding changes neither nodes nor pods nor rows, and writes nothing."""
    world = PluginWorld(subject, number)
    for pod in world.candidates:
        before, revision = _columns(world.nodes, pod), world.cluster.revision
        asking = Asking(world, pod)
        rows = asking.rows.copy()
        asking.all()
        assert np.array_equal(rows, asking.rows), "the rows that were passed in were changed"
        assert _columns(world.nodes, pod) == before, f"asking about {pod.key} changed something"
        assert world.cluster.revision == revision, "deciding wrote to the API"


def same_question_same_answer(subject: Subject, number: int) -> None:
    """Asked twice, and in a world made alike, a plugin says the same."""
    world, again = PluginWorld(subject, number), PluginWorld(subject, number)
    for pod, twin in zip(world.candidates, again.candidates, strict=True):
        first = Asking(world, pod).all()
        _equal(first, Asking(world, pod).all(), f"{pod.key} was asked about twice")
        _equal(first, Asking(again, twin).all(), f"{pod.key} in a world made alike")


def reads_what_it_says(subject: Subject, number: int) -> None:
    """``reads = NODE``: only the class, the node and its pods matter. ``DOMAIN``: while the stamp
    and the node object stay, so do the answers.
    """
    reads = Reads(getattr(subject.plugin, "reads", Reads.CLUSTER))
    world = PluginWorld(subject, number)
    if reads is Reads.NODE:
        _reads_a_node(world)
    elif reads is Reads.DOMAIN:
        _reads_domains(world)


def _reads_a_node(world: PluginWorld) -> None:
    node = world.nodes.names[0]
    for pod in world.candidates:
        before = Asking(world, pod).all().about(node)
        world.change_elsewhere(node)
        after = Asking(world, pod).all().about(node)
        assert before == after, (
            f"reads is NODE, but something elsewhere changed what is said of {pod.key} on {node}: "
            f"{before} became {after}"
        )
    by_class: dict[Any, Any] = {}
    for pod in world.candidates:
        said = Asking(world, pod).all().about(node)
        known = by_class.setdefault(pod.pod_class, said)
        assert known == said, (
            f"reads is NODE, but pods of one class are told apart on {node}: {known} and {said}"
        )


def _reads_domains(world: PluginWorld) -> None:
    said: dict[tuple[Any, ...], Any] = {}
    for _ in range(CHANGES):
        for pod in world.candidates:
            asking = Asking(world, pod)
            if not asking.pre_filter():
                continue  # Nobody asks for the stamp of a plugin that has said SKIP.
            stamp = call(asking.plugin, "stamp", asking.state, pod)
            filters = asking.whole_filter()
            for info in asking.nodes.infos:
                revision = info.record.revision if info.record is not None else 0
                key = (pod.signature, stamp, info.name, revision)
                known = said.setdefault(key, filters.get(info.name))
                assert known == filters.get(info.name), (
                    f"the stamp {stamp} stayed, but what is said of {pod.key} on {info.name} did "
                    f"not: {known} became {filters.get(info.name)}"
                )
        world.change()


def prepares_by_class(subject: Subject, number: int) -> None:
    """``prepares_by_class``: PreFilter and PreScore write nothing and say the same of a class."""
    if not getattr(subject.plugin, "prepares_by_class", False):
        return
    world = PluginWorld(subject, number)
    said: dict[Any, Any] = {}
    for _ in range(CHANGES):
        for pod in world.candidates:
            asking = Asking(world, pod)
            asking.pre_filter()
            asking.pre_score()
            found = (asking.answers.pre_filter, asking.answers.nodes, asking.answers.pre_score)
            assert not asking.state._entries, "prepares_by_class, but it writes into the state"
            known = said.setdefault(pod.pod_class, found)
            assert known == found, f"prepares_by_class, but said {known} and then {found}"
        world.change()


def concerns_what_it_says(subject: Subject, number: int) -> None:
    """Where ``concerns`` says no, PreFilter skips and Filter passes; where ``concerns_scoring``
    does, PreScore skips or all scores are 0. Both stay while ``concern_version`` does, and with
    ``concerns_by_kind`` whatever the names of claims are.
    """
    world = PluginWorld(subject, number)
    said: dict[tuple[Any, ...], bool] = {}
    for _ in range(CHANGES):
        for pod in world.candidates:
            _concern(world, pod, said)
        world.change()


def _concern(world: PluginWorld, pod: PodInfo, said: dict[tuple[Any, ...], bool]) -> None:
    world.nodes.refresh()
    plugin = world.plugin
    version = getattr(plugin, "concern_version", 0)
    for method in ("concerns", "concerns_scoring"):
        if not implements(plugin, method):
            continue
        concerned = getattr(plugin, method)(pod.signature)
        assert isinstance(concerned, bool), f"{method} answered with {concerned!r}, not a bool"
        known = said.setdefault((method, pod.signature, version), concerned)
        assert known == concerned, f"{method} changed its mind, but concern_version stayed"
        if getattr(plugin, "concerns_by_kind", False):
            of_kind = getattr(plugin, method)(pod.signature.kind)
            assert of_kind == concerned, f"concerns_by_kind, but {method} looks at names of claims"
        if not concerned and method == "concerns":
            _has_nothing_to_filter(world, pod)
        elif not concerned:
            _has_nothing_to_score(world, pod)


def _has_nothing_to_filter(world: PluginWorld, pod: PodInfo) -> None:
    asking = Asking(world, pod)
    if asking.pre_filter():
        assert not asking.has("pre_filter"), (
            f"concerns says no about {pod.key}, but PreFilter does not say SKIP"
        )
        refused = [node for node, each in asking.whole_filter().items() if each[0] != "SUCCESS"]
        assert not refused, f"concerns says no about {pod.key}, but Filter refuses {refused[0]}"
    else:
        code = asking.answers.pre_filter[0]
        assert code in ("SKIP", "SUCCESS"), f"concerns says no, but PreFilter says {code}"
    node = world.nodes.names[0]
    if implements(world.plugin, "reserve"):
        status: Status = call(world.plugin, "reserve", asking.state, pod, node)
        assert status.ok, f"concerns says no about {pod.key}, but Reserve says {verdict(status)}"


def _has_nothing_to_score(world: PluginWorld, pod: PodInfo) -> None:
    asking = Asking(world, pod)
    asking.pre_filter()
    if asking.pre_score():
        assert not asking.has("pre_score"), (
            f"concerns_scoring says no about {pod.key}, but PreScore does not say SKIP"
        )
        scores = asking.normalized(asking.whole_score())
        rated = [node for node, score in scores.items() if score]
        assert not rated, f"concerns_scoring says no about {pod.key}, but {rated[0]} has a score"


def can_be_copied(subject: Subject, number: int) -> None:
    """A copy of the world says what the original says, and what happens in one leaves the other
    alone: no closures over what was copied.
    """
    world = PluginWorld(subject, number)
    before = [Asking(world, pod).all() for pod in world.candidates]
    copy = world.fork()
    assert copy.plugin is not world.plugin, "the copy of a world has the same plugin object"
    for pod, said in zip(copy.candidates, before, strict=True):
        _equal(said, Asking(copy, pod).all(), f"{pod.key} in a copy of the world")
    for _ in range(CHANGES):
        copy.change()
    for pod, said in zip(world.candidates, before, strict=True):
        _equal(said, Asking(world, pod).all(), f"{pod.key} after changes in a copy")
    _equals_rebuilt(copy)


def keeps_up(subject: Subject, number: int) -> None:
    """Whatever happens, a plugin says what one says that has just begun to look."""
    world = PluginWorld(subject, number)
    for _ in range(CHANGES):
        for pod in world.candidates:
            Asking(world, pod).all()
        world.change()
    _equals_rebuilt(world)


def _equals_rebuilt(world: PluginWorld) -> None:
    fresh = world.afresh()
    for pod, twin in zip(world.candidates, fresh.candidates, strict=True):
        said, told = Asking(world, pod).all(), Asking(fresh, twin).all()
        _equal(told, said, f"{pod.key}, compared with a plugin that has just begun")


def hints_are_honest(subject: Subject, number: int) -> None:
    """Hints answer with a `Hint`. ``by_signature``: the same for all pods of one signature but the
    one that changed. ``pods``: the others are not helped.
    """
    world = PluginWorld(subject, number)
    if not implements(world.plugin, "events_to_register"):
        return
    for _ in range(2 * CHANGES):
        change = world.change()
        for registration in call(world.plugin, "events_to_register"):
            _hint(registration, change, world)


def _hint(registration: Any, change: Any, world: PluginWorld) -> None:
    if registration.event.resource not in (change.record.decode()["kind"], "*"):
        return
    by_signature: dict[Any, Hint] = {}
    named = None if registration.pods is None else registration.pods(change)
    for pod in world.candidates:
        hint = Hint.QUEUE if registration.hint is None else registration.hint(pod, change)
        if not isinstance(hint, Hint):
            raise WrongAnswerError(f"a hint answered with {hint!r}, expected a Hint")
        if registration.by_signature and pod.uid != change.record.uid:
            known = by_signature.setdefault(pod.signature, hint)
            assert known is hint, (
                f"by_signature, but the hint says {known} and {hint} of pods of one signature"
            )
        if named is not None and pod.uid not in named:
            assert hint is Hint.SKIP, f"pods does not name {pod.key}, but its hint says {hint}"


def suppositions_hold(subject: Subject, number: int) -> None:
    """AddPod and RemovePod lead to what PreFilter would find if it were so."""
    if not any(implements(subject.plugin, method) for method in ("filter", "filter_nodes")):
        return
    world = PluginWorld(subject, number)
    for pod in world.candidates[::3]:
        _suppose_removal(world, pod)
        _suppose_arrival(world, pod)


def _suppose_arrival(world: PluginWorld, pod: PodInfo) -> None:
    """Suppose that one of the candidates ran on a node; then let it be so for a moment."""
    other = next(each for each in world.candidates if each.uid != pod.uid)
    for node in world.nodes.names:
        supposed = SupposedNodes(world.nodes)
        asking = Asking(world, pod, supposed)
        if not asking.pre_filter():
            return
        added = other.assumed(node)
        supposed.add_pod(added, node)
        _tell(asking, "add_pod", added, node)
        said = asking.whole_filter()
        world.nodes.add_pod(added, node)
        _compare(said, Asking(world, pod), f"if {added.key} ran on {node}")
        world.nodes.remove_pod(added, node)


def _suppose_removal(world: PluginWorld, pod: PodInfo) -> None:
    busy = next((info for info in world.nodes.infos if info.pods), None)
    if busy is None:
        return
    removed = busy.pods[0]
    supposed = SupposedNodes(world.nodes)
    asking = Asking(world, pod, supposed)
    if not asking.pre_filter():
        return
    supposed.remove_pod(removed, busy.name)
    _tell(asking, "remove_pod", removed, busy.name)
    real = world.fork()
    real.scheduler.nodes.remove_pod(removed, busy.name)
    _compare(
        asking.whole_filter(), Asking(real, pod), f"if {removed.key} were gone from {busy.name}"
    )


def _tell(asking: Asking, method: str, other: PodInfo, node: str) -> None:
    info = asking.nodes.info(node)
    if asking.has(method):
        status = call(asking.plugin, method, asking.state, asking.pod, other, info)
        assert status.ok, f"{method} failed: {verdict(status)}"


def _compare(said: Mapping[str, Any], anew: Asking, what: str) -> None:
    """What is supposed, and what is so. A plugin that would skip then is not asked then."""
    if anew.pre_filter():
        _same(f"Filter {what}", said, "PreFilter and Filter anew", anew.whole_filter())


def _same(one: str, said: Mapping[str, Any], other: str, told: Mapping[str, Any]) -> None:
    for node in told:
        assert said.get(node) == told[node], (
            f"{one} and {other} disagree about {node}: {said.get(node)} and {told[node]}"
        )


def _within(method: str, some: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    for node, each in some.items():
        assert each == whole[node], (
            f"{method} says {each} of {node} among some rows, but {whole[node]} among all"
        )


def _equal(one: PodAnswers, other: PodAnswers, when: str) -> None:
    assert one == other, f"{when}: the answers differ: {one} and {other}"


def _columns(nodes: NodeTable, pod: PodInfo) -> bytes:
    """All that a plugin is shown, as bytes."""
    rows = [
        [
            info.name,
            dict(info.labels),
            info.requested,
            info.allocatable,
            [each.uid for each in info.pods],
            list(info.taints),
            nodes.requested("cpu")[info.row],
            nodes.allocatable("cpu")[info.row],
            nodes.requested("pods")[info.row],
        ]
        for info in nodes.infos
    ]
    own = [pod.pod_class.spec, dict(pod.labels), dict(pod.signature.labels), pod.requests]
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return orjson.dumps([rows, own], default=repr, option=options)


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        answers_are_answers,
        forms_agree,
        nothing_is_changed,
        same_question_same_answer,
        reads_what_it_says,
        prepares_by_class,
        concerns_what_it_says,
        can_be_copied,
        keeps_up,
        hints_are_honest,
        suppositions_hold,
    )
}
