"""What a plain run does not import: it would be paid for by everybody."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "01-first-scenario" / "scenario.yaml"

LATE = (
    "kubescene.autoscalers.horizontal",
    "kubescene.cel",
    "kubescene.scheduler.configuration.reading",
    "kubescene.scheduler.devices.cluster",
    "kubescene.scheduler.devices.allocator",
    "kubescene.scheduler.extenders.http",
    "kubescene.scheduler.extenders.tls",
    "kubescene.client.http",
    "kubescene.apiserver",
    "kubescene.live",
    "kubescene.reports.junit",
    "kubescene.results.expectations",
    "kubescene.testing.pytest_plugin",
    "kubescene.markup",
    "kubescene.reports.html",
    "kubescene.results.notebooks",
    "kubescene.api.validation.workloads.jobs",
    "kubescene.api.validation.core.services",
    "kubescene.api.validation.resource_claims",
    "asyncio",
    "email",
    "gzip",
    "http",
    "importlib.metadata",
    "socket",
    "ssl",
    "uvicorn",
    "xml",
    "zipfile",
    "zoneinfo",
)
RUN = f"import kubescene; assert kubescene.run({str(EXAMPLE)!r}).ok"
COMMAND = (
    "import sys; from kubescene.cli import main\n"
    f"sys.argv = ['kubescene', 'run', {str(EXAMPLE)!r}, '--quiet']\n"
    "try: main()\n"
    "except SystemExit as end: assert not end.code"
)


def imported_by(code: str) -> set[str]:
    """All modules of a fresh process that has run the code."""
    told = f"{code}\nimport json, sys; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_plain_run_imports_nothing_that_it_has_no_use_for() -> None:
    assert not imported_by(RUN) & set(LATE)


def test_the_command_looks_for_installed_controllers_without_the_library_for_packages() -> None:
    ours = {each for each in LATE if each.startswith("kubescene")}
    assert not imported_by(COMMAND) & (ours | {"importlib.metadata", "asyncio", "ssl"})


def test_what_is_named_here_exists() -> None:
    from importlib.util import find_spec

    assert all(find_spec(each) for each in LATE)


@pytest.mark.parametrize("was_on", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(was_on: bool) -> None:
    code = f"import gc\nif not {was_on}: gc.disable()\n{RUN}\nassert gc.isenabled() is {was_on}"
    frozen = "assert not gc.get_freeze_count() and gc.get_threshold() == before"
    done = f"import gc; before = gc.get_threshold()\n{code}\n{frozen}"
    subprocess.run([sys.executable, "-c", done], check=True)
