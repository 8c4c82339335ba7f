"""The programs that the tests build themselves are the versions they claim to be."""

import os
import subprocess
from pathlib import Path

import pytest

from real_programs import ROOT, find_program, pinned_version, require_program

BUILD = ROOT / "scripts" / "build-kubernetes"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only programs of our own build: what somebody else brought may be of any version."""
    monkeypatch.delenv("KUBESCENE_BINARIES", raising=False)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", ["kube-scheduler", "kube-controller-manager", "kube-apiserver"])
def test_a_program_of_kubernetes_says_the_pinned_version(name: str) -> None:
    written = _output(require_program(name), "--version")
    assert written.strip() == f"Kubernetes {pinned_version('kubernetes', 'k8s.io/kubernetes')}"


@pytest.mark.usefixtures("built")
def test_etcd_says_the_pinned_version() -> None:
    version = pinned_version("etcd", "go.etcd.io/etcd/server/v3")
    first = _output(require_program("etcd"), "--version").splitlines()[0]
    assert first == f"etcd Version: {version.removeprefix('v')}"


def test_a_ready_program_is_found_and_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "etcd"
    ready.write_text("#!/bin/sh\n")
    ready.chmod(0o755)
    monkeypatch.setenv("KUBESCENE_BINARIES", str(tmp_path))
    assert find_program("etcd") == ready
    assert _build("etcd", path="/usr/bin:/bin").returncode == 0


def test_an_unknown_program_is_refused() -> None:
    done = _build("kube-proxy", path=os.environ["PATH"])
    assert done.returncode == 1
    assert "unknown program kube-proxy" in done.stderr


def _build(name: str, path: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        [str(BUILD), name], capture_output=True, text=True, check=False, env=environment
    )


def _output(program: Path, *arguments: str) -> str:
    return subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, check=True
    ).stdout
