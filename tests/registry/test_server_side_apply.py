"""Server-side apply and ``managedFields``, against the real thing and through the registry.

``data/apply.jsonl.gz`` holds sequences of applies and updates with what Kubernetes v1.36 makes of
them: its field manager (``k8s.io/apimachinery/pkg/util/managedfields``), given the built-in types,
their defaults and ``structured-merge-diff``. Times are recorded as there or not.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.api import conversion
from kubescene.api.builtin import builtin_scheme
from kubescene.api.kinds import POD
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.clock import VirtualClock
from kubescene.errors import ApiError, BadRequestError, ConflictError, InvalidError, NotFoundError
from kubescene.registry import Registry, decoding
from kubescene.registry.clocks import Clocks
from kubescene.registry.custom_resources import CustomResources
from kubescene.registry.ownership import Application, Ownership, check_target
from kubescene.store import Store

RECORDED = (Path(__file__).parent / "data/apply.jsonl.gz").read_bytes()
SEQUENCES = [json.loads(line) for line in gzip.decompress(RECORDED).splitlines()]
USER = Actor("user")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
CRON_TAB = GroupVersionKind("stable.example.com", "v1", "CronTab")


# -- as upstream ---------------------------------------------------------------------------


class Played:
    """A sequence on one object."""

    def __init__(self) -> None:
        self.scheme = builtin_scheme()
        self.custom = CustomResources(self.scheme, Store())
        self.ownership = Ownership(self.scheme, self.custom, Clocks(VirtualClock()))
        self.live: dict[str, Any] | None = None

    def take(self, step: dict[str, Any]) -> dict[str, Any]:
        """The object after a step, in the version of the step."""
        obj, manager, subresource = step["object"], step["manager"], step.get("subresource", "")
        served = self.scheme.of_kind(obj["apiVersion"], obj["kind"])
        if step["op"] == "apply":
            request = Application(obj, served, manager, step.get("force", False), subresource)
            new = self.ownership.applied(
                request,
                self.live,
                lambda merged: decoding.accepted(merged, served, self.custom),
                tracked=True,
            )
        else:
            body = decoding.accepted(obj, served, self.custom)
            if self.live is None:
                new = self.ownership.created(body, served, manager)
            else:
                new = self.ownership.updated(body, self.live, served, manager, subresource)
        self.live = new
        return conversion.from_storage(new, served)


def without_empty(value: Any) -> Any:
    """Empty lists and maps go: Go omits them, and whether it does is not what is tested here."""
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_empty(member) for name, member in value.items()}
    return {name: member for name, member in kept.items() if member not in (None, {}, [])}


def entries_of(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries with their time as there or not, in the order that they have without it."""
    found = []
    for entry in obj["metadata"].get("managedFields", []):
        rest = {name: value for name, value in entry.items() if name != "time"}
        found.append({**rest, "timed": "time" in entry})
    return in_order(found)


def in_order(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("operation", "manager", "apiVersion", "subresource")
    return sorted(entries, key=lambda entry: [entry.get(name, "") for name in names])


def causes_of(causes: Any) -> list[tuple[str, ...]]:
    """Causes without an order: upstream tells managers in that of a Go map."""
    return sorted((each["reason"], each["message"], each["field"]) for each in causes)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda each: each["name"].replace(" ", "-"))
def test_field_manager_agrees_with_kubernetes(sequence: dict[str, Any]) -> None:
    played = Played()
    for step in sequence["steps"]:
        if "error" in step:
            with pytest.raises(ApiError) as caught:
                played.take(step)
            assert caught.value.message == step["error"]["message"]
            told = [cause.to_dict() for cause in caught.value.causes]
            assert causes_of(told) == causes_of(step["error"]["causes"])
            continue
        obj = played.take(step)
        assert entries_of(obj) == in_order(step["managed"])
        if "outcome" in step:
            kept = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
            assert without_empty({**obj, "metadata": kept}) == without_empty(step["outcome"])


