"""Jobs, their pods and sizes of sets: the short way ends where the long way does.

Two registries get the same writes. One of them may take what it has learned from the first of them.
"""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubescene
from kubescene.api.kinds import JOB, POD, REPLICA_SET
from kubescene.api.options import NO_OPTIONS, DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.templates import Blueprint, OwnedBodies
from kubescene.api.scheme import GroupVersionKind
from kubescene.errors import ApiError
from kubescene.registry import Registry
from kubescene.registry.base import Checks
from kubescene.registry.exports import export
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing import make_deployment, make_node
from kubescene.types import JsonObject
from registry.conftest import USER, make_registry

UIDS = [f"{number:08x}-1111-4111-8111-{number:012x}" for number in range(1, 6)]
TIMES = [f"2026-01-{day:02}T0{hour}:00:00Z" for day in (1, 2) for hour in range(4)]
SPEC = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}


class Both:
    """A registry that has learned, and one that goes the long way."""

    def __init__(self) -> None:
        self.fast, self.plain = make_registry(ALL), make_registry(PLAIN)
        self.validated = 0
        """How often the fast one has looked at a whole object."""

    def __call__(self, write: Callable[[Registry], Record]) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checks, "accept", self._counting(Checks.accept))
            fast = outcome(write, self.fast)
        assert fast == outcome(write, self.plain)
        return fast

    def _counting(self, accept: Callable[..., None]) -> Callable[..., None]:
        def counted(*given: Any) -> None:
            self.validated += 1
            accept(*given)

        return counted

    def create(self, obj: JsonObject, options: WriteOptions = NO_OPTIONS) -> object:
        return self(lambda registry: registry.create(USER, obj, options=options))

    def patch(
        self, gvk: GroupVersionKind, name: str, body: Any, part: str = "", **options: Any
    ) -> object:
        return self(
            lambda registry: registry.patch(
                USER,
                registry.type_of(gvk),
                "default",
                name,
                body,
                PatchType.MERGE,
                subresource=part,
                options=WriteOptions(**options),
            )
        )


def outcome(write: Callable[[Registry], Record], registry: Registry) -> object:
    try:
        record = write(registry)
    except ApiError as error:
        return type(error).__name__, error.message
    seen = orjson.dumps(registry.store.decoded(record))
    return record.data, record.labels, record.owner, record.deleting, seen


@pytest.fixture
def both() -> Both:
    return Both()


def job(name: str, **spec: Any) -> JsonObject:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": SPEC}
    return obj("batch/v1", "Job", name, {"template": template, **spec})


def obj(api_version: str, kind: str, name: str, spec: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def is_refused(told: object) -> bool:
    return isinstance(told, tuple) and isinstance(told[0], str)


# -- statuses in other words -------------------------------------------------------------------


def story(uid: str, began: str, ended: str) -> list[JsonObject]:
    """What a controller tells of a Job whose pod comes, and succeeds."""
    over = {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": ended}
    final = {"type": "Complete", "status": "True", "lastTransitionTime": ended}
    return [
        {"startTime": began, "active": 1, "ready": 0, "uncountedTerminatedPods": {}},
        {"active": None, "uncountedTerminatedPods": {"succeeded": [uid]}, "conditions": [over]},
        {
            "uncountedTerminatedPods": {"succeeded": None},
            "succeeded": 1,
            "completionTime": ended,
            "conditions": [over, final],
        },
    ]


def test_what_was_told_of_one_job_is_told_of_others_without_looking(both: Both) -> None:
    for number, uid in enumerate(UIDS):
        both.create(job(f"j-{number}"))
        looked = both.validated
        for status in story(uid, TIMES[number], TIMES[number + 1]):
            assert not is_refused(both.patch(JOB, f"j-{number}", {"status": status}, "status"))
        assert (both.validated - looked == 0) is (number > 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("completionTime", TIMES[0]), "must be equal to or after `startTime`"),
        (("completionTime", None), "completionTime is required"),
        (("completionTime", "2026-02-30T00:00:00Z"), ""),
        (("completionTime", "2026-01-01T25:00:00Z"), ""),
        (("succeeded", -1), "greater than or equal to 0"),
        (("succeeded", 1.5), ""),
        (("uncountedTerminatedPods", {"failed": [UIDS[2]]}), "must be empty"),
    ],
)
def test_what_is_wrong_in_other_words_is_refused(
    both: Both, change: tuple[str, Any], why: str
) -> None:
    for number in range(2):
        both.create(job(f"j-{number}"))
        patches = story(UIDS[number], TIMES[1 + number], TIMES[3 + number])
        if number:
            patches[-1] = {**patches[-1], change[0]: change[1]}
        told = [both.patch(JOB, f"j-{number}", {"status": each}, "status") for each in patches]
    # Of the refusals without a text here, the two registries have agreed on the same one.
    assert is_refused(told[-1])
    assert why in str(told[-1])


