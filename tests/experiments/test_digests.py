"""A run is known again if nothing has changed that its result depends on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubescene.experiments.digests import digest_of
from kubescene.experiments.jobs import RunJob
from kubescene.results.cost.prices import Prices
from kubescene.runs.requests import RunRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.testing import make_node
from matrix_plugins import Crashing, Dice

NODES = ("racks/a/node.yaml", "racks/b/node.yaml")


@pytest.fixture
def job(tmp_path: Path) -> RunJob:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4")).done().build()
    for name in NODES:
        scenario["spec"]["operations"].insert(
            0, {"id": name[6], "step": 1, "createOperation": {"objectFrom": name}}
        )
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("kind: Node")
    source = tmp_path / "s.yaml"
    source.write_text("as it was read")
    return RunJob(request=RunRequest(scenario=scenario, folder=tmp_path, source=source))


def scheduler(**changes: Any) -> Callable[[RunRequest], RunRequest]:
    return lambda request: replace(request, scheduler=replace(request.scheduler, **changes))


@pytest.mark.parametrize(
    "change",
    [
        lambda request: replace(request, seed=1),
        lambda request: replace(request, strict=True),
        lambda request: replace(request, without=frozenset({"deployment"})),
        lambda request: replace(request, reconcilers=(Dice,)),
        lambda request: replace(request, controllers={"dice": Dice}),
        lambda request: replace(request, scheduler=with_plugin(SchedulerOptions(), Dice)),
        lambda request: replace(request, measures=(scheduler,)),
        lambda request: replace(request, scenario={**request.scenario, "metadata": {"name": "t"}}),
        scheduler(annotations=True),
        scheduler(added=("Dice",)),
        scheduler(plugin_errors=PluginErrors.STOP),
        scheduler(plugins={"Dice": Dice}),
        scheduler(configuration={}),
    ],
)
def test_what_a_result_depends_on_makes_another_run(
    job: RunJob, change: Callable[[RunRequest], RunRequest]
) -> None:
    assert digest_of(replace(job, request=change(job.request))) != digest_of(job)


def test_prices_count_and_so_does_which_plugin_it_is(job: RunJob) -> None:
    assert digest_of(replace(job, prices=Prices(default=1.0))) != digest_of(job)
    made = {
        digest_of(replace(job, request=scheduler(plugins={"P": plugin})(job.request)))
        for plugin in (Dice, Crashing)
    }
    assert len(made) == 2


@pytest.mark.parametrize("name", NODES)
def test_every_file_that_a_scenario_reads_counts_though_another_one_has_its_name(
    job: RunJob, name: str
) -> None:
    before = digest_of(job)
    assert job.request.folder is not None
    (job.request.folder / name).write_text("kind: Node # other")
    assert digest_of(job) != before


def test_what_is_only_kept_or_said_of_a_run_makes_no_other(job: RunJob, tmp_path: Path) -> None:
    assert job.request.source is not None
    same = [
        replace(job.request, out=tmp_path / "out"),
        replace(job.request, scenario={**job.request.scenario, "status": {"phase": "Failed"}}),
    ]
    assert {digest_of(replace(job, request=each)) for each in same} == {digest_of(job)}
    before = digest_of(job)
    job.request.source.write_text("only its comments have changed")
    assert digest_of(job) == before