# -- through the registry ------------------------------------------------------------------


@pytest.fixture
def tracking(registry: Registry) -> Registry:
    registry.track_fields = True
    return registry


@pytest.fixture(params=[True, False], ids=["tracked", "untracked"])
def either(request: pytest.FixtureRequest, registry: Registry) -> Registry:
    registry.track_fields = request.param
    return registry


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def apply(
    registry: Registry,
    obj: dict[str, Any],
    manager: str = "one",
    *,
    force: bool = False,
    subresource: str = "",
    dry_run: bool = False,
) -> dict[str, Any]:
    gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    options = WriteOptions(field_manager=manager, force=force, dry_run=dry_run)
    name = obj["metadata"]["name"]
    return registry.patch(
        USER,
        registry.type_of(gvk),
        "default",
        name,
        obj,
        PatchType.APPLY,
        subresource=subresource,
        options=options,
    ).decode()


def stored(registry: Registry, gvk: GroupVersionKind, name: str) -> dict[str, Any]:
    return registry.record(registry.type_of(gvk), "default", name).decode()


def managers(obj: dict[str, Any]) -> list[str]:
    return [
        "/".join(filter(None, (each["manager"], each["operation"], each.get("subresource"))))
        for each in obj["metadata"].get("managedFields", [])
    ]


def test_apply_creates_what_is_not_there(either: Registry) -> None:
    obj = apply(either, config_map(a="1"))
    assert obj["data"] == {"a": "1"}
    assert managers(obj) == ["one/Apply"]
    assert obj["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_apply_removes_only_what_the_manager_stated_before(either: Registry) -> None:
    apply(either, config_map(a="1", b="2"))
    apply(either, config_map(c="3"), "two")
    assert apply(either, config_map(a="1"))["data"] == {"a": "1", "c": "3"}


def test_conflict_names_owner_and_field(either: Registry) -> None:
    apply(either, config_map(a="1"))
    with pytest.raises(ConflictError) as caught:
        apply(either, config_map(a="2"), "two")
    assert caught.value.to_status()["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "one": .data.a'


def test_force_takes_the_field(either: Registry) -> None:
    apply(either, config_map(a="1"))
    obj = apply(either, config_map(a="2"), "two", force=True)
    assert (obj["data"], managers(obj)) == ({"a": "2"}, ["two/Apply"])


def test_apply_that_changes_nothing_is_not_written(either: Registry) -> None:
    first = apply(either, config_map(a="1"))
    revision = either.store.revision
    assert apply(either, config_map(a="1")) == first
    assert either.store.revision == revision


def test_dry_run_shows_the_outcome_only(either: Registry) -> None:
    apply(either, config_map(a="1"))
    assert apply(either, config_map(a="2"), dry_run=True)["data"] == {"a": "2"}
    assert stored(either, CONFIG_MAP, "c")["data"] == {"a": "1"}


def test_updaters_own_what_they_change_only_if_tracked(either: Registry) -> None:
    apply(either, config_map(a="1"))
    either.patch(
        Actor("scaler/v1"),
        either.type_of(CONFIG_MAP),
        "default",
        "c",
        {"data": {"a": "2"}},
        PatchType.MERGE,
    )
    obj = stored(either, CONFIG_MAP, "c")
    if either.track_fields:
        assert managers(obj) == ["scaler/Update"]
        with pytest.raises(ConflictError, match=r'conflict with "scaler" using v1: \.data\.a'):
            apply(either, config_map(a="1"))
    else:
        assert managers(obj) == ["one/Apply"]
        assert apply(either, config_map(a="1"))["data"] == {"a": "1"}


def test_untracked_objects_have_no_entries(registry: Registry) -> None:
    assert "managedFields" not in registry.create(USER, config_map(a="1")).decode()["metadata"]


def test_object_from_before_tracking_is_somebody_elses(registry: Registry) -> None:
    registry.create(USER, config_map(a="1"))
    registry.track_fields = True
    with pytest.raises(ConflictError, match=r'"before-first-apply" using v1: \.data\.a'):
        apply(registry, config_map(a="2"))


def test_update_without_entries_keeps_them(either: Registry) -> None:
    before = apply(either, config_map(a="1"))
    either.update(USER, {**config_map(a="1"), "immutable": False})
    after = stored(either, CONFIG_MAP, "c")
    assert before["metadata"]["managedFields"][0] in after["metadata"]["managedFields"]


@pytest.mark.parametrize("entries", [[], [{}]], ids=["empty-list", "empty-entry"])
def test_client_may_reset_ownership(tracking: Registry, entries: list[Any]) -> None:
    apply(tracking, config_map(a="1"))
    tracking.update(
        USER, {**config_map(a="1"), "metadata": {"name": "c", "managedFields": entries}}
    )
    assert managers(stored(tracking, CONFIG_MAP, "c")) == []


def test_client_may_rewrite_ownership(tracking: Registry) -> None:
    obj = tracking.create(USER, config_map(a="1")).decode()
    [entry] = obj["metadata"]["managedFields"]
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [renamed(entry)]}]
    kind = tracking.type_of(CONFIG_MAP)
    tracking.patch(USER, kind, "default", "c", patch, PatchType.JSON)
    assert managers(stored(tracking, CONFIG_MAP, "c")) == ["kubectl/Apply"]