BAD_DAY, BAD_HOUR = "2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z"


@pytest.mark.parametrize("ended", [TIMES[0], BAD_DAY, BAD_HOUR])
def test_the_same_story_at_times_that_cannot_be(both: Both, ended: str) -> None:
    for name, words in (("a", (UIDS[0], TIMES[1], TIMES[2])), ("b", (UIDS[1], TIMES[1], ended))):
        both.create(job(name))
        told = [both.patch(JOB, name, {"status": it}, "status") for it in story(*words)]
    assert is_refused(told[-1])


def test_a_message_may_have_a_percent_sign(both: Both) -> None:
    for number, name in enumerate("ab"):
        both.create(job(name))
        half = {"type": "Half", "status": "True", "message": "50% %b %s", "reason": UIDS[number]}
        both.patch(JOB, name, {"status": {"conditions": [half]}}, "status")


def test_empty_maps_of_metadata_go_with_a_status(both: Both) -> None:
    for name in "ab":
        body = job(name)
        if name == "b":
            body["metadata"] |= {"labels": {}, "annotations": {}}
        both.create(body)
        for status in story(UIDS[0], TIMES[0], TIMES[1]):
            both.patch(JOB, name, {"status": status}, "status")


def test_a_pod_that_is_noted_twice_is_no_two_pods(both: Both) -> None:
    for name in ("a", "b"):
        both.create(job(name, completions=2, parallelism=2))
    two = {"uncountedTerminatedPods": {"succeeded": [UIDS[0]], "failed": [UIDS[1]]}}
    one = {"uncountedTerminatedPods": {"succeeded": [UIDS[2]], "failed": [UIDS[2]]}}
    assert not is_refused(both.patch(JOB, "a", {"status": two}, "status"))
    assert is_refused(both.patch(JOB, "b", {"status": one}, "status"))


@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ({"completionMode": "Indexed", "completions": 4, "parallelism": 4}, {}),
        (
            {"completionMode": "Indexed", "completions": 4},
            {"completionMode": "Indexed", "completions": 2},
        ),
    ],
)
def test_another_spec_is_another_story(both: Both, mine: JsonObject, others: JsonObject) -> None:
    both.create(job("a", **mine))
    both.create(job("b", **others))
    status = {"startTime": TIMES[0], "completedIndexes": "3", "succeeded": 1}
    assert not is_refused(both.patch(JOB, "a", {"status": status}, "status"))
    assert is_refused(both.patch(JOB, "b", {"status": status}, "status"))


SPECS: list[JsonObject] = [{}, {"suspend": True}, {"completions": 2}]
TOLD = st.tuples(st.sampled_from(UIDS), st.sampled_from(TIMES), st.sampled_from(TIMES))


@given(
    st.lists(
        st.tuples(st.sampled_from(SPECS), TOLD, st.lists(st.integers(0, 2), max_size=4)), max_size=4
    )
)
def test_stories_made_by_lot_end_alike(jobs: list[tuple[Any, ...]]) -> None:
    both = Both()
    for number, (spec, words, order) in enumerate(jobs):
        name = f"j-{number}"
        both.create(job(name, **spec))
        for at in order:
            both.patch(JOB, name, {"status": story(*words)[at]}, "status")


def test_a_job_that_is_to_go_is_looked_at(both: Both) -> None:
    going = DeleteOptions(propagation_policy="Foreground")
    for name in ("a", "b"):
        both.create(job(name))
        if name == "b":
            both(lambda it: it.delete(USER, it.type_of(JOB), "default", "b", options=going))
        for status in story(UIDS[0], TIMES[0], TIMES[1]):
            both.patch(JOB, name, {"status": status}, "status")


# -- Jobs that are created alike ---------------------------------------------------------------


def alike(body: JsonObject, names: list[str]) -> list[tuple[JsonObject, WriteOptions]]:
    options = WriteOptions(blueprint=Blueprint(body), is_lasting=True)
    named = [{**body, "metadata": {**body["metadata"], "name": name}} for name in names]
    return [(each, options) for each in named]


def test_alike_jobs_select_their_own_pods(both: Both) -> None:
    for body, options in alike(job("a"), ["a", "b", "x" * 63]):
        both.create(body, options)
    assert both.validated == 1
    [told] = [both.create(*each) for each in alike(job("a"), ["y" * 64])]
    assert is_refused(told)


@pytest.mark.parametrize(
    "spec",
    [
        {"completionMode": "Indexed", "completions": 3},
        {"manualSelector": True, "selector": {"matchLabels": {"app": "x"}}},
        {"suspend": True, "selector": {}},
    ],
)
def test_jobs_of_another_kind_are_each_looked_at(both: Both, spec: JsonObject) -> None:
    for body, options in alike(job("a", **spec), ["a", "b", "c" * 62]):
        both.create(body, options)
    assert both.validated > 1


