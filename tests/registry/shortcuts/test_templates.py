"""Objects of one template: whatever happens in between, they are what the long way makes of them.

Two worlds take the same steps. In one of them creates say what they have in common.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.gates import role_without_scenario
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.records.templates import Blueprint
from kubescene.api.scheme import GroupResource
from kubescene.clock import SECOND, Identities, VirtualClock
from kubescene.errors import ApiError, ForbiddenError
from kubescene.registry import EmbeddedRegistry, Registry
from kubescene.registry.admission.chain import AdmissionChain, AdmissionPlugin, AdmissionRequest
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.bootstrap import bootstrap
from kubescene.registry.exports import export
from kubescene.scenario.operations import IndexedTemplate
from kubescene.store import Store
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

PODS, NODES = GroupResource("", "pods"), GroupResource("", "nodes")
USER, ROBOT = Actor("user"), Actor("robot")


class NoMoreThan:
    """A quota: at most ``limit`` pods. It says what it looks at, or does not."""

    name = "NoMoreThan"

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.is_create("Pod") and request.store.count(PODS) >= self._limit:
            raise request.forbidden("exceeded quota")
        return request.obj


class DeclaredNoMoreThan(NoMoreThan):
    reads = (PODS,)


class Numbering:
    """Writes into each pod how many it has seen: an answer that is another one each time."""

    name = "Numbering"

    def __init__(self) -> None:
        self._count = 0

    def admit(self, request: AdmissionRequest) -> JsonObject:
        self._count += 1
        metadata = {**request.obj["metadata"], "annotations": {"number": str(self._count)}}
        return {**request.obj, "metadata": metadata}


def world(*plugins: AdmissionPlugin) -> Registry:
    registry = EmbeddedRegistry(
        scheme=builtin_scheme(),
        store=Store(),
        clock=VirtualClock(),
        identities=Identities(),
        admission=AdmissionChain([*default_chain(), *plugins]),
    )
    bootstrap(registry)
    return registry


def pod(name: str = "p-$(INDEX)", **spec: Any) -> JsonObject:
    obj = make_pod(name).cpu("1").label(app="web").build()
    return {**obj, "spec": {**obj["spec"], **spec}}


def generated(prefix: str = "p-", **metadata: Any) -> JsonObject:
    return {**pod(), "metadata": {"generateName": prefix, "namespace": "other", **metadata}}


EPHEMERAL = {
    "name": "v",
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
        }
    },
}


def claiming(name: str, claim: str, **more: Any) -> JsonObject:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim, **more}}


def named(api_version: str, kind: str, name: str, **members: Any) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **members}


def host(name: str, says: str = "") -> JsonObject:
    labels = {"a": "b", "kubernetes.io/hostname": says or name, "c": "d"}
    return make_node(name).cpu("4").labels(labels).build()


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}

TEMPLATES: dict[str, JsonObject] = {
    "plain": pod(),
    "elsewhere": {**pod(), "metadata": {"name": "e-$(INDEX)", "namespace": "other"}},
    "generated": generated(),
    "owned": generated("o-", ownerReferences=[OWNER], labels={"a": "b"}, finalizers=["x/y"]),
    "both names": {**pod(), "metadata": {"name": "b-$(INDEX)", "generateName": "x-"}},
    "index in label": make_pod("l-$(INDEX)").label(index="$(INDEX)").build(),
    "class": pod("c-$(INDEX)", priorityClassName="high"),
    "account": pod("s-$(INDEX)", serviceAccountName="builder"),
    "runtime": pod("r-$(INDEX)", runtimeClassName="slow"),
    "on a node": pod("n-$(INDEX)", nodeName="n1"),
    "gated": make_pod("g-$(INDEX)").gate("x/y").build(),
    "ephemeral": pod("a" * 58 + "$(INDEX)", volumes=[EPHEMERAL]),
    "claim": pod("v-$(INDEX)", volumes=[claiming("data", "100%-$(INDEX)")]),
    "claims": pod(
        "w-$(INDEX)",
        volumes=[
            claiming("first", "a-$(INDEX)", readOnly=True),
            {"name": "none", "emptyDir": {}},
            claiming("fixed", "one"),
            claiming("last", 'odd"-$(INDEX)'),
        ],
        terminationGracePeriodSeconds=5,
    ),
    "claim in a text": pod(
        "t-$(INDEX)",
        volumes=[claiming("data", "t-$(INDEX)")],
        hostname="$(INDEX)",
        subdomain="\0",
    ),
    "claim on a node": pod("k-$(INDEX)", volumes=[claiming("d", "k-$(INDEX)")], nodeName="n1"),
    "name grows too long": pod("a" * 252 + "$(INDEX)"),
    "bad name": pod("P_$(INDEX)"),
    "bad prefix": generated("P_"),
    "no name": {**pod(), "metadata": {}},
    "unknown field": {**pod("u-$(INDEX)"), "extra": 1},
    "bad spec": pod("x-$(INDEX)", restartPolicy="Sometimes"),
    "node": named("v1", "Node", "m-$(INDEX)", status={"capacity": {"cpu": "4"}}),
    "host": host("h-$(INDEX)"),
    "host with a long name": host("a" * 62 + "$(INDEX)"),
    "host of another name": host("i-$(INDEX)", says="j-$(INDEX)"),
    "host of bad name": host("H_$(INDEX)"),
    "not a pod": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m-$(INDEX)"},
        "data": {"a": "b"},
    },
}


def put(registry: Registry, obj: JsonObject) -> None:
    """Create an object, or replace it."""
    resource_type = registry.scheme.of_kind(obj["apiVersion"], obj["kind"])
    place = "default" if resource_type.namespaced else ""
    if registry.store.get(resource_type.group_resource, place, obj["metadata"]["name"]):
        registry.update(USER, obj)
    else:
        registry.create(USER, obj)


def remove(registry: Registry, kind: str, name: str) -> None:
    resource_type = registry.scheme.resolve(kind)
    place = "default" if resource_type.namespaced else ""
    registry.delete(USER, resource_type, place, name, options=DeleteOptions(grace_period_s=0))


def high_class(value: int, **more: Any) -> JsonObject:
    return named("scheduling.k8s.io/v1", "PriorityClass", "high", value=value, **more)


def wait(registry: Registry) -> None:
    registry.clock.wait_until(registry.clock.now() + 7 * SECOND)


def zone(name: str) -> JsonObject:
    return make_node("n1").labels({"topology.kubernetes.io/zone": name}).build()


DEFAULT: JsonObject = {"globalDefault": True}
DISTURBANCES: dict[str, Callable[[Registry], None]] = {
    "namespace made": lambda it: put(it, named("v1", "Namespace", "other")),
    "namespace gone": lambda it: remove(it, "namespaces", "other"),
    "class made": lambda it: put(it, high_class(7)),
    "default class": lambda it: put(it, {**high_class(9), "metadata": {"name": "d"}} | DEFAULT),
    "class gone": lambda it: remove(it, "priorityclasses", "high"),
    "account made": lambda it: put(it, named("v1", "ServiceAccount", "builder")),
    "secret for default": lambda it: put(
        it, named("v1", "ServiceAccount", "default", imagePullSecrets=[{"name": "s"}])
    ),
    "runtime made": lambda it: put(
        it, named("node.k8s.io/v1", "RuntimeClass", "slow", handler="h")
    ),
    "node made": lambda it: put(it, zone("a")),
    "node moved": lambda it: put(it, zone("b")),
    "name taken": lambda it: put(it, make_pod("p-2").build()),
    "pod gone": lambda it: remove(it, "pods", "p-1"),
    "time passes": wait,
}


def outcome(action: Callable[[], Any]) -> object:
    try:
        return action()
    except ApiError as error:
        return (type(error), error.message, error.causes)


def create(registry: Registry, template: IndexedTemplate, index: int, **options: Any) -> object:
    body = template.instance(index)
    given = WriteOptions(**options)
    return outcome(lambda: registry.create(USER, body, options=given).data)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(TEMPLATES)), st.integers(1, 4)),
        st.tuples(
            st.sampled_from(["plain", "generated", "class", "claim", "claims", "node", "host"]),
            st.integers(2, 4),
        ),
        st.tuples(st.sampled_from(sorted(DISTURBANCES)), st.just(0)),
    ),
    max_size=14,
)
PLUGINS = st.sampled_from([(), (NoMoreThan, 9), (DeclaredNoMoreThan, 9), (Numbering,)])


@settings(deadline=None, max_examples=150)
@given(STEPS, PLUGINS, st.booleans())
def test_objects_of_one_template_are_what_the_long_way_makes_of_them(
    steps: list[tuple[str, int]], plugin: tuple[Any, ...], strict: bool
) -> None:
    made = [plugin[0](*plugin[1:]) for _ in "12"] if plugin else []
    slow, fast = world(*made[:1]), world(*made[1:])
    templates = {name: IndexedTemplate(body) for name, body in TEMPLATES.items()}
    indexes = dict.fromkeys(TEMPLATES, 0)
    for name, count in steps:
        if name in DISTURBANCES:
            disturb = DISTURBANCES[name]
            assert outcome(lambda: disturb(slow)) == outcome(lambda: disturb(fast))  # noqa: B023
        for _ in range(count):
            template, index = templates[name], indexes[name]
            expected = create(slow, template, index, strict=strict)
            assert (
                create(fast, template, index, strict=strict, blueprint=template.blueprint)
                == expected
            )
            indexes[name] += 1
    assert export(slow) == export(fast)
    assert slow.store.revision == fast.store.revision
    assert slow.identities._ordinals == fast.identities._ordinals


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pod("a" * 252 + "$(INDEX)"), id="the name grows too long"),
        pytest.param(pod("a" * 250 + "$(INDEX)", volumes=[EPHEMERAL]), id="the claim's name does"),
        pytest.param(make_pod("g-$(INDEX)").gate("x/y").build(), id="gated, and time passes"),
        pytest.param(pod(), id="time passes"),
        pytest.param(host("a" * 61 + "-$(INDEX)"), id="the host's name is no label any more"),
    ],
)
def test_what_depends_on_the_name_or_the_time_is_its_own(body: JsonObject) -> None:
    slow, fast, template = world(), world(), IndexedTemplate(body)
    for index in range(8, 12):
        expected = create(slow, template, index)
        assert create(fast, template, index, blueprint=template.blueprint) == expected
        wait(slow)
        wait(fast)


# -- that the short way is taken, and when it is not -----------------------------------------------


class Counting:
    """Counts what admission is asked; what it looks at is nothing."""

    name = "Counting"
    reads: tuple[GroupResource, ...] = ()

    def __init__(self) -> None:
        self.asked = 0

    def admit(self, request: AdmissionRequest) -> JsonObject:
        self.asked += request.is_create("Pod") or request.is_create("Node")
        return request.obj


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def registry(counting: Counting) -> Registry:
    return world(counting)


def test_admission_is_asked_once_for_one_template(registry: Registry, counting: Counting) -> None:
    template = IndexedTemplate(pod())
    for index in range(5):
        create(registry, template, index, blueprint=template.blueprint)
    assert counting.asked == 1
    assert registry.store.count(PODS) == 5


@pytest.mark.parametrize("name", ["node", "host"])
def test_so_it_is_for_nodes_although_pods_may_depend_on_nodes(
    registry: Registry, counting: Counting, name: str
) -> None:
    template = IndexedTemplate(TEMPLATES[name])
    for index in range(5):
        create(registry, template, index, blueprint=template.blueprint)
    assert counting.asked == 1
    assert registry.store.count(NODES) == 5


def test_a_pod_is_admitted_anew_when_a_node_has_changed(
    registry: Registry, counting: Counting
) -> None:
    template = IndexedTemplate(pod())
    for index in range(2):
        create(registry, template, index, blueprint=template.blueprint)
        put(registry, zone(str(index)))
    # Each pod, and the node once: the second time it is updated.
    assert counting.asked == 3


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"strict": True}, id="options"),
        pytest.param({"field_manager": "x"}, id="manager"),
        pytest.param({"dry_run": True}, id="dry run"),
    ],
)
def test_another_request_takes_the_long_way(
    registry: Registry, counting: Counting, change: dict[str, Any]
) -> None:
    template = IndexedTemplate(pod())
    create(registry, template, 0, blueprint=template.blueprint)
    create(registry, template, 1, blueprint=template.blueprint, **change)
    assert counting.asked == 2


def test_another_writer_or_namespace_takes_the_long_way(
    registry: Registry, counting: Counting
) -> None:
    body = generated()
    del body["metadata"]["namespace"]
    options = WriteOptions(blueprint=Blueprint(body))
    registry.create(USER, named("v1", "Namespace", "other"))
    for actor, place in ((USER, ""), (ROBOT, ""), (ROBOT, "other"), (ROBOT, "other")):
        registry.create(actor, body, namespace=place, options=options)
    assert counting.asked == 3
    assert [r.namespace for r in registry.store.list(PODS)] == ["default"] * 2 + ["other"] * 2


def test_a_body_that_breaks_the_promise_takes_the_long_way(registry: Registry) -> None:
    body = generated(namespace="default")
    options = WriteOptions(blueprint=Blueprint(body))
    registry.create(USER, body, options=options)
    other = {**body, "spec": {**body["spec"], "hostname": "h"}}
    labelled = {**body, "metadata": {**body["metadata"], "labels": {"a": "b"}}}
    assert registry.create(USER, other, options=options).decode()["spec"]["hostname"] == "h"
    assert registry.create(USER, labelled, options=options).labels == {"a": "b"}
    kept = registry.create(USER, body, options=options)
    assert "hostname" not in kept.decode()["spec"]
    assert not kept.labels


def test_owners_of_fields_are_noted_with_their_own_time(
    registry: Registry, counting: Counting
) -> None:
    registry.track_fields = True
    template = IndexedTemplate(pod())
    clock = registry.clock
    assert isinstance(clock, VirtualClock)
    for index in range(2):
        create(registry, template, index, blueprint=template.blueprint, field_manager="me")
        clock.wait_until(clock.now() + SECOND)
    assert counting.asked == 1
    [first], [second] = (r.decode()["metadata"]["managedFields"] for r in registry.store.list(PODS))
    assert first["manager"] == "me"
    assert second == {**first, "time": second["time"]}
    assert second["time"] > first["time"]


def test_who_begins_to_track_fields_takes_the_long_way_once(registry: Registry) -> None:
    template = IndexedTemplate(pod())
    for index in range(3):
        registry.track_fields = index > 0
        create(registry, template, index, blueprint=template.blueprint, field_manager="me")
    tracked = ["managedFields" in r.decode()["metadata"] for r in registry.store.list(PODS)]
    assert tracked == [False, True, True]


def test_a_plugin_that_does_not_say_what_it_looks_at_is_always_asked(counting: Counting) -> None:
    registry = world(counting, NoMoreThan(2))
    template = IndexedTemplate(pod())
    for index in range(2):
        create(registry, template, index, blueprint=template.blueprint)
    refused = create(registry, template, 2, blueprint=template.blueprint)
    assert counting.asked == 3
    assert isinstance(refused, tuple)
    assert refused[0] is ForbiddenError


def test_the_gate_has_its_word_on_each(registry: Registry) -> None:
    asked: list[str] = []

    class Gate:
        def role_of(self, actor: Actor) -> Any:
            return role_without_scenario(actor)

        def before_write(
            self, actor: Actor, resource_type: Any, subresource: str, name: str
        ) -> None:
            asked.append(resource_type.kind)
            if len(asked) == 3:
                raise ForbiddenError("not now")

    registry.gate = Gate()
    template = IndexedTemplate(pod())
    results = [
        create(registry, template, index, blueprint=template.blueprint) for index in range(4)
    ]
    assert asked == ["Pod"] * 4
    assert [isinstance(result, bytes) for result in results] == [True, True, False, True]