def renamed(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "manager": "kubectl", "operation": "Apply"}


def test_writes_through_a_subresource_say_so(tracking: Registry) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    tracking.create(Actor("user"), pod)
    kind = tracking.type_of(POD)
    status = {"status": {"phase": "Running"}}
    tracking.patch(
        Actor("kubelet"), kind, "default", "p", status, PatchType.MERGE, subresource="status"
    )
    tracking.bind(Actor("scheduler"), "default", "p", {"target": {"name": "n"}})
    obj = stored(tracking, POD, "p")
    assert managers(obj) == ["kubelet/Update/status", "user/Update"]
    assert obj["metadata"]["managedFields"][0]["fieldsV1"] == {"f:status": {"f:phase": {}}}


def test_scaling_is_noted_with_its_subresource(tracking: Registry) -> None:
    apply(tracking, deployment(replicas=1))
    kind, patch = tracking.type_of(DEPLOYMENT), {"spec": {"replicas": 2}}
    options = WriteOptions(field_manager="hpa", through="scale")
    tracking.patch(USER, kind, "default", "w", patch, PatchType.MERGE, options=options)
    assert "hpa/Update/scale" in managers(stored(tracking, DEPLOYMENT, "w"))
    with pytest.raises(ConflictError, match='"hpa" with subresource "scale" using apps/v1'):
        apply(tracking, deployment(replicas=1))


