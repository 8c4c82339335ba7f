"""``pods/resize`` and ``pods/ephemeralcontainers``: what each lets through, and what it says."""

from typing import Any

import pytest

from kubescene.api.kinds import NODE, POD
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import ForbiddenError, InvalidError
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

A = ObjectRef(POD, "a", "default")


def pod(**spec: Any) -> JsonObject:
    """Burstable: half a cpu, up to one."""
    resources = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    container = {"name": "main", "image": "i", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def first(obj: JsonObject) -> JsonObject:
    container: JsonObject = obj["spec"]["containers"][0]
    return container


def resize(client: DirectClient, spec: JsonObject, ref: ObjectRef = A) -> JsonObject:
    """Send the stored pod back with other parts of its spec."""
    obj = client.get(ref)
    return client.update({**obj, "spec": {**obj["spec"], **spec}}, subresource="resize").decode()


def with_resources(client: DirectClient, **resources: Any) -> JsonObject:
    return {"containers": [{**first(client.get(A)), "resources": resources}]}


def complaints(error: InvalidError) -> list[tuple[str, str]]:
    return [(cause.field, cause.message) for cause in error.causes]


def refusals(client: DirectClient, spec: JsonObject) -> list[tuple[str, str]]:
    before = client.get(A)
    with pytest.raises(InvalidError) as caught:
        resize(client, spec)
    assert client.get(A) == before
    return complaints(caught.value)


class TestResize:
    def test_cpu_and_memory_change_and_the_generation_moves(self, client: DirectClient) -> None:
        client.create(pod())
        spec = with_resources(
            client, requests={"cpu": "700m", "memory": "1Gi"}, limits={"cpu": "2"}
        )
        resized = resize(client, spec)
        assert first(resized)["resources"] == spec["containers"][0]["resources"]
        assert resized["metadata"]["generation"] == 2

    def test_the_main_resource_does_not_resize(self, client: DirectClient) -> None:
        client.create(pod())
        obj = client.get(A)
        spec = with_resources(client, requests={"cpu": "700m"}, limits={"cpu": "1"})
        with pytest.raises(InvalidError, match="pod updates may not change fields other than"):
            client.update({**obj, "spec": {**obj["spec"], **spec}})

    def test_everything_else_stays_as_it_was(self, client: DirectClient) -> None:
        before = client.create(pod()).decode()
        obj = client.get(A)
        obj = {
            **obj,
            "metadata": {**obj["metadata"], "labels": {"new": "label"}},
            "spec": {**obj["spec"], "containers": [{**first(obj), "image": "other"}]},
            "status": {"phase": "Failed"},
        }
        after = client.update(obj, subresource="resize").decode()
        assert {**after, "metadata": None} == {**before, "metadata": None}
        assert "labels" not in after["metadata"]
        assert after["metadata"]["generation"] == 1

    @pytest.mark.parametrize(
        ("resources", "field", "message"),
        [
            (
                {
                    "requests": {"cpu": "1", "memory": "1Gi"},
                    "limits": {"cpu": "1", "memory": "1Gi"},
                },
                "spec",
                'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
            ),
            (
                {"requests": {"cpu": "1"}},
                "spec.containers[0].resources.limits",
                "Forbidden: resource limits cannot be removed",
            ),
            (
                {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}, "limits": {"cpu": "2"}},
                "spec",
                "Forbidden: only cpu and memory resources are mutable",
            ),
        ],
        ids=["qos", "limit", "storage"],
    )
    def test_what_a_resize_may_not_do(
        self, client: DirectClient, resources: JsonObject, field: str, message: str
    ) -> None:
        client.create(pod())
        assert refusals(client, with_resources(client, **resources)) == [(field, message)]

    def test_a_request_may_not_be_taken_back(self, client: DirectClient) -> None:
        obj = pod()
        first(obj)["resources"]["requests"]["memory"] = "1Gi"
        client.create(obj)
        spec = with_resources(client, requests={"cpu": "500m"}, limits={"cpu": "1"})
        assert refusals(client, spec) == [
            (
                "spec.containers[0].resources.requests",
                "Forbidden: resource requests cannot be removed",
            )
        ]

    def test_a_limit_below_the_request_is_refused_as_ever(self, client: DirectClient) -> None:
        client.create(pod())
        spec = with_resources(client, requests={"cpu": "3"}, limits={"cpu": "1"})
        (complaint,) = refusals(client, spec)
        assert "must be less than or equal to cpu limit of 1" in complaint[1]

    def test_the_resize_policy_may_not_change(self, client: DirectClient) -> None:
        client.create(pod())
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        spec = {"containers": [{**first(client.get(A)), "resizePolicy": policy}]}
        assert refusals(client, spec) == [
            ("spec", "Forbidden: only cpu and memory resources are mutable")
        ]

    def test_containers_may_not_come_go_or_change_their_names(self, client: DirectClient) -> None:
        client.create(pod())
        container = first(client.get(A))
        more = {"containers": [container, {**container, "name": "second"}]}
        other = {"containers": [{**container, "name": "other"}]}
        init = {"initContainers": [{"name": "init", "image": "i"}]}
        assert refusals(client, more) == [
            ("spec.containers", "Forbidden: containers may not be added or removed on resize")
        ]
        assert refusals(client, other) == [
            (
                "spec.containers[0].name",
                "Forbidden: containers may not be renamed or reordered on resize",
            )
        ]
        assert refusals(client, init)[0][0] == "spec.initContainers"

    def test_init_containers_are_resized_too(self, client: DirectClient) -> None:
        init = {"name": "init", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        client.create(pod(initContainers=[init]))
        stored = client.get(A)["spec"]["initContainers"][0]
        more = {**stored, "resources": {"requests": {"cpu": "2"}}}
        resized = resize(client, {"initContainers": [more]})
        assert resized["spec"]["initContainers"][0]["resources"] == more["resources"]
        policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
        assert refusals(client, {"initContainers": [{**more, "resizePolicy": policy}]}) == [
            (
                "spec.initContainers[0]",
                "Forbidden: only cpu and memory resources for init or sidecar containers are "
                "mutable",
            )
        ]

    def test_sidecars_are_resized_even_if_they_have_to_restart(self, client: DirectClient) -> None:
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        resources = {"requests": {"cpu": "1"}}
        sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resizePolicy": policy}
        client.create(pod(initContainers=[{**sidecar, "resources": resources}]))
        stored = client.get(A)["spec"]["initContainers"][0]
        more = {**stored, "resources": {"requests": {"cpu": "2"}}}
        resized = resize(client, {"initContainers": [more]})
        assert resized["spec"]["initContainers"][0]["resources"] == more["resources"]

    def test_resources_of_the_pod_as_a_whole(self, client: DirectClient) -> None:
        client.create(pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))
        more = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "2"}}
        assert resize(client, {"resources": more})["spec"]["resources"] == more
        assert ("spec.resources", "Forbidden: pod-level resources cannot be removed") in refusals(
            client, {"resources": None}
        )
        fewer = {"requests": {"cpu": "1"}}
        assert (
            "spec.resources.limits",
            "Forbidden: pod-level resource limits cannot be removed",
        ) in refusals(client, {"resources": fewer})
        pages = {**more, "limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}}
        assert ("spec", "Forbidden: only cpu and memory resources are mutable at pod-level") in (
            refusals(client, {"resources": pages})
        )

    @pytest.mark.parametrize(
        ("obj", "message"),
        [
            (pod(os={"name": "windows"}), "windows pods cannot be resized"),
            (
                {
                    **pod(nodeName="n1"),
                    "metadata": {
                        "name": "a",
                        "namespace": "default",
                        "annotations": {"kubernetes.io/config.mirror": "x"},
                    },
                },
                "static pods cannot be resized",
            ),
        ],
        ids=["windows", "static"],
    )
    def test_pods_that_cannot_be_resized(
        self, client: DirectClient, obj: JsonObject, message: str
    ) -> None:
        client.create(obj)
        spec = with_resources(client, requests={"cpu": "700m"}, limits={"cpu": "1"})
        assert [text for _, text in refusals(client, spec)] == [f"Forbidden: {message}"]

    def test_a_pod_cannot_outgrow_its_node(self, client: DirectClient) -> None:
        client.create(make_node("n1").cpu("4").memory("1Gi").build())
        client.create(pod(nodeName="n1"))
        spec = with_resources(
            client, requests={"cpu": "5", "memory": "2Gi"}, limits={"cpu": "5", "memory": "3Gi"}
        )
        with pytest.raises(ForbiddenError) as caught:
            resize(client, spec)
        assert caught.value.message == (
            'pods "a" is forbidden: node didn\'t have enough allocatable resources: cpu, '
            "requested: 5000, allocatable: 4000; memory, requested: 2147483648, allocatable: "
            "1073741824"
        )
        assert caught.value.causes[0].reason == "NodeCapacity"
        resize(client, with_resources(client, requests={"cpu": "4"}, limits={"cpu": "4"}))

    @pytest.mark.parametrize("system", ["", "windows"])
    def test_the_node_must_be_there_and_be_linux(self, client: DirectClient, system: str) -> None:
        client.create(pod(nodeName="n1"))
        if system:
            client.create(make_node("n1").labels({"kubernetes.io/os": system}).build())
        spec = with_resources(client, requests={"cpu": "700m"}, limits={"cpu": "1"})
        expected = f'node "n1" is "{system}"' if system else 'node "n1" not found'
        with pytest.raises(ForbiddenError, match=expected):
            resize(client, spec)
        assert client.find(ObjectRef(NODE, "n1")) is None or system


def debug(client: DirectClient, *containers: JsonObject) -> JsonObject:
    patch = {"spec": {"ephemeralContainers": list(containers)}}
    return client.patch(A, patch, subresource="ephemeralcontainers").decode()


SHELL = {"name": "shell", "image": "busybox"}


class TestEphemeralContainers:
    def test_containers_can_be_added(self, client: DirectClient) -> None:
        client.create(make_pod("a").build())
        added = debug(client, {**SHELL, "targetContainerName": "main"})
        (container,) = added["spec"]["ephemeralContainers"]
        assert (container["name"], container["imagePullPolicy"]) == ("shell", "Always")
        assert added["metadata"]["generation"] == 2

    def test_nothing_else_changes(self, client: DirectClient) -> None:
        before = client.create(make_pod("a").build()).decode()
        patch = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"ephemeralContainers": [SHELL], "activeDeadlineSeconds": 5},
            "status": {"phase": "Failed"},
        }
        after = client.patch(A, patch, subresource="ephemeralcontainers").decode()
        del after["spec"]["ephemeralContainers"]
        assert (after["spec"], after["status"]) == (before["spec"], before["status"])
        assert "labels" not in after["metadata"]

    def test_what_is_there_stays(self, client: DirectClient) -> None:
        client.create(make_pod("a").build())
        debug(client, SHELL)
        with pytest.raises(InvalidError) as removed:
            debug(client, {**SHELL, "name": "other"})
        assert complaints(removed.value) == [
            (
                "spec.ephemeralContainers",
                'Forbidden: existing ephemeral containers "shell" may not be removed\n',
            )
        ]
        with pytest.raises(InvalidError) as changed:
            debug(client, {**SHELL, "image": "alpine"})
        (complaint,) = complaints(changed.value)
        assert complaint[1].startswith(
            'Forbidden: existing ephemeral containers "shell" may not be changed\n'
        )
        stored = client.get(A)["spec"]["ephemeralContainers"]
        assert (
            len(debug(client, *stored, {**SHELL, "name": "other"})["spec"]["ephemeralContainers"])
            == 2
        )

    @pytest.mark.parametrize(
        ("container", "field"),
        [
            ({**SHELL, "resources": {"limits": {"cpu": "1"}}}, "resources"),
            ({**SHELL, "ports": [{"containerPort": 80}]}, "ports"),
            ({**SHELL, "name": "main"}, "name"),
            ({**SHELL, "targetContainerName": "nobody"}, "targetContainerName"),
        ],
        ids=["resources", "ports", "name", "target"],
    )
    def test_ephemeral_containers_are_no_workload(
        self, client: DirectClient, container: JsonObject, field: str
    ) -> None:
        client.create(make_pod("a").build())
        with pytest.raises(InvalidError) as caught:
            debug(client, container)
        assert caught.value.causes[0].field == f"spec.ephemeralContainers[0].{field}"

    def test_the_main_resource_adds_none(self, client: DirectClient) -> None:
        client.create(make_pod("a").build())
        with pytest.raises(InvalidError, match="pod updates may not change fields other than"):
            client.patch(A, {"spec": {"ephemeralContainers": [SHELL]}})

    def test_static_pods_have_none(self, client: DirectClient) -> None:
        annotated = make_pod("a").annotate({"kubernetes.io/config.mirror": "x"}).on("n1")
        client.create(annotated.build())
        with pytest.raises(InvalidError, match="static pods do not support ephemeral containers"):
            debug(client, SHELL)
