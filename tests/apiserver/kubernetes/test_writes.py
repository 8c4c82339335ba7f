"""Create, update, patch, delete over HTTP."""

from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, config_map, pod
from kubescene.api.kinds import SCENARIO
from kubescene.apiserver.kubernetes.protobuf import MAGIC

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
WIDGET_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.size",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "selector": {"type": "string"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def define_widgets(http: Http) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert http.post(definitions, WIDGET_DEFINITION).status == 201


def deployment(name: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


class TestCreate:
    def test_created_object_is_complete(self, http: Http) -> None:
        reply = http.post(PODS, pod("a"))
        assert reply.status == 201
        created = reply.json
        assert created["spec"]["schedulerName"] == "default-scheduler"
        assert created["status"]["phase"] == "Pending"
        assert created["metadata"]["uid"]
        assert created["metadata"]["namespace"] == "default"

    def test_apiversion_and_kind_may_be_left_to_the_url(self, http: Http) -> None:
        assert http.post(CONFIG_MAPS, {"metadata": {"name": "a"}}).status == 201

    def test_same_name_again_is_a_conflict(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        again = http.post(CONFIG_MAPS, config_map("a"))
        assert (again.status, again.reason) == (409, "AlreadyExists")
        assert again.message == 'configmaps "a" already exists'

    def test_generated_names_differ(self, http: Http) -> None:
        body = {"metadata": {"generateName": "job-"}}
        made = {http.post(CONFIG_MAPS, body).json["metadata"]["name"] for _ in range(3)}
        assert len(made) == 3

    def test_dry_run_answers_and_writes_nothing(self, http: Http) -> None:
        reply = http.post(f"{CONFIG_MAPS}?dryRun=All", config_map("a"))
        assert (reply.status, reply.json["metadata"]["name"]) == (201, "a")
        assert http.get(f"{CONFIG_MAPS}/a").status == 404

    @pytest.mark.parametrize("version", ["", "0", "v1", "-1", "18446744073709551616", "9" * 5000])
    def test_versions_that_say_nothing_are_ignored(self, http: Http, version: str) -> None:
        body = config_map("a")
        body["metadata"]["resourceVersion"] = version
        made = http.post(CONFIG_MAPS, body)
        assert made.status == 201
        assert made.json["metadata"]["resourceVersion"] != version

    @pytest.mark.parametrize("version", ["1", "007", "0" * 30 + "1", "18446744073709551615"])
    def test_a_new_object_has_no_version(self, http: Http, version: str) -> None:
        body = config_map("a")
        body["metadata"]["resourceVersion"] = version
        reply = http.post(CONFIG_MAPS, body)
        assert reply.status == 400
        assert "resourceVersion should not be set on objects to be created" in reply.message

    def test_lists_of_a_yaml_body_are_read(self, http: Http) -> None:
        text = b"metadata: {name: a}\nspec: {containers: [{name: c, image: p, args: [x, y]}]}"
        reply = http.post(PODS, text, content_type="application/yaml")
        assert reply.json["spec"]["containers"][0]["args"] == ["x", "y"]

    def test_yaml_body_is_read(self, http: Http) -> None:
        text = b"metadata:\n  name: y\n  annotations: {when: 2001-01-01}\ndata: {a: 'b'}\n"
        reply = http.post(CONFIG_MAPS, text, content_type="application/yaml")
        assert (reply.status, reply.json["data"]) == (201, {"a": "b"})
        assert reply.json["metadata"]["annotations"] == {"when": "2001-01-01"}

    def test_protobuf_body_is_read(self, http: Http) -> None:
        def field(number: int, data: bytes) -> bytes:
            return bytes([number << 3 | 2, len(data)]) + data

        type_meta = field(1, b"v1") + field(2, b"ConfigMap")
        raw = field(1, field(1, b"pb")) + field(2, field(1, b"k") + field(2, b"v"))
        body = MAGIC + field(1, type_meta) + field(2, raw)
        reply = http.post(CONFIG_MAPS, body, content_type="application/vnd.kubernetes.protobuf")
        assert (reply.status, reply.json["data"]) == (201, {"k": "v"})

    def test_namespace_must_exist(self, http: Http) -> None:
        reply = http.post("/api/v1/namespaces/void/configmaps", config_map("a"))
        assert (reply.status, reply.message) == (404, 'namespaces "void" not found')

    def test_invalid_object_names_every_field(self, http: Http) -> None:
        body = pod("UPPER", containers=[{"name": "c"}, {"name": "c", "image": "x"}])
        reply = http.post(PODS, body)
        assert (reply.status, reply.reason) == (422, "Invalid")
        fields = {cause["field"] for cause in reply.json["details"]["causes"]}
        assert {"metadata.name", "spec.containers[0].image", "spec.containers[1].name"} <= fields

    @pytest.mark.parametrize(
        ("manager", "why"),
        [
            ("a" * 129, "Too long: may not be more than 128 bytes"),
            ("a%01b", r'Invalid value: "a\u0001b": should only contain printable characters'),
        ],
    )
    def test_a_manager_that_cannot_be_noted(self, http: Http, manager: str, why: str) -> None:
        said = f'"" is invalid: fieldManager: {why}'
        reply = http.post(f"{CONFIG_MAPS}?fieldManager={manager}", config_map("a"))
        assert (reply.status, reply.message) == (422, f"CreateOptions.meta.k8s.io {said}")
        http.post(f"{CONFIG_MAPS}?fieldManager={'a' * 128}", config_map("a"))
        reply = http.put(f"{CONFIG_MAPS}/a?fieldManager={manager}", config_map("a"))
        assert (reply.status, reply.message) == (422, f"UpdateOptions.meta.k8s.io {said}")

    def test_metadata_of_a_custom_object_is_told_of_as_its_own(self, http: Http) -> None:
        """Not as that of the built-in kind whose metadata it is compared with."""
        scenario = {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": {"name": 1},
            "spec": {},
        }
        reply = http.post(f"/apis/{SCENARIO.api_version}/scenarios", scenario)
        assert (reply.status, reply.message) == (
            400,
            'Scenario in version "v1alpha1" cannot be handled as a Scenario: json: cannot '
            "unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        )


MISSPELT = {**config_map("a"), "dataa": {}, "metadata": {"name": "a", "lables": {}}}


def test_what_nobody_acts_on_is_warned_of(http: Http) -> None:
    """As `kubescene run` warns of it; kubectl shows the header."""
    policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    reply = http.post(policies, {"metadata": {"name": "p"}, "spec": {"podSelector": {}}})
    told = "NetworkPolicy has no effect: there is no network to keep apart"
    assert (reply.status, reply.all("warning")) == (201, [f'299 - "{told}"'])
    scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    assert not http.post(scalers, body).all("warning")  # its controller runs
    assert not http.post(CONFIG_MAPS, {"metadata": {"name": "c"}}).all("warning")


class TestFieldValidation:
    def test_strict_names_every_unknown_field(self, http: Http) -> None:
        reply = http.post(f"{CONFIG_MAPS}?fieldValidation=Strict", MISSPELT)
        assert reply.status == 400
        assert reply.message == (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
            'unknown field "metadata.lables", unknown field "dataa"'
        )
        assert http.get(f"{CONFIG_MAPS}/a").status == 404

    @pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
    def test_unknown_fields_are_warned_of_and_dropped(self, http: Http, query: str) -> None:
        reply = http.post(f"{CONFIG_MAPS}{query}", MISSPELT)
        assert reply.status == 201
        assert sorted(reply.all("warning")) == [
            r'299 - "unknown field \"dataa\""',
            r'299 - "unknown field \"metadata.lables\""',
        ]
        assert "dataa" not in reply.json

    def test_ignored_fields_are_dropped_silently(self, http: Http) -> None:
        reply = http.post(f"{CONFIG_MAPS}?fieldValidation=Ignore", MISSPELT)
        assert (reply.status, reply.all("warning")) == (201, [])
        assert "dataa" not in reply.json

    def test_duplicate_fields_are_found(self, http: Http) -> None:
        body = b'{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}'
        strict = http.post(f"{CONFIG_MAPS}?fieldValidation=Strict", body)
        assert (strict.status, 'duplicate field "data.k"' in strict.message) == (400, True)
        warned = http.post(CONFIG_MAPS, body)
        assert warned.all("warning") == [r'299 - "duplicate field \"data.k\""']
        assert warned.json["data"] == {"k": "2"}

    def test_strict_patch_refuses_unknown_fields(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        reply = http.patch(f"{CONFIG_MAPS}/a?fieldValidation=Strict", {"dataa": {}})
        assert (reply.status, 'unknown field "dataa"' in reply.message) == (422, True)

    def test_custom_kinds_follow_their_schema(self, http: Http) -> None:
        define_widgets(http)
        body = {"metadata": {"name": "w"}, "spec": {"size": 1, "colour": "red"}}
        strict = http.post(f"{WIDGETS}?fieldValidation=Strict", body)
        assert (strict.status, 'unknown field "spec.colour"' in strict.message) == (400, True)
        warned = http.post(WIDGETS, body)
        assert warned.all("warning") == [r'299 - "unknown field \"spec.colour\""']
        assert warned.json["spec"] == {"size": 1}

    def test_unknown_directive_is_refused(self, http: Http) -> None:
        reply = http.post(f"{CONFIG_MAPS}?fieldValidation=Sometimes", config_map("a"))
        assert reply.status == 422


class TestUpdate:
    def test_identity_survives_a_body_without_it(self, http: Http) -> None:
        created = http.post(CONFIG_MAPS, config_map("a")).json["metadata"]
        updated = http.put(f"{CONFIG_MAPS}/a", config_map("a", k="v")).json["metadata"]
        assert updated["uid"] == created["uid"]
        assert updated["creationTimestamp"] == created["creationTimestamp"]
        assert int(updated["resourceVersion"]) > int(created["resourceVersion"])

    def test_stale_version_is_a_conflict(self, http: Http) -> None:
        stale = http.post(CONFIG_MAPS, config_map("a")).json
        http.put(f"{CONFIG_MAPS}/a", config_map("a", k="v"))
        reply = http.put(f"{CONFIG_MAPS}/a", {**stale, "data": {"k": "w"}})
        assert (reply.status, reply.reason) == (409, "Conflict")
        assert "the object has been modified" in reply.message

    def test_same_content_keeps_the_version(self, http: Http) -> None:
        created = http.post(CONFIG_MAPS, config_map("a", k="v")).json
        assert http.put(f"{CONFIG_MAPS}/a", config_map("a", k="v")).json == created

    def test_missing_object_is_404(self, http: Http) -> None:
        assert http.put(f"{CONFIG_MAPS}/a", config_map("a")).status == 404

    @pytest.mark.parametrize(
        ("body", "complaint"),
        [
            (config_map("b"), "the name of the object (b) does not match the name on the URL (a)"),
            ({"metadata": {}}, "name must be provided"),
            (
                {"metadata": {"name": "a", "namespace": "kube-system"}},
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
            ),
        ],
        ids=["name", "no-name", "namespace"],
    )
    def test_body_must_fit_the_url(self, http: Http, body: Any, complaint: str) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        reply = http.put(f"{CONFIG_MAPS}/a", body)
        assert (reply.status, reply.message) == (400, complaint)


@pytest.mark.parametrize("verb", ["create", "update", "patch", "apply", "apply-anew"])
def test_an_object_of_no_namespace_loses_the_one_that_it_brings(http: Http, verb: str) -> None:
    """As upstream: charts give a namespace to whatever they hold."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    body = {**kind, "metadata": {"name": "a", "labels": {"l": verb}, "namespace": "team"}}
    if verb not in ("create", "apply-anew"):
        http.post(path, {**kind, "metadata": {"name": "a"}})
    reply = {
        "create": lambda: http.post(path, body),
        "update": lambda: http.put(f"{path}/a", body),
        "patch": lambda: http.patch(f"{path}/a", body),
        "apply": lambda: http.patch(f"{path}/a?fieldManager=m", body, "apply-patch+yaml"),
        "apply-anew": lambda: http.patch(f"{path}/a?fieldManager=m", body, "apply-patch+yaml"),
    }[verb]()
    assert reply.status in (200, 201), reply.message
    assert reply.json["metadata"]["labels"] == {"l": verb}
    assert "namespace" not in reply.json["metadata"]


class TestPatch:
    @pytest.mark.parametrize(
        ("kind", "patch"),
        [
            ("merge-patch+json", {"data": {"b": "2", "a": None}}),
            ("strategic-merge-patch+json", {"data": {"b": "2", "a": None}}),
            (
                "json-patch+json",
                [
                    {"op": "remove", "path": "/data/a"},
                    {"op": "add", "path": "/data/b", "value": "2"},
                ],
            ),
        ],
        ids=["merge", "strategic", "json"],
    )
    def test_three_patches_do_the_same(self, http: Http, kind: str, patch: Any) -> None:
        http.post(CONFIG_MAPS, config_map("a", a="1"))
        reply = http.patch(f"{CONFIG_MAPS}/a", patch, kind)
        assert (reply.status, reply.json["data"]) == (200, {"b": "2"})

    def test_containers_merge_by_name(self, http: Http) -> None:
        http.post(DEPLOYMENTS, deployment("d"))
        sidecar = {"name": "side", "image": "pause"}
        patch = {"spec": {"template": {"spec": {"containers": [sidecar]}}}}
        spec = http.patch(f"{DEPLOYMENTS}/d", patch, "strategic-merge-patch+json").json["spec"]
        assert sorted(c["name"] for c in spec["template"]["spec"]["containers"]) == ["c", "side"]

    def test_version_in_a_patch_is_a_condition(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        reply = http.patch(f"{CONFIG_MAPS}/a", {"metadata": {"resourceVersion": "1"}})
        assert (reply.status, reply.reason) == (409, "Conflict")

    def test_failed_test_operation_is_refused(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a", k="v"))
        patch = [{"op": "test", "path": "/data/k", "value": "w"}]
        assert http.patch(f"{CONFIG_MAPS}/a", patch, "json-patch+json").status == 422

    def test_other_media_types_are_415_with_the_accepted_ones(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        reply = http.patch(f"{CONFIG_MAPS}/a", {}, "json")
        assert (reply.status, reply.reason) == (415, "UnsupportedMediaType")
        assert "application/strategic-merge-patch+json" in reply.message

    def test_custom_kinds_have_no_strategic_patch(self, http: Http) -> None:
        define_widgets(http)
        http.post(WIDGETS, {"metadata": {"name": "w"}})
        reply = http.patch(f"{WIDGETS}/w", {}, "strategic-merge-patch+json")
        assert reply.status == 415
        assert "strategic" not in reply.message

    def test_dry_run_shows_the_result_only(self, http: Http) -> None:
        before = http.post(CONFIG_MAPS, config_map("a")).json
        reply = http.patch(f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"k": "v"}})
        assert reply.json["data"] == {"k": "v"}
        assert http.get(f"{CONFIG_MAPS}/a").json == before


class TestDelete:
    def test_deleted_object_is_gone(self, http: Http) -> None:
        uid = http.post(CONFIG_MAPS, config_map("a")).json["metadata"]["uid"]
        reply = http.delete(f"{CONFIG_MAPS}/a")
        assert (reply.status, reply.json["status"]) == (200, "Success")
        assert reply.json["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
        assert http.get(f"{CONFIG_MAPS}/a").status == 404
        assert http.delete(f"{CONFIG_MAPS}/a").status == 404

    def test_finalizer_keeps_the_object(self, http: Http) -> None:
        body = config_map("a")
        body["metadata"]["finalizers"] = ["example.com/hold"]
        http.post(CONFIG_MAPS, body)
        reply = http.delete(f"{CONFIG_MAPS}/a")
        assert reply.json["metadata"]["deletionTimestamp"]
        http.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
        assert http.get(f"{CONFIG_MAPS}/a").status == 404

    def test_assigned_pod_gets_its_grace(self, http: Http) -> None:
        http.post(PODS, pod("a", nodeName="n1"))
        marked = http.delete(f"{PODS}/a", {"gracePeriodSeconds": 5}).json
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 5
        gone = http.delete(f"{PODS}/a", {"gracePeriodSeconds": 0}).json
        assert (gone["kind"], gone["metadata"]["uid"]) == ("Pod", marked["metadata"]["uid"])
        assert http.get(f"{PODS}/a").status == 404

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (PODS, pod("a")),
            ("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}]}}),
            ("/api/v1/namespaces/default/serviceaccounts", {}),
            ("/api/v1/namespaces/default/resourcequotas", {}),
            ("/api/v1/namespaces/default/podtemplates", {"template": pod("a")}),
            ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "example.com/p"}),
            ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}),
        ],
    )
    @pytest.mark.parametrize("query", ["", "?dryRun=All"])
    def test_some_are_shown_when_they_go(
        self, http: Http, path: str, body: dict[str, Any], query: str
    ) -> None:
        made = http.post(path, {**body, "metadata": {"name": "a"}})
        assert made.status == 201, made.body
        reply = http.delete(f"{path}/a{query}")
        assert (reply.status, reply.json["kind"]) == (200, made.json["kind"])
        assert reply.json["metadata"]["uid"] == made.json["metadata"]["uid"]
        assert http.get(f"{path}/a").status == (200 if query else 404)

    def test_others_are_answered_with_a_status(self, http: Http) -> None:
        path = "/apis/apps/v1/namespaces/default/controllerrevisions"
        http.post(path, {"metadata": {"name": "a"}, "revision": 1, "data": {}})
        assert http.delete(f"{path}/a?dryRun=All").json["status"] == "Success"
        assert http.delete(f"{path}/a").json["details"]["name"] == "a"

    def test_preconditions_are_checked(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        reply = http.delete(f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}})
        assert (reply.status, reply.reason) == (409, "Conflict")

    def test_dry_run_deletes_nothing(self, http: Http) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        assert http.delete(f"{CONFIG_MAPS}/a?dryRun=All").status == 200
        assert http.delete(f"{CONFIG_MAPS}/a", {"dryRun": ["All"]}).status == 200
        assert http.get(f"{CONFIG_MAPS}/a").status == 200

    def test_collection_is_deleted_by_selector(self, http: Http) -> None:
        for name in ("a", "b"):
            body = config_map(name)
            body["metadata"]["labels"] = {"app": name}
            http.post(CONFIG_MAPS, body)
        reply = http.delete(f"{CONFIG_MAPS}?labelSelector=app%3Da")
        assert [item["metadata"]["name"] for item in reply.json["items"]] == ["a"]
        left = http.get(CONFIG_MAPS).json["items"]
        assert [item["metadata"]["name"] for item in left] == ["b"]

    @pytest.mark.parametrize(
        "options",
        [
            {"gracePeriodSeconds": "soon"},
            {"propagationPolicy": "Sideways"},
            {"kind": "Pod"},
            {"dryRun": ["Some"]},
            {"preconditions": "none"},
        ],
        ids=["grace", "policy", "kind", "dry-run", "preconditions"],
    )
    def test_senseless_options_delete_nothing(self, http: Http, options: Any) -> None:
        http.post(CONFIG_MAPS, config_map("a"))
        assert http.delete(f"{CONFIG_MAPS}/a", options).status == 400
        assert http.get(f"{CONFIG_MAPS}/a").status == 200


def test_tables_follow_a_definition_that_changes(http: Http) -> None:
    define_widgets(http)
    http.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 3}})
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert http.get(f"{WIDGETS}/w", table).json["rows"][0]["cells"] == ["w", 3]
    path = "/spec/versions/0/additionalPrinterColumns/0/jsonPath"
    renamed = [{"op": "replace", "path": path, "value": ".metadata.name"}]
    typed = [{"op": "replace", "path": path.replace("jsonPath", "type"), "value": "string"}]
    assert http.patch(definition, renamed + typed, "json-patch+json").status == 200
    assert http.get(f"{WIDGETS}/w", table).json["rows"][0]["cells"] == ["w", "w"]
