"""Pods in columns say what their objects say, with everything that is equal told once."""

from typing import Any

import orjson
import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, pod
from kubescene.api.kinds import SCENARIO
from kubescene.api.records import make_record, traits
from kubescene.apiserver.kubernetes.columns import pods_in_columns
from kubescene.types import JsonObject

COLUMNS = f"application/json;as=Columns;g={SCENARIO.group};v={SCENARIO.version}"
WORKLOAD = "ReplicaSet"


def owned(name: str, number: int) -> JsonObject:
    """A pod as controllers make it; every third waits, every fifth is on its way out."""
    owner = {"apiVersion": "apps/v1", "kind": WORKLOAD, "name": f"rs-{number % 2}", "uid": "u"}
    made = pod(name)
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    made["metadata"]["labels"] = {"app": f"app-{number % 2}"}
    if number % 3:
        made["spec"]["nodeName"] = f"node-{number % 4}"
    if not number % 5:
        made["metadata"]["finalizers"] = ["example.com/held"]
    return made


def rebuilt(told: JsonObject) -> list[JsonObject]:
    """As much of the objects as columns hold."""

    def of(name: str, place: int) -> Any:
        return told[name]["values"][told[name]["at"][place]]

    return [
        {
            "name": name,
            "deleting": bool(told["deleting"][place]),
            **{each: of(each, place) for each in ("namespace", "node", "labels", "owner", "spec")},
            "status": of("status", place),
        }
        for place, name in enumerate(told["names"])
    ]


def expected(obj: JsonObject) -> JsonObject:
    metadata, spec, status = obj["metadata"], dict(obj["spec"]), obj.get("status", {})
    node = spec.pop("nodeName", "")
    owners = [each for each in metadata.get("ownerReferences", ()) if each.get("controller")]
    return {
        "name": metadata["name"],
        "deleting": "deletionTimestamp" in metadata,
        "namespace": metadata["namespace"],
        "node": node,
        "labels": metadata.get("labels", {}),
        "owner": f"{owners[0]['kind']}/{owners[0]['name']}" if owners else "",
        "spec": spec,
        "status": {"phase": status.get("phase", "")} if node else status,
    }


def test_columns_hold_what_the_objects_say(http: Http) -> None:
    for number in range(30):
        assert http.post(PODS, owned(f"pod-{number:02}", number)).status == 201
        if not number % 5:
            assert http.delete(f"{PODS}/pod-{number:02}").status == 200
    objects = http.get(PODS).json
    told = http.get(PODS, accept=COLUMNS).json
    assert told["metadata"] == objects["metadata"]
    found = rebuilt(told)
    for each in found:
        each["spec"].pop("nodeName", None)
    assert found == [expected(each) for each in objects["items"]]
    assert [len(told[name]["values"]) for name in ("labels", "owner", "namespace")] == [2, 2, 1]


def test_columns_are_selected_and_paged_like_any_list(http: Http) -> None:
    for number in range(6):
        assert http.post(PODS, owned(f"pod-{number}", number)).status == 201
    assert http.get(f"{PODS}?labelSelector=app=app-1", accept=COLUMNS).json["names"] == [
        "pod-1",
        "pod-3",
        "pod-5",
    ]
    page = http.get(f"{PODS}?limit=4", accept=COLUMNS).json
    rest = http.get(f"{PODS}?limit=4&continue={page['metadata']['continue']}", accept=COLUMNS).json
    assert page["names"] + rest["names"] == [f"pod-{number}" for number in range(6)]


@pytest.mark.parametrize("path", [CONFIG_MAPS, f"{PODS}?watch=true", f"{PODS}/pod-1"])
def test_nothing_else_has_columns(http: Http, path: str) -> None:
    assert http.post(PODS, owned("pod-1", 1)).status == 201
    assert http.get(path, accept=COLUMNS).status == 406
    if "watch" not in path:
        assert http.get(path, accept=f"{COLUMNS}, application/json").status == 200


@pytest.mark.parametrize("status", [None, {"phase": "Running", "podIP": "10.0.0.1"}])
@pytest.mark.parametrize("node", ["", "node-1"])
def test_pods_that_were_not_encoded_in_parts_are_read(node: str, status: JsonObject | None) -> None:
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "b", "resourceVersion": "1"},
        "spec": {"containers": [], **({"nodeName": node} if node else {})},
        **({"status": status} if status else {}),
    }
    told = orjson.loads(pods_in_columns([make_record(traits.PODS, obj, 1)], {}))
    assert rebuilt(told) == [expected(obj)]


def test_nobody_is_in_no_columns() -> None:
    assert rebuilt(orjson.loads(pods_in_columns([], {}))) == []
