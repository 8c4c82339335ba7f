"""The pytest plugin: scenarios as tests, and clusters for tests.

Every file that ends with ``.scenario.yaml`` is collected: one test that it plays, and one for each
of its expectations. The scenario is played once, when the first of them runs. The fixture
``kubescene_cluster`` makes clusters::

    def test_a_pod_finds_a_node(kubescene_cluster):
        cluster = kubescene_cluster(seed=7)
        cluster.create(make_node("n1").cpu("4"), make_pod("a").cpu("2"))
        assert cluster.settle().pod("a").node == "n1"

Installed with Kubescene, pytest loads this module for everybody: it imports nothing of ours before
there is a scenario or a cluster to make.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from kubescene.cli.files import ScenarioFile
    from kubescene.cluster import Cluster
    from kubescene.results import Summary

SUFFIXES = (".scenario.yaml", ".scenario.yml", ".scenario.json")
PLAYS = "plays"
SEED = "--kubescene-seed"
MEASURES = "kubescene_measures"
OF_CLUSTER = ("controllers", "instruments", "recorded", "scheduler")
"""Arguments of a cluster that are no options of its world."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("kubescene").addoption(
        SEED,
        type=int,
        metavar="N",
        help="the seed of clusters and scenarios that are tested, instead of their own",
    )
    parser.addini(
        MEASURES,
        type="args",
        default=[],
        help="measures of your own (module:function) that expectations of scenarios may name",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioTests | None":
    if file_path.name.endswith(SUFFIXES):
        return ScenarioTests.from_parent(parent, path=file_path)
    return None


# -- clusters ------------------------------------------------------------------------------------


class MakesClusters(Protocol):
    """What the fixture ``kubescene_cluster`` is: see `kubescene.cluster.ClusterOptions`."""

    def __call__(self, **options: Any) -> "Cluster": ...


@pytest.fixture
def kubescene_cluster(request: pytest.FixtureRequest) -> Iterator[MakesClusters]:
    """A function that makes clusters: ``kubescene_cluster(seed=7)``.

    It takes the fields of ``ClusterOptions``, and ``scheduler`` (a KubeSchedulerConfiguration, its
    file, or options), ``controllers`` and ``instruments`` as ``Cluster`` does. When the test is
    over, the controllers of all that it made are stopped.
    """
    maker = ClusterMaker(request.config.getoption(SEED))
    yield maker
    maker.stop()


class ClusterMaker:
    """Makes clusters for one test."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._made: list[Cluster] = []

    def __call__(self, **options: Any) -> "Cluster":
        from kubescene.cluster import Cluster, ClusterOptions

        own = {name: options.pop(name) for name in OF_CLUSTER if name in options}
        if self._seed is not None:
            options["seed"] = self._seed
        cluster = Cluster(ClusterOptions(**options), **own)
        self._made.append(cluster)
        return cluster

    def stop(self) -> None:
        while self._made:
            self._made.pop().manager.stop()


# -- scenarios -----------------------------------------------------------------------------------


class ScenarioTestError(Exception):
    """What is wrong, in words for people: shown without a traceback."""


class ScenarioTests(pytest.File):
    """One scenario file."""

    def collect(self) -> Iterable[pytest.Item]:
        yield PlaysItem.from_parent(self, name=PLAYS)
        for index, name in enumerate(self._names):
            yield ExpectationItem.from_parent(self, name=in_one_line(name), index=index)

    @property
    def _names(self) -> list[str]:
        """Those of the expectations; a file that cannot be read has none, and does not play."""
        from kubescene.cli.run.junit import names_in
        from kubescene.errors import ScenarioError

        try:
            return names_in(self.file.scenario)
        except ScenarioError:
            return []

    @cached_property
    def file(self) -> "ScenarioFile":
        from kubescene.cli.files import read_scenario

        return read_scenario(self.path)

    @cached_property
    def _played(self) -> "tuple[Summary | None, str]":
        """What came of the scenario, and why it could not be played."""
        import kubescene
        from kubescene.cli.components import measures_named
        from kubescene.errors import KubesceneError, ScenarioError

        try:
            own = measures_named(self.config.getini(MEASURES))
            run = kubescene.run(self.path, seed=self.config.getoption(SEED), measures=own)
        except ScenarioError as error:
            # Errors about the text itself say already where they are.
            return None, str(error) if not error.path else self.file.line(error)
        except KubesceneError as error:
            return None, str(error)
        if run.ok:
            return run.summary, ""
        return None, self.file.line(ScenarioError(run.message, path=run.failed_at))

    def played(self) -> "Summary":
        """The summary of the run, which happens once; raises `ScenarioTestError`."""
        summary, fault = self._played
        if summary is None:
            raise ScenarioTestError(f"the scenario failed: {fault}")
        return summary

    def line_of(self, *path: str | int) -> int | None:
        """The line, from zero, of a part of the file."""
        from kubescene.api.text.positions import Places
        from kubescene.errors import ScenarioError

        try:
            place = Places(self.file.text).find(path)
        except ScenarioError:
            return None
        return None if place is None else place[0] - 1


def in_one_line(name: str) -> str:
    """A name as pytest writes such of its own: it stands in lines, and in XML."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in name)


class ScenarioItem(pytest.Item):
    """A test about a scenario."""

    parent: ScenarioTests

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ScenarioTestError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


class PlaysItem(ScenarioItem):
    """The scenario can be read, and does not fail."""

    def runtest(self) -> None:
        self.parent.played()


class ExpectationItem(ScenarioItem):
    """An expectation holds."""

    def __init__(self, *, index: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._index = index

    def runtest(self) -> None:
        outcome = self.parent.played().expectations[self._index]
        if not outcome.holds:
            raise ScenarioTestError(
                f"{self.path.name}: {outcome.name!r} does not hold: {outcome.told}"
            )

    def reportinfo(self) -> tuple[Path, int | None, str]:
        line = self.parent.line_of("spec", "expectations", self._index)
        return self.path, line, f"{self.path.name}: {self.name}"
