"""API servers for the tests of this folder. The real one is started once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from remote.api_servers import OwnServer, RealServer


@pytest.fixture
def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnServer]:
    server = OwnServer(tmp_path, monkeypatch)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    server = RealServer(tmp_path_factory.mktemp("kube-apiserver"))
    yield server
    server.stop()
