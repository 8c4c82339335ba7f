"""What a real kube-apiserver has answered to requests that policies are asked about, so do we."""

from contextlib import closing
from http.client import HTTPConnection

import pytest

from kubescene.apiserver.server import Server
from registry.admission.recorded_policies import answers, asking, prepare, recorded


@pytest.fixture(scope="module")
def ours() -> dict[str, list[object]]:
    with (
        Server(port=0, controllers=False) as server,
        closing(HTTPConnection(server.host, server.port, timeout=120)) as connection,
    ):
        ask = asking(connection, {"Impersonate-User": "somebody"})
        prepare(ask)
        return dict(answers(ask))


@pytest.mark.parametrize("label", recorded())
def test_answers_are_those_of_a_real_server(label: str, ours: dict[str, list[object]]) -> None:
    assert ours[label] == recorded()[label]


def test_every_request_was_recorded(ours: dict[str, list[object]]) -> None:
    assert ours.keys() == recorded().keys()
