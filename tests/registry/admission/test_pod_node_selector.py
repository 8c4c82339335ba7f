"""Namespaces that choose nodes for their pods: answers of kube-apiserver v1.36.3, and pods."""

from typing import Any

import pytest

from kubescene import Cluster
from kubescene.cluster import ClusterOptions
from kubescene.errors import ForbiddenError, InternalError
from kubescene.shortcuts import PLAIN
from kubescene.testing import make_deployment, make_node
from kubescene.types import JsonObject

ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
CONFLICT = (
    'pods "p" is forbidden: pod node label selector conflicts with its namespace node label '
    "selector"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def namespace(selector: str) -> JsonObject:
    metadata = {"name": "team", "annotations": {ANNOTATION: selector}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def pod(own: dict[str, str] | None) -> JsonObject:
    spec: JsonObject = {"containers": [{"name": "c", "image": "i"}]}
    if own is not None:
        spec["nodeSelector"] = own
    metadata = {"name": "p", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("selector", "own", "wanted"),
    [
        ("pool=a", None, {"pool": "a"}),
        ("pool=a", {"disk": "ssd"}, {"disk": "ssd", "pool": "a"}),
        ("pool=a", {"pool": "a"}, {"pool": "a"}),
        (" pool = a , disk=ssd ", None, {"disk": "ssd", "pool": "a"}),
        ("", {"x": "1"}, {"x": "1"}),
        ("pool=", None, {"pool": ""}),
        ("pool=a,pool=b", None, {"pool": "b"}),
    ],
)
def test_pods_get_the_selector_of_their_namespace(
    selector: str, own: dict[str, str] | None, wanted: dict[str, str]
) -> None:
    cluster = Cluster()
    cluster.create(namespace(selector))
    cluster.create(pod(own))
    assert cluster.get("pods", "p", "team")["spec"]["nodeSelector"] == wanted


@pytest.mark.parametrize(
    ("selector", "own", "error", "message"),
    [
        ("pool=a", {"pool": "b"}, ForbiddenError, CONFLICT),
        ("pool=a,disk=ssd", {"disk": "hdd", "x": "1"}, ForbiddenError, CONFLICT),
        ("pool", None, InternalError, "invalid selector: [pool]"),
        ("pool=a=b", None, InternalError, "invalid selector: [pool a b]"),
        ("pool=a,", None, InternalError, "invalid selector: []"),
        ("po ol=a", None, InternalError, f'<nil>: Invalid value: "po ol": {NAME_PART}'),
        ("pool!=a", None, InternalError, f'<nil>: Invalid value: "pool!": {NAME_PART}'),
        (
            "=a",
            None,
            InternalError,
            f'<nil>: Invalid value: "": name part must be non-empty; {NAME_PART}',
        ),
        ("pool=a b", None, InternalError, f'[pool]: Invalid value: "a b": {VALUE}'),
    ],
)
def test_pods_that_contradict_it_and_selectors_that_are_none_are_refused(
    selector: str, own: dict[str, str] | None, error: type[Exception], message: str
) -> None:
    cluster = Cluster()
    cluster.create(namespace(selector))
    with pytest.raises(error) as refused:
        cluster.create(pod(own))
    assert str(refused.value) == message


@pytest.mark.parametrize("options", [{}, {"shortcuts": PLAIN}])
def test_pods_of_controllers_go_where_their_namespace_wants_them(options: dict[str, Any]) -> None:
    """Also those that are created together, and after the annotation has changed."""
    cluster = Cluster(ClusterOptions(**options))
    for name, pool in (("a", "a"), ("b", "b"), ("c", "b")):
        cluster.create(make_node(name).cpu("64").memory("64Gi").label(pool=pool))
    cluster.create(namespace("pool=a"))
    web = make_deployment("web").namespace("team").replicas(8)
    cluster.create(web)
    cluster.settle()
    assert {each["spec"]["nodeName"] for each in cluster.list("pods")} == {"a"}
    cluster.patch("namespaces", "team", {"metadata": {"annotations": {ANNOTATION: "pool=b"}}})
    cluster.patch("deployments", "web", {"spec": {"replicas": 16}}, namespace="team")
    cluster.settle()
    found = [each["spec"]["nodeName"] for each in cluster.list("pods")]
    assert sorted(map(found.count, "abc")) == [4, 4, 8]
