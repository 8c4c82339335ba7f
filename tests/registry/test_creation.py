"""What the server itself adds to objects: names, addresses, selectors, generations, conditions."""

from typing import Any

import pytest

from kubescene.api.kinds import NAMESPACE, POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import AlreadyExistsError, BadRequestError, InvalidError
from kubescene.registry import Registry
from kubescene.registry.preparation import with_both_sources

SERVICE = GroupVersionKind("", "v1", "Service")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
GENERATION = "deprecated.daemonset.template.generation"

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def pod(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels or {}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": "a"}, "ports": ports, **spec},
    }


def workload(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", **more},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
    }


def created(client: DirectClient, obj: dict[str, Any]) -> dict[str, Any]:
    return client.create(obj).decode()


# -- decoding ------------------------------------------------------------------------------


def test_each_object_of_one_body_gets_the_defaults_of_its_metadata(client: DirectClient) -> None:
    body = {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    jobs = [
        created(client, {**workload("Job"), "apiVersion": "batch/v1", "spec": body} | named(name))
        for name in ("a", "b")
    ]
    # Labels that a Job has for want of others are those of its template, made-up ones included.
    for job in jobs:
        labels = job["metadata"]["labels"]
        assert labels == job["spec"]["template"]["metadata"]["labels"]
        assert (labels["app"], labels["job-name"]) == ("a", job["metadata"]["name"])
    spaces = [client.create({"apiVersion": "v1", "kind": "Namespace"} | named(n)) for n in "xyz"]
    orders = {tuple(space.decode()["metadata"]) for space in spaces}
    assert len(orders) == 1


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def test_unknown_fields_of_built_in_kinds_are_dropped(client: DirectClient) -> None:
    obj = {**pod(hostnam="x"), "extra": 1}
    stored = created(client, obj)
    assert "extra" not in stored
    assert "hostnam" not in stored["spec"]
    client.patch(ObjectRef(POD, "p", "default"), {"metadata": {"lables": {"a": "b"}}})
    assert "lables" not in client.get(ObjectRef(POD, "p", "default"))["metadata"]


def test_values_of_the_wrong_type_are_refused(client: DirectClient) -> None:
    message = (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go '
        "struct field PodSpec.spec.activeDeadlineSeconds of type int64"
    )
    with pytest.raises(BadRequestError) as caught:
        client.create(pod(activeDeadlineSeconds="soon"))
    assert caught.value.message == message
    client.create(pod())
    with pytest.raises(BadRequestError):
        client.patch(ObjectRef(POD, "p", "default"), {"metadata": {"labels": {"a": 1}}})


# -- names ---------------------------------------------------------------------------------


def test_generated_name_that_is_taken_is_replaced(client: DirectClient, registry: Registry) -> None:
    prefix = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
    names = [client.create(prefix).name for _ in range(3)]
    for name in names:
        client.delete(ObjectRef(GroupVersionKind("", "v1", "ConfigMap"), name, "default"))
    registry.identities.reset(registry.identities.seed)
    taken = {**prefix, "metadata": {"name": names[0]}}
    client.create(taken)
    assert client.create(prefix).name == names[1]


def test_name_generation_gives_up_after_eight_attempts(
    client: DirectClient, registry: Registry
) -> None:
    prefix = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
    for _ in range(8):
        client.create(prefix)
    registry.identities.reset(registry.identities.seed)
    with pytest.raises(AlreadyExistsError) as caught:
        client.create(prefix)
    assert "the server was not able to generate a unique name" in caught.value.message
    assert caught.value.retry_after_s == 1


def test_existing_name_is_told_apart_from_one_that_is_going(client: DirectClient) -> None:
    client.create(pod())
    with pytest.raises(AlreadyExistsError) as caught:
        client.create(pod())
    assert caught.value.message == 'pods "p" already exists'
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    client.delete(ObjectRef(NAMESPACE, "n"))
    with pytest.raises(AlreadyExistsError) as caught:
        client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert caught.value.message == 'object is being deleted: namespaces "n" already exists'


def test_system_metadata_cannot_be_chosen(client: DirectClient) -> None:
    obj = pod()
    obj["metadata"] |= {
        "uid": "mine",
        "generation": 9,
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "selfLink": "/x",
    }
    metadata = created(client, obj)["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert not {"deletionTimestamp", "selfLink"} & metadata.keys()
    client.patch(
        ObjectRef(POD, "p", "default"), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    assert "deletionTimestamp" not in client.get(ObjectRef(POD, "p", "default"))["metadata"]


# -- pods ----------------------------------------------------------------------------------


def test_gated_pod_says_so(client: DirectClient) -> None:
    status = created(client, pod(schedulingGates=[{"name": "wait"}]))["status"]
    assert status["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_label_keys_become_selector_requirements(client: DirectClient) -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["rev", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    soft = {"weight": 1, "podAffinityTerm": {**term, "mismatchLabelKeys": []}}
    none = {"topologyKey": "zone", "namespaceSelector": {}}
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term, none],
            "preferredDuringSchedulingIgnoredDuringExecution": [soft],
        }
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["rev"],
    }
    labels = {"rev": "1", "tenant": "t"}
    spec = created(client, pod(labels, affinity=affinity, topologySpreadConstraints=[spread]))[
        "spec"
    ]
    hard = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert hard[0]["labelSelector"] == {
        "matchLabels": {"app": "a"},
        "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["1"]},
            {"key": "tenant", "operator": "NotIn", "values": ["t"]},
        ],
    }
    assert "labelSelector" not in hard[1]
    preferred = spec["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred[0]["podAffinityTerm"]["labelSelector"]["matchExpressions"] == [
        {"key": "rev", "operator": "In", "values": ["1"]}
    ]
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]
    }


