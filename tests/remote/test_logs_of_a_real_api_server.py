"""What a real kube-apiserver refuses of a request for a log, ours does, in the same words."""

import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection

import pytest

from kubescene.apiserver.server import Server
from remote.api_servers import RealServer, asking

pytestmark = pytest.mark.xdist_group("real-api-server")

SPACE = "/api/v1/namespaces/default"
CONTAINERS = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
PODS = [
    {"metadata": {"name": "one"}, "spec": {"containers": CONTAINERS[:1]}},
    {
        "metadata": {"name": "two"},
        "spec": {"containers": CONTAINERS, "initContainers": [{"name": "first", "image": "i"}]},
    },
]
OPTIONS = (
    "",
    "?container=a",
    "?container=first",
    "?container=x",
    "?tailLines=-1",
    "?tailLines=-1&container=a",
    "?limitBytes=0&container=a",
    "?sinceSeconds=0&container=a",
    "?sinceSeconds=-3&tailLines=-1&limitBytes=-1&container=a",
    "?sinceSeconds=3&sinceTime=2026-01-01T00:00:00Z&container=a",
    "?follow=true&container=a",
    "?previous=true&container=a",
)


def test_refusals_are_those_of_a_real_api_server(real_server: RealServer) -> None:
    trust = ssl.create_default_context(cafile=str(real_server.outsider.with_name("ca.crt")))
    host = real_server.url.removeprefix("https://")
    with (
        Server(port=0, controllers=False) as server,
        closing(HTTPConnection(server.host, server.port, timeout=120)) as here,
        closing(HTTPSConnection(host, context=trust, timeout=120)) as there,
    ):
        ours = asking(here, {})
        real = asking(there, {"Authorization": "Bearer token-of-somebody"})
        real("POST", f"{SPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        for pod in PODS:
            name = pod["metadata"]["name"]  # type: ignore[index]
            for ask in (ours, real):
                assert ask("POST", f"{SPACE}/pods", pod)[0] == 201
            for each in OPTIONS:
                path = f"{SPACE}/pods/{name}/log{each}"
                assert ours("GET", path) == real("GET", path), path
            for ask in (ours, real):
                ask("DELETE", f"{SPACE}/pods/{name}?gracePeriodSeconds=0")
