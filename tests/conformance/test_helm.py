"""helm installs, upgrades, tests, rolls back and uninstalls a chart of all kinds."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from conformance.kubectl import Kubectl
from real_programs import find_program, require_program

CHART = Path(__file__).parent / "data" / "shop"
WAIT = ("--wait", "--wait-for-jobs", "--timeout", "60s")


@dataclass(frozen=True, slots=True)
class Helm:
    """helm, and the cluster it speaks to."""

    binary: Path
    kubeconfig: Path
    home: Path

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            **{f"HELM_{name}_HOME": str(self.home / name) for name in ("CACHE", "CONFIG", "DATA")},
        }
        done = subprocess.run(
            [str(self.binary), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"helm {' '.join(arguments)}: {output}"
        return output

    def install(self, *more: str, fails: bool = False) -> str:
        return self("install", "shop", str(CHART), *WAIT, *more, fails=fails)

    def upgrade(self, *more: str, fails: bool = False) -> str:
        return self("upgrade", "shop", str(CHART), *WAIT, *more, fails=fails)

    def statuses(self) -> list[tuple[int, str]]:
        listed: list[dict[str, Any]] = json.loads(self("history", "shop", "-o", "json"))
        return [(each["revision"], each["status"]) for each in listed]


@pytest.fixture
def helm(kubeconfig: Path, tmp_path: Path) -> Helm:
    on_path = shutil.which("helm")
    found = find_program("helm") or (Path(on_path) if on_path else None)
    return Helm(found or require_program("helm", "scripts/install-helm"), kubeconfig, tmp_path)


def image(kubectl: Kubectl) -> str:
    path = "jsonpath={.spec.template.spec.containers[0].image}"
    return kubectl("get", "deployment", "shop-web", "-o", path).strip()


def left(kubectl: Kubectl, *what: str) -> list[str]:
    return kubectl("get", *what, "-o", "name", "--ignore-not-found").split()


def test_a_chart_comes_changes_goes_back_and_goes(helm: Helm, kubectl: Kubectl) -> None:
    assert "STATUS: deployed" in helm.install()
    phases = "jsonpath={.items[*].status.phase}"
    pods = kubectl("get", "pods", "-o", phases, "-l", "app in (web, db, agent)")
    assert pods.split() == ["Running"] * 6
    assert left(kubectl, "job") == ["job.batch/shop-migrate"]
    assert kubectl("get", "pvc", "-o", phases).split() == ["Bound", "Bound"]

    assert "STATUS: deployed" in helm.upgrade("--set", "image=shop:2", "--set", "replicas=3")
    assert image(kubectl) == "shop:2"
    replicas = "jsonpath={.status.readyReplicas}"
    assert kubectl("get", "deployment", "shop-web", "-o", replicas).strip() == "3"

    said = helm("test", "shop", "--timeout", "60s")
    assert "Phase:          Succeeded" in said

    assert "Rollback was a success" in helm("rollback", "shop", "1", *WAIT)
    assert image(kubectl) == "shop:1"
    assert helm.statuses() == [(1, "superseded"), (2, "superseded"), (3, "deployed")]

    assert 'release "shop" uninstalled' in helm("uninstall", "shop", "--wait")
    kinds = (
        "deployments,statefulsets,daemonsets,cronjobs,services,configmaps,secrets,pdb,hpa,ingress"
    )
    gone = [name for name in left(kubectl, kinds) if "shop" in name]
    assert gone == []
    workloads = ("pods", "-l", "app in (web, db, agent)")
    assert any(not left(kubectl, *workloads) or Event().wait(0.1) for _ in range(300))
    assert left(kubectl, "jobs") == ["job.batch/shop-migrate"], "helm leaves hooks where they are"
    assert len(left(kubectl, "pvc")) == 2, "claims of a StatefulSet are nobody's"


def test_a_migration_that_fails_keeps_the_chart_away(helm: Helm, kubectl: Kubectl) -> None:
    said = helm.install("--set", "migration.exitCode=1", fails=True)
    assert "pre-install" in said
    assert "status: Failed" in said
    assert left(kubectl, "deployments") == []


def test_an_upgrade_that_fails_is_rolled_back(helm: Helm, kubectl: Kubectl) -> None:
    helm.install()
    bad = ("--set", "image=shop:2", "--set", "migration.exitCode=1")
    helm.upgrade(*bad, "--rollback-on-failure", fails=True)
    assert image(kubectl) == "shop:1"
    assert helm.statuses() == [(1, "superseded"), (2, "failed"), (3, "deployed")]


def test_a_test_that_fails_says_so(helm: Helm) -> None:
    helm.install("--set", "check.exitCode=2")
    said = helm("test", "shop", "--timeout", "60s", fails=True)
    assert "Failed" in said