# -- services ------------------------------------------------------------------------------


def test_cluster_ips_are_handed_out_in_order(client: DirectClient) -> None:
    first = created(client, service("a"))["spec"]
    assert (first["clusterIP"], first["clusterIPs"]) == ("10.96.1.1", ["10.96.1.1"])
    assert (first["ipFamilies"], first["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert created(client, service("b", clusterIP="10.96.1.2"))["spec"]["clusterIP"] == "10.96.1.2"
    assert created(client, service("c"))["spec"]["clusterIP"] == "10.96.1.3"
    client.delete(ObjectRef(SERVICE, "b", "default"))
    assert created(client, service("d"))["spec"]["clusterIP"] == "10.96.1.2"


def test_headless_services_have_no_address(client: DirectClient) -> None:
    spec = created(client, service(clusterIP="None"))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    external = service("e", type="ExternalName", externalName="example.com")
    assert "clusterIP" not in created(client, external)["spec"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"clusterIP": "10.96.0.1"},
            'Service "s" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.1"]: failed to '
            "allocate IP 10.96.0.1: provided IP is already allocated",
        ),
        (
            {"clusterIP": "192.168.0.1"},
            'Service "s" is invalid: spec.clusterIPs: Invalid value: ["192.168.0.1"]: failed to '
            "allocate IP 192.168.0.1: the provided IP (192.168.0.1) is not in the valid range. The "
            "range of valid IPs is 10.96.0.0/12",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is '
            "not in the valid range. The range of valid ports is 30000-32767",
        ),
    ],
)
def test_addresses_that_cannot_be_had(client: DirectClient, spec: Any, message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        client.create(service(**spec))
    assert caught.value.message == message


def test_node_ports_are_handed_out_in_order_and_kept(client: DirectClient) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 443}]
    spec = created(client, service(type="NodePort", ports=ports))["spec"]
    assert [port["nodePort"] for port in spec["ports"]] == [30086, 30087]
    client.update({**service(type="NodePort", ports=ports)})
    kept = client.get(ObjectRef(SERVICE, "s", "default"))["spec"]
    assert [port["nodePort"] for port in kept["ports"]] == [30086, 30087]
    assert kept["clusterIP"] == spec["clusterIP"]


def test_local_load_balancers_have_a_health_check_port(client: DirectClient) -> None:
    local = service(type="LoadBalancer", externalTrafficPolicy="Local")
    spec = created(client, local)["spec"]
    assert (spec["ports"][0]["nodePort"], spec["healthCheckNodePort"]) == (30086, 30087)
    assert created(client, service("t", type="NodePort"))["spec"]["ports"][0]["nodePort"] == 30088