def deployment(**spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


def test_apply_to_the_status_leaves_the_rest(tracking: Registry) -> None:
    apply(tracking, deployment(replicas=2))
    body = {**deployment(replicas=7), "status": {"replicas": 2}}
    obj = apply(tracking, body, "controller", subresource="status", force=True)
    assert (obj["spec"]["replicas"], obj["status"]["replicas"]) == (2, 2)
    assert "controller/Apply/status" in managers(obj)


def test_in_process_clients_apply_in_their_own_name(client: DirectClient) -> None:
    ref = ObjectRef(CONFIG_MAP, name="c", namespace="default")
    record = client.patch(ref, config_map(a="1"), patch_type=PatchType.APPLY)
    assert managers(record.decode()) == ["user/Apply"]


# -- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "manager", "error", "message"),
    [
        ({}, "", InvalidError, "fieldManager: Required value: is required for apply patch"),
        ({"kind": "Secret"}, "one", BadRequestError, "invalid object type: /v1, Kind=Secret"),
        ({"metadata": {"name": "d"}}, "one", BadRequestError, r"the name of the object \(d\)"),
        (
            {"metadata": {"name": "c", "namespace": "other"}},
            "one",
            BadRequestError,
            "the namespace of the provided object does not match",
        ),
        (
            {"metadata": {"name": "c", "managedFields": []}},
            "one",
            BadRequestError,
            "metadata.managedFields must be nil",
        ),
        ({"dataa": {}}, "one", ApiError, r"\.dataa: field not declared in schema"),
        ({"metadata": 1}, "one", ApiError, r"\.metadata: expected map, got &\{1\}"),
    ],
    ids=["manager", "kind", "name", "namespace", "managed-fields", "unknown-field", "type"],
)
def test_bad_configuration_is_refused(
    either: Registry, change: Any, manager: str, error: type[ApiError], message: str
) -> None:
    options = WriteOptions(field_manager=manager)
    with pytest.raises(error, match=message):
        either.patch(
            USER,
            either.type_of(CONFIG_MAP),
            "default",
            "c",
            {**config_map(a="1"), **change},
            PatchType.APPLY,
            options=options,
        )


def test_status_of_what_is_not_there_cannot_be_applied(either: Registry) -> None:
    with pytest.raises(NotFoundError):
        apply(either, deployment(), subresource="status")


def test_stale_resource_version_is_a_conflict(either: Registry) -> None:
    apply(either, config_map(a="1"))
    body = {**config_map(a="2"), "metadata": {"name": "c", "resourceVersion": "1"}}
    with pytest.raises(ConflictError, match="the object has been modified"):
        apply(either, body)


# -- custom kinds --------------------------------------------------------------------------

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "args": {"type": "array", "items": {"type": "string"}},
                                    "jobs": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "at": {"type": "string"},
                                            },
                                        },
                                    },
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "free": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"ready": {"type": "boolean"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def cron_tab(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "t"},
        "spec": spec,
    }


@pytest.fixture
def with_cron_tabs(tracking: Registry) -> Registry:
    tracking.create(USER, DEFINITION)
    return tracking


def test_custom_objects_divide_as_their_schema_says(with_cron_tabs: Registry) -> None:
    obj = apply(
        with_cron_tabs,
        cron_tab(
            tags=["a"],
            args=["x"],
            jobs=[{"name": "j", "at": "1"}],
            whole={"a": "b"},
            free={"deep": {"er": 1}, "list": [1]},
        ),
    )
    assert obj["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:spec": {
            "f:tags": {'v:"a"': {}},
            "f:args": {},
            "f:jobs": {'k:{"name":"j"}': {".": {}, "f:name": {}, "f:at": {}}},
            "f:whole": {},
            "f:free": {"f:deep": {".": {}, "f:er": {}}, "f:list": {}},
        }
    }


def test_appliers_of_a_custom_object_share_it(with_cron_tabs: Registry) -> None:
    apply(with_cron_tabs, cron_tab(tags=["a", "b"], jobs=[{"name": "j", "at": "1"}]))
    second = cron_tab(tags=["c"], jobs=[{"name": "k"}], free={"x": {"y": 1}})
    apply(with_cron_tabs, second, "two")
    obj = apply(with_cron_tabs, cron_tab(tags=["b"]))
    assert obj["spec"] == {"tags": ["b", "c"], "jobs": [{"name": "k"}], "free": {"x": {"y": 1}}}


def test_created_custom_object_is_its_writers(with_cron_tabs: Registry) -> None:
    obj = with_cron_tabs.create(USER, cron_tab(replicas=1)).decode()
    [entry] = obj["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:replicas": {}}}


def test_what_is_applied_has_the_name_of_the_request_also_where_there_are_no_namespaces() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "dropped"}}
    assert check_target(node, "", "n", namespaced=False)["metadata"] == {"name": "n"}
    with pytest.raises(BadRequestError, match="name"):
        check_target(node, "", "other", namespaced=False)