@pytest.mark.parametrize("label", ["job-name", "batch.kubernetes.io/controller-uid"])
def test_labels_that_jobs_were_given_stay_their_own(both: Both, label: str) -> None:
    body = job("a")
    body["spec"]["template"]["metadata"]["labels"] = {"app": "x", label: "a"}
    for each in alike(body, ["a", "b"]):
        both.create(*each)


@pytest.mark.parametrize("labels", [None, {}, {"team": "blue"}, {"app": "x"}])
def test_labels_of_the_job_itself_are_those_of_the_long_way(
    both: Both, labels: JsonObject | None
) -> None:
    body = job("a")
    if labels is not None:
        body["metadata"]["labels"] = labels
    for each in alike(body, ["a", "b"]):
        both.create(*each)


# -- pods of alike owners ----------------------------------------------------------------------


def pod_of(name: str, uid: str, spec: JsonObject | None = None, **labels: str) -> JsonObject:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    metadata = {
        "generateName": f"{name}-",
        "namespace": "default",
        "labels": {"job-name": name, "controller-uid": uid, **labels},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec or SPEC}


def create_owned(both: Both, *pods: JsonObject) -> list[object]:
    bodies = OwnedBodies()
    blueprints = [bodies.blueprint_of(pod) for pod in pods]
    return [
        both.create(pod, WriteOptions(blueprint=blueprint))
        for pod, blueprint in zip(pods, blueprints, strict=True)
    ]


def test_pods_that_differ_in_their_owner_are_looked_at_once(both: Both) -> None:
    create_owned(both, *(pod_of(f"j-{at}", uid) for at, uid in enumerate(UIDS)))
    assert both.validated == 1


def test_what_a_pod_asks_of_its_labels_is_its_own(both: Both) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["job-name"],
    }
    spec = {**SPEC, "topologySpreadConstraints": [spread]}
    create_owned(both, *(pod_of(f"j-{at}", uid, spec) for at, uid in enumerate(UIDS[:3])))
    assert both.validated == 3


@pytest.mark.parametrize(
    ("name", "other"), [("a" * 63, "b" * 64), ("default", "other"), ("other", "default")]
)
def test_names_that_mean_something_elsewhere(both: Both, name: str, other: str) -> None:
    spec = {**SPEC, "serviceAccountName": "default"}
    create_owned(both, pod_of(name, UIDS[0], spec), pod_of(other, UIDS[1], spec))


def test_a_pod_of_another_spec_or_label_has_another_blueprint() -> None:
    bodies = OwnedBodies()
    one = bodies.blueprint_of(pod_of("a", UIDS[0]))
    assert one is bodies.blueprint_of(pod_of("b", UIDS[1])) is not None
    assert one is not bodies.blueprint_of(pod_of("b", UIDS[1], app="x"))
    assert one is not bodies.blueprint_of(pod_of("b", UIDS[1], {**SPEC, "hostNetwork": True}))
    assert bodies.blueprint_of(pod_of("b", "not-a-uid")) is None


# -- finalizers of pods ------------------------------------------------------------------------

HELD = ["example.com/a", "example.com/b"]


def held(name: str) -> JsonObject:
    pod = obj("v1", "Pod", name, SPEC)
    return {**pod, "metadata": {**pod["metadata"], "finalizers": HELD}}


def test_finalizers_that_others_have_lost_are_taken_off(both: Both) -> None:
    for name in ("a", "b", "c"):
        both.create(held(name))
        looked = both.validated
        both.patch(POD, name, {"metadata": {"finalizers": HELD[:1]}})
        both.patch(POD, name, {"metadata": {"finalizers": None}})
        assert (both.validated == looked) is (name != "a")


@pytest.mark.parametrize(
    "finalizers",
    [["example.com/c"], ["nonsense"], [1], [], {}, "x", HELD, [HELD[0], HELD[0]], HELD[::-1]],
)
def test_finalizers_that_come_are_looked_at(both: Both, finalizers: object) -> None:
    for name in ("a", "b"):
        both.create(held(name))
        both.patch(POD, name, {"metadata": {"finalizers": HELD[1:] if name == "a" else finalizers}})
        both.patch(POD, name, {"metadata": {"finalizers": finalizers}})
        both.patch(POD, name, {"metadata": {"finalizers": None}})


def test_a_pod_that_is_to_go_goes_with_its_last_finalizer(both: Both) -> None:
    for name in ("a", "b"):
        both.create(held(name))
        if name == "b":
            both(
                lambda registry: registry.delete(
                    USER, registry.type_of(POD), "default", "b", options=DeleteOptions()
                )
            )
        both.patch(POD, name, {"metadata": {"finalizers": None}})
    assert b'"name":"b"' not in export(both.fast)