def test_type_change_gives_ports_and_addresses_back(client: DirectClient) -> None:
    client.create(service(type="LoadBalancer"))
    ref = ObjectRef(SERVICE, "s", "default")
    client.patch(ref, {"spec": {"type": "ClusterIP"}})
    assert "nodePort" not in client.get(ref)["spec"]["ports"][0]
    assert created(client, service("t", type="NodePort"))["spec"]["ports"][0]["nodePort"] == 30086
    client.patch(ref, {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert "clusterIP" not in client.get(ref)["spec"]


# -- workloads -----------------------------------------------------------------------------


def test_job_selects_its_own_pods(client: DirectClient) -> None:
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    job = created(
        client,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"template": template},
        },
    )
    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "job-name": "j",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
    }


CLAIM = {"kind": "PersistentVolumeClaim", "name": "x"}
FOO = {"apiGroup": "e.com", "kind": "F", "name": "x"}
ELSEWHERE = {**FOO, "namespace": "other"}


@pytest.mark.parametrize(
    ("source", "ref", "kept"),
    [
        (CLAIM, None, (CLAIM, CLAIM)),
        (None, CLAIM, (CLAIM, CLAIM)),
        (None, FOO, (FOO, FOO)),
        (FOO, FOO, (FOO, FOO)),
        (None, {**FOO, "namespace": ""}, (FOO, {**FOO, "namespace": ""})),
        (FOO, None, (None, None)),
        (None, ELSEWHERE, (None, None)),
        (FOO, ELSEWHERE, (None, None)),
        (CLAIM, ELSEWHERE, (CLAIM, CLAIM)),
        (None, None, (None, None)),
    ],
)
def test_both_sources_of_a_claim_say_the_same(
    client: DirectClient, source: Any, ref: Any, kept: tuple[Any, Any]
) -> None:
    """As kube-apiserver drops and completes them (KEP-1495), with its gates as they are."""
    made = client.create(claim(dataSource=source, dataSourceRef=ref)).decode()["spec"]
    assert (made.get("dataSource"), made.get("dataSourceRef")) == kept


def test_sources_of_a_claim_that_differ_are_refused(client: DirectClient) -> None:
    with pytest.raises(InvalidError, match="must match dataSourceRef"):
        client.create(claim(dataSource=FOO, dataSourceRef=CLAIM))


def claim(**spec: Any) -> dict[str, Any]:
    given = {name: value for name, value in spec.items() if value is not None}
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {**storage, **given},
    }


def test_daemon_set_counts_its_templates(client: DirectClient) -> None:
    ref = ObjectRef(DAEMON_SET, "w", "default")
    first = created(client, workload("DaemonSet"))["metadata"]
    assert (first["annotations"][GENERATION], first["generation"]) == ("1", 1)
    client.patch(
        ref, {"spec": {"minReadySeconds": 3}, "metadata": {"annotations": {GENERATION: "9"}}}
    )
    second = client.get(ref)["metadata"]
    assert (second["annotations"][GENERATION], second["generation"]) == ("1", 2)
    client.patch(ref, {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}})
    third = client.get(ref)["metadata"]
    assert (third["annotations"][GENERATION], third["generation"]) == ("2", 3)


def test_annotations_of_a_deployment_move_its_generation(client: DirectClient) -> None:
    ref = ObjectRef(DEPLOYMENT, "w", "default")
    client.create(workload("Deployment"))
    client.patch(ref, {"metadata": {"labels": {"a": "b"}}})
    assert client.get(ref)["metadata"]["generation"] == 1
    client.patch(ref, {"metadata": {"annotations": {"a": "b"}}})
    assert client.get(ref)["metadata"]["generation"] == 2


def test_namespace_finalizers_change_through_finalize_only(client: DirectClient) -> None:
    made = created(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert made["spec"]["finalizers"] == ["kubernetes"]
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    ref = ObjectRef(NAMESPACE, "n")
    client.patch(ref, {"spec": {"finalizers": None}})
    assert client.get(ref)["spec"]["finalizers"] == ["kubernetes"]
    client.delete(ref)
    client.patch(ref, {"spec": {"finalizers": None}}, subresource="finalize")
    assert client.find(ref) is None


def test_the_address_of_a_load_balancer_goes_with_its_type(client: DirectClient) -> None:
    ref = ObjectRef(SERVICE, "s", "default")
    client.create(service(type="LoadBalancer"))
    address = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}]}}
    client.patch(ref, {"status": address}, subresource="status")
    client.patch(ref, {"metadata": {"labels": {"a": "b"}}})
    assert client.get(ref)["status"] == address
    client.patch(ref, {"spec": {"type": "ClusterIP"}})
    assert client.get(ref)["status"] == {"loadBalancer": {}}


