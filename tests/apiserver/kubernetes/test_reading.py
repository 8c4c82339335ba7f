"""GET and list: forms, selectors, pages, versions."""

from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, config_map, pod
from kubescene.apiserver.negotiation import PLAIN, ResponseForm, ResponseShape, negotiate
from kubescene.errors import NotAcceptableError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
KUBECTL_ACCEPT = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


def names(document: Any) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


def create_maps(http: Http, *created: str) -> None:
    for name in created:
        assert http.post(CONFIG_MAPS, config_map(name)).status == 201


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("application/json", PLAIN),
        ("application/vnd.kubernetes.protobuf, */*", PLAIN),
        ("application/vnd.kubernetes.protobuf,application/json", PLAIN),
        (KUBECTL_ACCEPT, ResponseForm(ResponseShape.TABLE, "v1")),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            ResponseForm(ResponseShape.TABLE, "v1beta1"),
        ),
        ("application/json;as=Unknown;v=v1;g=meta.k8s.io, application/json", PLAIN),
        ("application/yaml", ResponseForm(media_type="application/yaml")),
        ("application/json;q=0.5, application/yaml", ResponseForm(media_type="application/yaml")),
        (METADATA, ResponseForm(ResponseShape.METADATA)),
    ],
)
def test_first_servable_range_is_chosen(accept: str, form: ResponseForm) -> None:
    assert negotiate(accept) == form


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf", "image/*"])
def test_nothing_servable_is_406(accept: str) -> None:
    with pytest.raises(NotAcceptableError):
        negotiate(accept)


def test_object_is_served_with_its_version(http: Http) -> None:
    created = http.post(CONFIG_MAPS, config_map("a", key="value"))
    got = http.get(f"{CONFIG_MAPS}/a")
    assert (created.status, got.status) == (201, 200)
    assert got.json == created.json
    assert got.json["data"] == {"key": "value"}
    assert got.json["metadata"]["resourceVersion"].isdigit()


def test_missing_object_is_a_not_found_status(http: Http) -> None:
    reply = http.get(f"{PODS}/nope")
    assert reply.status == 404
    assert reply.json["kind"] == "Status"
    assert reply.json["details"] == {"name": "nope", "kind": "pods"}
    assert reply.message == 'pods "nope" not found'


def test_list_carries_kind_and_revision(http: Http) -> None:
    create_maps(http, "b", "a")
    listed = http.get("/api/v1/configmaps").json
    assert listed["kind"] == "ConfigMapList"
    assert names(listed)[:2] == ["a", "b"]
    newest = max(int(item["metadata"]["resourceVersion"]) for item in listed["items"])
    assert int(listed["metadata"]["resourceVersion"]) == newest


def test_table_has_the_columns_of_the_kind(http: Http) -> None:
    http.post(PODS, pod("a"))
    table = http.get(PODS, TABLE).json
    assert table["kind"] == "Table"
    headings = [column["name"] for column in table["columnDefinitions"]]
    assert headings[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:3] == ["a", "0/1", "Pending"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("include", "kind"),
    [("Object", "ConfigMap"), ("Metadata", "PartialObjectMetadata"), ("None", None)],
)
def test_rows_include_what_is_asked_for(http: Http, include: str, kind: str | None) -> None:
    create_maps(http, "a")
    row = http.get(f"{CONFIG_MAPS}/a?includeObject={include}", TABLE).json["rows"][0]
    assert row.get("object", {}).get("kind") == kind


def test_metadata_alone_leaves_the_rest_out(http: Http) -> None:
    create_maps(http, "a")
    one = http.get(f"{CONFIG_MAPS}/a", METADATA).json
    assert (one["kind"], sorted(one)) == (
        "PartialObjectMetadata",
        ["apiVersion", "kind", "metadata"],
    )
    many = http.get(CONFIG_MAPS, METADATA).json
    assert (many["kind"], names(many)) == ("PartialObjectMetadataList", ["a"])


def test_yaml_is_written_on_request(http: Http) -> None:
    create_maps(http, "a")
    reply = http.get(f"{CONFIG_MAPS}/a", "application/yaml")
    assert reply.all("content-type") == ["application/yaml"]
    assert b"kind: ConfigMap\n" in reply.body


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("labelSelector=app%3Da", ["a"]),
        ("labelSelector=app+in+(a,b)", ["a", "b"]),
        ("labelSelector=!app", ["c"]),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=metadata.name!%3Db", ["a", "c"]),
        ("fieldSelector=spec.nodeName%3Dn1", ["c"]),
        ("fieldSelector=status.phase%3DPending", ["a", "b", "c"]),
        ("fieldSelector=spec.restartPolicy%3DNever", ["b"]),
        ("fieldSelector=metadata.name%3Da&labelSelector=app%3Db", []),
    ],
)
def test_selectors_narrow_a_list(http: Http, query: str, found: list[str]) -> None:
    for made in (pod("a"), pod("b", restartPolicy="Never"), pod("c", nodeName="n1")):
        if (name := made["metadata"]["name"]) != "c":
            made["metadata"]["labels"] = {"app": name}
        assert http.post(PODS, made).status == 201
    assert names(http.get(f"{PODS}?{query}").json) == found


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=(",
        "fieldSelector=spec.color%3Dred",
        "fieldSelector=metadata.name",
        "limit=many",
        "resourceVersion=new",
        "continue=%25%25",
        "watch=perhaps",
    ],
)
def test_senseless_query_is_400(http: Http, query: str) -> None:
    reply = http.get(f"{PODS}?{query}")
    assert (reply.status, reply.reason) == (400, "BadRequest"), reply.body


class TestPages:
    def test_pages_show_the_state_of_the_first(self, http: Http) -> None:
        create_maps(http, "a", "b", "c", "d")
        first = http.get(f"{CONFIG_MAPS}?limit=2").json
        http.delete(f"{CONFIG_MAPS}/c")
        create_maps(http, "e")
        token = first["metadata"]["continue"]
        second = http.get(f"{CONFIG_MAPS}?limit=2&continue={token}").json
        assert (names(first), names(second)) == (["a", "b"], ["c", "d"])
        assert first["metadata"]["remainingItemCount"] == 2
        assert "continue" not in second["metadata"]
        versions = [page["metadata"]["resourceVersion"] for page in (first, second)]
        assert versions[0] == versions[1]

    def test_selected_pages_do_not_count_the_rest(self, http: Http) -> None:
        create_maps(http, "a", "b", "c")
        page = http.get(f"{CONFIG_MAPS}?limit=1&labelSelector=!x").json
        assert "continue" in page["metadata"]
        assert "remainingItemCount" not in page["metadata"]

    def test_forgotten_page_is_410_and_can_go_on(self, http: Http, small_window: None) -> None:
        create_maps(http, "a", "b", "c")
        token = http.get(f"{CONFIG_MAPS}?limit=1").json["metadata"]["continue"]
        for number in range(20):
            http.patch(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
        expired = http.get(f"{CONFIG_MAPS}?limit=1&continue={token}")
        assert (expired.status, expired.reason) == (410, "Expired")
        onward = expired.json["metadata"]["continue"]
        assert names(http.get(f"{CONFIG_MAPS}?continue={onward}").json) == ["b", "c"]

    def test_version_and_token_contradict_each_other(self, http: Http) -> None:
        create_maps(http, "a", "b")
        token = http.get(f"{CONFIG_MAPS}?limit=1").json["metadata"]["continue"]
        reply = http.get(f"{CONFIG_MAPS}?limit=1&continue={token}&resourceVersion=3")
        assert reply.status == 400


class TestVersions:
    def test_exact_version_shows_the_past(self, http: Http) -> None:
        create_maps(http, "a")
        version = http.get(CONFIG_MAPS).json["metadata"]["resourceVersion"]
        create_maps(http, "b")
        query = f"resourceVersion={version}&resourceVersionMatch=Exact"
        assert names(http.get(f"{CONFIG_MAPS}?{query}").json) == ["a"]

    @pytest.mark.parametrize("match", ["", "&resourceVersionMatch=NotOlderThan"])
    def test_version_is_a_lower_bound(self, http: Http, match: str) -> None:
        create_maps(http, "a", "b")
        assert names(http.get(f"{CONFIG_MAPS}?resourceVersion=1{match}").json) == ["a", "b"]

    def test_future_version_asks_to_come_again(self, http: Http) -> None:
        reply = http.get(f"{CONFIG_MAPS}?resourceVersion=999999")
        assert (reply.status, reply.reason) == (504, "Timeout")
        assert reply.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert reply.all("retry-after") == ["1"]

    @pytest.mark.parametrize(
        "query",
        [
            "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=1&resourceVersionMatch=Newer",
            "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
            "watch=1&sendInitialEvents=true",
        ],
    )
    def test_contradicting_options_are_422(self, http: Http, query: str) -> None:
        reply = http.get(f"{CONFIG_MAPS}?{query}")
        assert (reply.status, reply.reason) == (422, "Invalid")


AUTOSCALER = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 70,
    },
}


class TestServedVersions:
    def test_object_is_shown_in_the_version_of_the_path(self, http: Http) -> None:
        path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
        assert http.post(path.format("v1"), AUTOSCALER).status == 201
        newer = http.get(path.format("v2") + "/h").json
        assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
        older = http.get(path.format("v1")).json["items"][0]
        assert older["apiVersion"] == "autoscaling/v1"
        assert older["spec"]["targetCPUUtilizationPercentage"] == 70

    def test_events_of_both_groups_are_the_same(self, http: Http) -> None:
        event = {
            "metadata": {"name": "e"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "Scheduled",
            "action": "Binding",
            "type": "Normal",
            "note": "done",
            "reportingController": "s",
            "reportingInstance": "s-1",
        }
        created = http.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        assert created.status == 201, created.body
        query = "fieldSelector=involvedObject.name%3Dp"
        core = http.get(f"/api/v1/namespaces/default/events?{query}").json["items"][0]
        assert (core["message"], core["involvedObject"]["name"]) == ("done", "p")


def test_a_reply_for_people_is_indented(http: Http) -> None:
    http.post(CONFIG_MAPS, config_map("a", k="v"))
    for path in (f"{CONFIG_MAPS}/a", CONFIG_MAPS, f"{CONFIG_MAPS}/none", "/version"):
        plain, pretty = http.get(path), http.get(f"{path}?pretty=true")
        assert pretty.json == plain.json
        assert pretty.body.startswith(b'{\n  "')
        assert pretty.body.endswith(b"\n}\n")
        assert http.get(f"{path}?pretty=nonsense").body == plain.body


def test_a_text_for_people_stays_as_it_is(http: Http) -> None:
    assert http.get("/healthz?pretty=true").body == b"ok"
    headers = {"Accept-Encoding": "gzip"}
    packed = http.request("GET", "/openapi/v3/api/v1?pretty=true", headers=headers)
    assert packed.body[:2] == b"\x1f\x8b", "packed is packed"


def test_an_error_ends_with_a_line_break(http: Http) -> None:
    assert http.get(f"{CONFIG_MAPS}/none").body.endswith(b"}\n")
