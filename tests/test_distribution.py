"""What people install: the wheel in a clean environment, by pipx, and the server of a container.

The environment is made of nothing but what `requirements/core.txt` pins, with no way back to the
sources. No container is built here: its image is the same wheel and the same pins, and what its
manifest says of the server is done by hand.
"""

import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from urllib.error import URLError
from zipfile import ZipFile

import pytest
import yaml

from kubescene.actors import Actor
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.http import HttpClient, read_kubeconfig
from kubescene.types import JsonObject
from kubescene.version import __version__

ROOT = Path(__file__).parents[1]
PINS = ROOT / "requirements" / "core.txt"
EXAMPLE = ROOT / "examples" / "01-first-scenario" / "scenario.yaml"
MANIFEST = ROOT / "deploy" / "kubescene.yaml"
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
NO_REGISTRY = ("No matching distribution", "Could not find a version", "ConnectionError")

pytestmark = pytest.mark.xdist_group("distribution")


def clean_environment(**more: str) -> dict[str, str]:
    """Nothing that leads to the sources, or to how these tests were started."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "KUBESCENE", "COVERAGE", "VIRTUAL_ENV"))
    }
    return {**kept, "COLUMNS": "100", "NO_COLOR": "1", **more}


def done(*command: object, cwd: Path | None = None, **more: str) -> CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=clean_environment(**more),
    )


def install(python: Path, *what: object) -> None:
    """By pip; a machine without a registry skips, anything else that goes wrong fails."""
    told = done(python, "-m", "pip", "--disable-pip-version-check", "install", *what)
    if told.returncode and any(reason in told.stderr for reason in NO_REGISTRY):
        pytest.skip(f"no package registry to install from: {told.stderr.strip().splitlines()[-1]}")
    assert told.returncode == 0, told.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``make dist`` builds it, beside its sdist."""
    folder = tmp_path_factory.mktemp("dist")
    built = done(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    return folder / f"kubescene-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment that holds the wheel and its pins."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    assert done(sys.executable, "-m", "venv", folder).returncode == 0
    python = folder / "bin" / "python"
    install(python, "--quiet", "--require-hashes", "-r", PINS)
    install(python, "--quiet", "--no-deps", wheel)
    return python.parent


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    package = ROOT / "src"
    wanted = {
        str(path.relative_to(package))
        for path in (package / "kubescene").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licenses = [name for name in archive.namelist() if ".dist-info/licenses/" in name]
    assert names == wanted
    assert sorted(name.rpartition("/")[2] for name in licenses) == ["LICENSE", "NOTICE"]


def test_the_sdist_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(wheel.with_name(f"kubescene-{__version__}.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    sources = tmp_path / f"kubescene-{__version__}"
    built = done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", cwd=sources)
    assert built.returncode == 0, built.stderr
    with ZipFile(wheel) as ours, ZipFile(sources / "dist" / wheel.name) as again:
        assert {each.filename: each.CRC for each in ours.infolist()} == {
            each.filename: each.CRC for each in again.infolist()
        }


def test_the_command_works_in_a_clean_environment(installed: Path, tmp_path: Path) -> None:
    told = done(installed / "kubescene", "--version", cwd=tmp_path)
    assert (told.returncode, told.stdout.strip()) == (0, f"kubescene {__version__}"), told.stderr
    shutil.copy(EXAMPLE, tmp_path)
    told = done(
        installed / "kubescene", "run", EXAMPLE.name, "--out", "run", "--report", cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    assert "Succeeded" in told.stdout
    written = {each.name for each in (tmp_path / "run").iterdir()}
    assert {"summary.json", "timeline.jsonl", "report.html"} <= written
    checked = done(installed / "python", "-m", "pip", "check")
    assert checked.returncode == 0, checked.stdout


def test_every_module_can_be_imported_or_names_its_extra(installed: Path) -> None:
    script = """
import importlib, pkgutil, kubescene
from kubescene.errors import ConfigurationError
for each in pkgutil.walk_packages(kubescene.__path__, "kubescene."):
    if each.name.rpartition(".")[2] == "__main__":
        continue
    try:
        importlib.import_module(each.name)
    except ConfigurationError as error:
        assert "pip install 'kubescene[" in str(error), error
    except ModuleNotFoundError as error:
        print(each.name, error.name)
"""
    told = done(installed / "python", "-c", script)
    assert told.returncode == 0, told.stderr
    optional = {"grpc", "google", "optuna", "polars", "pytest", "ray", "IPython"}
    missing = [line.split() for line in told.stdout.splitlines()]
    assert [each for each in missing if each[1].partition(".")[0] not in optional] == []


def test_pipx_runs_the_wheel(wheel: Path, installed: Path, tmp_path: Path) -> None:
    pins = re.findall(r"^[a-z0-9][^\\\n]*", PINS.read_text(encoding="utf-8"), re.MULTILINE)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(line.strip() for line in pins))
    install(installed / "python", "--quiet", "pipx")
    told = done(
        *(installed / "python", "-m", "pipx", "run", "--spec", wheel, "kubescene", "--version"),
        PIPX_HOME=str(tmp_path / "pipx"),
        PIP_CONSTRAINT=str(constraints),
        UV_CONSTRAINT=str(constraints),
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == f"kubescene {__version__}"


# -- in a container ------------------------------------------------------------------------------


def manifest() -> dict[str, JsonObject]:
    with MANIFEST.open(encoding="utf-8") as file:
        return {each["kind"]: each for each in yaml.safe_load_all(file)}


def container() -> JsonObject:
    (found,) = manifest()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


@contextmanager
def as_in_the_container(installed: Path, folder: Path) -> Iterator[str]:
    """The server as the manifest starts it, but for its folder, its addresses and its port."""
    arguments = [
        {"--host=0.0.0.0": "--host=127.0.0.1", "--data-dir=/data": f"--data-dir={folder}"}.get(a, a)
        for a in container()["args"]
    ]
    process = subprocess.Popen(
        [installed / "kubescene", *arguments, "--tls", "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=clean_environment(),
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("Serving on https://"), line
        yield line.split()[-1]
    finally:
        process.terminate()
        process.communicate()


def answer(url: str) -> int:
    """As a probe of a kubelet asks: it does not look at certificates."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(url, context=trusting, timeout=60) as reply:
        return int(reply.status)


def test_the_server_of_the_manifest_is_healthy_and_lets_in_who_has_a_token(
    installed: Path, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here: https needs it, or a certificate")
    with as_in_the_container(installed, tmp_path) as url:
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container()[name]["httpGet"]
            assert probe["scheme"] == "HTTPS"
            assert answer(url + probe["path"]) == 200
        with pytest.raises(URLError):
            answer(f"{url}/api/v1/nodes")
        config = tmp_path / "kubescene.yaml"
        local = url.replace("127.0.0.1", "localhost")
        told = done(
            *(installed / "kubescene", "kubeconfig", "--identities", tmp_path / "identities"),
            *("--as", "me", "--group", "system:masters", "--server", local),
        )
        assert told.returncode == 0, told.stderr
        config.write_text(told.stdout)
        client = HttpClient(read_kubeconfig(config), Actor("me"))
        assert [*client.list(GroupVersionKind("", "v1", "Node"))] == []
        client.close()


def test_the_image_starts_what_the_manifest_starts() -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    command = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert command is not None
    said = yaml.safe_load(command[1])
    assert said == [each for each in container()["args"] if not each.startswith("--tls-name")]
    user = manifest()["Deployment"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"USER {user}:" in text
    for source in re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE):
        assert source.startswith("dist/") or (ROOT / source).exists(), source
    (port,) = container()["ports"]
    assert f"EXPOSE {port['containerPort']}" in text