# -- sizes of sets -----------------------------------------------------------------------------

FIGURES = "deployment.kubernetes.io/desired-replicas"


def replica_set(name: str) -> JsonObject:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": SPEC["containers"]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    created = obj("apps/v1", "ReplicaSet", name, spec)
    return {**created, "metadata": {**created["metadata"], "annotations": {FIGURES: "1"}}}


def sized(size: object, figure: object = None) -> JsonObject:
    patch: JsonObject = {"spec": {"replicas": size}}
    return patch if figure is None else {**patch, "metadata": {"annotations": {FIGURES: figure}}}


def test_a_set_whose_size_has_changed_once_changes_it_without_looking(both: Both) -> None:
    both.create(replica_set("a"))
    both.patch(REPLICA_SET, "a", sized(2, "2"))
    looked = both.validated
    for size in (3, 0, 7):
        both.patch(REPLICA_SET, "a", sized(size, str(size)))
        status = {"status": {"replicas": size, "observedGeneration": size}}
        both.patch(REPLICA_SET, "a", status, "status")
    assert both.validated == looked


@pytest.mark.parametrize(
    "patch",
    [
        sized(-1),
        sized(True),
        sized(2.0),
        sized("2"),
        sized(None),
        sized(1 << 31),
        sized(3),
        sized(4, 4),
        sized(4, "four"),
        sized(4, "9" * 11),
        {**sized(4), "metadata": {}},
        {**sized(4), "metadata": {"annotations": {}}},
        {**sized(4), "metadata": {"annotations": {"new": "4"}}},
        {**sized(4), "metadata": {"annotations": {FIGURES: "4"}, "labels": {"a": "b"}}},
        {**sized(4), "metadata": {"resourceVersion": "1"}},
        {**sized(4), "status": {"replicas": 4}},
        {"spec": {"replicas": 4, "minReadySeconds": 5}},
        {"spec": {"replicas": 4, "template": {"spec": {"containers": None}}}},
    ],
)
def test_whatever_else_is_said_of_a_set_is_looked_at(both: Both, patch: JsonObject) -> None:
    both.create(replica_set("a"))
    for size in (2, 3):
        both.patch(REPLICA_SET, "a", sized(size))
    looked = both.validated
    told = both.patch(REPLICA_SET, "a", patch)
    assert both.validated > looked or is_refused(told)
    both.patch(REPLICA_SET, "a", sized(9))


def test_metadata_with_empty_maps_lose_them_with_the_next_status(both: Both) -> None:
    both.create(replica_set("a"))
    both.patch(REPLICA_SET, "a", sized(2))
    both.patch(REPLICA_SET, "a", {"metadata": {"labels": {}, "annotations": {FIGURES: None}}})
    both.patch(REPLICA_SET, "a", sized(3))
    for size in (4, 5):
        both.patch(REPLICA_SET, "a", {"status": {"replicas": size}}, "status")


# -- whole worlds ------------------------------------------------------------------------------


def test_worlds_of_jobs_and_rollouts_end_alike() -> None:
    assert world(plain=False) == world(plain=True)


def world(*, plain: bool) -> tuple[bytes, list[str]]:
    built = kubescene.ScenarioBuilder("both").create(make_node("n-$(INDEX)").cpu("8"), count=3)
    pod = {"metadata": {"annotations": {"kubescene.dev/run-time": "5m"}}, "spec": SPEC}
    failing = {**pod, "metadata": {"annotations": {"kubescene.dev/exit-code": "1"}}}
    built.step(2)
    for name, spec in (
        ("plain-$(INDEX)", {"template": pod}),
        ("wide-$(INDEX)", {"template": pod, "parallelism": 2, "completions": 3}),
        ("fails-$(INDEX)", {"template": failing, "backoffLimit": 1}),
        (
            "indexed-$(INDEX)",
            {"template": pod, "completions": 2, "parallelism": 2, "completionMode": "Indexed"},
        ),
        ("late-$(INDEX)", {"template": pod, "activeDeadlineSeconds": 60}),
    ):
        built.create(obj("batch/v1", "Job", name, spec), count=3)
    built.create(make_deployment("web").replicas(8))
    built.step(3).patch(
        "apps/v1", "Deployment", "web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
    )
    built.step(4).advance("20m").step(5)
    built.patch("batch/v1", "Job", "wide-1", {"spec": {"suspend": True}})
    built.patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 3}}).advance("1h")
    run = kubescene.run(built.done(), plain=plain)
    assert run.ok, run.message
    return run.cluster.export(), [repr(fact) for fact in run.log]