SEEN = "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": ""}, "type"),
        ({"type": "Odd"}, "type"),
        ({"eventTime": None}, "eventTime"),
        ({"series": {"count": 1, "lastObservedTime": SEEN}}, "series.count"),
        ({"series": {"count": 2}}, "series.lastObservedTime"),
        ({"deprecatedCount": 3}, "count"),
        ({"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"}, "firstTimestamp"),
        ({"deprecatedSource": {"component": "c"}}, "source"),
    ],
)
def test_events_of_the_newer_group_have_rules_of_their_own(
    client: DirectClient, change: dict[str, Any], field: str
) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": SEEN,
        "reportingController": "example.com/c",
        "reportingInstance": "c-0",
        "action": "Doing",
        "reason": "Done",
        "type": "Normal",
        "series": {"count": 2, "lastObservedTime": SEEN},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    }
    client.create(event)
    with pytest.raises(InvalidError, match=rf"{field}: (Invalid|Required) value"):
        client.create({**event, **change, "metadata": {"name": "f", "namespace": "default"}})


NO_SELECTOR = {"matchExpressions": [{"key": "a", "operator": ""}]}
NO_OPERATOR = 'matchExpressions[0].operator: Invalid value: "": not a valid selector operator'


def matching(selector: dict[str, Any]) -> dict[str, Any]:
    return {"namespaceSelector": selector, "objectSelector": selector}


@pytest.mark.parametrize(
    ("kind", "members", "paths"),
    [
        (
            ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
            {"aggregationRule": {"clusterRoleSelectors": [{}, NO_SELECTOR]}},
            ["aggregationRule.clusterRoleSelectors[1]"],
        ),
        (
            ("networking.k8s.io", "v1", "NetworkPolicy"),
            {
                "spec": {
                    "podSelector": NO_SELECTOR,
                    "ingress": [
                        {"from": [{"namespaceSelector": NO_SELECTOR}, {"podSelector": NO_SELECTOR}]}
                    ],
                    "egress": [{"to": [{"podSelector": NO_SELECTOR}]}],
                }
            },
            [
                "spec.podSelector",
                "spec.ingress[0].from[0].namespaceSelector",
                "spec.ingress[0].from[1].podSelector",
                "spec.egress[0].to[0].podSelector",
            ],
        ),
        (
            ("storage.k8s.io", "v1", "CSIStorageCapacity"),
            {"storageClassName": "a", "nodeTopology": NO_SELECTOR},
            ["nodeTopology"],
        ),
        (
            ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
            {
                "webhooks": [
                    {
                        "name": "a.b.c",
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "clientConfig": {"url": "https://x"},
                        **matching(NO_SELECTOR),
                    }
                ]
            },
            ["webhooks[0].namespaceSelector", "webhooks[0].objectSelector"],
        ),
        *(
            (
                ("admissionregistration.k8s.io", "v1", f"{kind}AdmissionPolicyBinding"),
                {"spec": {"policyName": "p", **more, "matchResources": matching(NO_SELECTOR)}},
                [
                    "spec.matchResources.namespaceSelector",
                    "spec.matchResources.objectSelector",
                ],
            )
            for kind, more in (("Validating", {"validationActions": ["Deny"]}), ("Mutating", {}))
        ),
    ],
)
def test_a_selector_that_is_none_is_refused_wherever_it_stands(
    client: DirectClient, kind: tuple[str, str, str], members: dict[str, Any], paths: list[str]
) -> None:
    """In the words and in the order of a kube-apiserver."""
    found = GroupVersionKind(*kind)
    body = {"apiVersion": found.api_version, "kind": found.kind, "metadata": {"name": "x"}}
    with pytest.raises(InvalidError) as refused:
        client.create({**body, **members})
    said = [f"{path}.{NO_OPERATOR}" for path in paths]
    if found.kind == "ClusterRole":
        said.append(f"{paths[0]}: Invalid value: null: invalid label selector.")
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    assert str(refused.value) == f'{found.kind}.{found.group} "x" is invalid: {listed}'


def test_a_claim_that_was_kept_with_a_source_elsewhere_keeps_its_spelling() -> None:
    """A world on disk may hold one from before; the old spelling cannot say where its source is."""
    kept = claim(dataSourceRef=ELSEWHERE)
    assert with_both_sources(kept) == kept
