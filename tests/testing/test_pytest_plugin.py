"""The pytest plugin, in runs of pytest of its own."""

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_replica_set

pytest_plugins = ["pytester"]

MODULE = "kubescene.testing.pytest_plugin"
IS_INSTALLED = any(each.value == MODULE for each in entry_points(group="pytest11"))
PLUGIN = () if IS_INSTALLED else ("-p", MODULE)
"""An environment that was installed before the plugin was there does not load it by itself."""
BUILTIN = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly")


def scenario(name: str = "s") -> ScenarioBuilder:
    node = make_node("n").cpu("1").memory("1Gi").pods("9")
    return ScenarioBuilder(name).create(node).create(make_pod("p-$(INDEX)").cpu("1"), count=2)


def pytest_run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*PLUGIN, *BUILTIN, *arguments)


def test_each_expectation_is_a_test(pytester: pytest.Pytester) -> None:
    expecting = scenario().done().expect("one waits", "pending.size() == 1")
    expecting.expect("one is placed", "pods.exists(p, p.node == 'n')")
    expecting.save(pytester.path / "full.scenario.yaml")
    result = pytest_run(pytester, "-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "full.scenario.yaml::plays PASSED*",
            "full.scenario.yaml::one waits PASSED*",
            "full.scenario.yaml::one is placed PASSED*",
        ]
    )


def test_expectations_may_name_measures_that_the_configuration_brings(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(surges="def surge(run):\n    return len(run.ledger.pods)")
    scenario().done().expect("few", "measures.surge == 2").save(pytester.path / "a.scenario.yaml")
    pytest_run(pytester).assert_outcomes(failed=2)
    pytester.makeini("[pytest]\nkubescene_measures = surges:surge")
    pytest_run(pytester).assert_outcomes(passed=2)


def test_names_that_xml_cannot_hold_are_escaped(pytester: pytest.Pytester) -> None:
    scenario().done().expect("a\x01\nb", "true").save(pytester.path / "odd.scenario.yaml")
    pytest_run(pytester, "--junit-xml", "junit.xml").assert_outcomes(passed=2)
    cases = ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    assert [case.get("name") for case in cases] == ["plays", r"a\x01\nb"]


def test_what_does_not_hold_is_told_without_a_traceback(pytester: pytest.Pytester) -> None:
    expecting = scenario().done().expect("nobody waits", "pending.size() == 0", "somebody does")
    expecting.save(pytester.path / "a.scenario.yaml")
    result = pytest_run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*a.scenario.yaml: nobody waits*",
            "a.scenario.yaml: 'nobody waits' does not hold: somebody does (1 == 0)",
            "expression: pending.size() == 0",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert ".py:" not in result.stdout.str()


def test_a_scenario_that_fails_fails_all_its_tests(pytester: pytest.Pytester) -> None:
    twice = scenario().step(2).create(make_node("n")).done().expect("x", "true")
    twice.save(pytester.path / "a.scenario.yaml")
    result = pytest_run(pytester)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ['the scenario failed: *a.scenario.yaml:*nodes "n" already exists*']
    )
    pytest_run(pytester, "-k", "x").assert_outcomes(failed=1, deselected=1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "*a.scenario.yaml:*: not valid YAML*"),
        ("a: b", "*a.scenario.yaml: expected apiVersion*"),
    ],
    ids=["no YAML", "no Scenario"],
)
def test_a_file_that_cannot_be_read_is_a_failure(
    text: str, told: str, pytester: pytest.Pytester
) -> None:
    (pytester.path / "a.scenario.yaml").write_text(text)
    result = pytest_run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"the scenario failed: {told}"])


def test_an_expression_that_does_not_compile_is_told_with_its_place(
    pytester: pytest.Pytester,
) -> None:
    scenario().expect("x", "podz.size() == 1").save(pytester.path / "a.scenario.yaml")
    result = pytest_run(pytester)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*a.scenario.yaml:*:17: *undeclared reference to 'podz'*"])


def test_a_scenario_is_played_once_for_all_its_tests(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import kubescene
        from kubescene.runs import local

        played = []
        real = local.run
        kubescene.run = lambda *a, **k: (played.append(a), real(*a, **k))[1]

        def pytest_terminal_summary(terminalreporter):
            terminalreporter.write_line(f"played {len(played)} times")
        """
    )
    scenario().done().expect("a", "true").expect("b", "true").save(
        pytester.path / "a.scenario.yaml"
    )
    pytest_run(pytester).stdout.fnmatch_lines(["played 1 times"])


def test_other_yaml_files_are_nobodys_tests(pytester: pytest.Pytester) -> None:
    scenario().save(pytester.path / "scenario.yaml")
    (pytester.path / "values.yaml").write_text("a: [")
    pytest_run(pytester).assert_outcomes()


def test_expectations_of_one_name_in_two_files_are_two_tests(pytester: pytest.Pytester) -> None:
    for name in ("a", "b"):
        scenario(name).done().expect("x", "true").save(pytester.path / f"{name}.scenario.yaml")
    pytest_run(pytester).assert_outcomes(passed=4)
    pytest_run(pytester, "a.scenario.yaml::x").assert_outcomes(passed=1)


def test_clusters_are_made_for_a_test_and_stopped_after_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from kubescene.testing import make_node, make_pod, make_replica_set

        made = []

        def names(cluster):
            cluster.create(make_replica_set("web").replicas(1))
            return [pod["metadata"]["name"] for pod in cluster.settle().list("pods")]

        def test_a_pod_finds_a_node(kubescene_cluster):
            cluster = kubescene_cluster()
            made.append(cluster)
            cluster.create(make_node("n1").cpu("4"))
            cluster.create(make_pod("a").cpu("2"))
            assert cluster.settle().pod("a").node == "n1"
            assert cluster.manager.slots

        def test_that_one_is_stopped(kubescene_cluster):
            assert made and not made[0].manager.slots

        def test_clusters_of_a_seed_are_alike(kubescene_cluster):
            first, second = (names(kubescene_cluster(seed=7)) for _ in range(2))
            assert first == second != names(kubescene_cluster(seed=8))

        def test_the_scheduler_can_be_configured(kubescene_cluster):
            config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind":
                      "KubeSchedulerConfiguration", "profiles": [{"schedulerName": "mine"}]}
            cluster = kubescene_cluster(scheduler=config)
            cluster.create(make_node("n1").cpu("4"))
            cluster.create(make_pod("a").scheduler("mine"))
            assert cluster.settle().pod("a").node == "n1"
        """
    )
    pytest_run(pytester).assert_outcomes(passed=4)


def test_a_seed_on_the_command_line_is_for_all(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_seed(kubescene_cluster):
            assert kubescene_cluster(seed=1).options.seed == 9
        """
    )
    pytest_run(pytester, "--kubescene-seed=9").assert_outcomes(passed=1)
    named = ScenarioBuilder("s").create(make_replica_set("web")).done().expect("x", "false").build()
    named["spec"]["expectations"][0]["messageExpression"] = "'its name: ' + pods[0].name"
    (pytester.path / "a.scenario.yaml").write_text(json.dumps(named))
    told = {name_told(pytest_run(pytester, *seed)) for seed in ((), ("--kubescene-seed=9",))}
    assert len(told) == 2


def name_told(result: pytest.RunResult) -> str:
    # Where CI is set, pytest's short summary repeats the line in full.
    return next(each for each in result.outlines if "does not hold: its name: web-" in each)


def test_those_who_do_not_use_it_do_not_pay(pytester: pytest.Pytester) -> None:
    """Loading the plugin and collecting other files imports nothing of ours but itself."""
    pytester.makepyfile(
        """
        import json, sys

        def test_modules():
            ours = sorted(each for each in sys.modules if each.startswith("kubescene"))
            print(json.dumps(ours))
        """
    )
    result = pytest_run(pytester, "-s")
    (line,) = [each for each in result.outlines if '["kubescene"' in each]
    ours = {"kubescene", "kubescene.types", "kubescene.version", "kubescene.testing"}
    assert set(json.loads(line[line.index("[") :])) <= ours | {
        "kubescene.testing.builders",
        MODULE,
    }


def test_the_module_itself_imports_little() -> None:
    code = f"import sys, pytest; before = set(sys.modules); import {MODULE}\n"
    code += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [each for each in done.stdout.split() if "." not in each]
    assert set(loaded) <= {"kubescene"}


def test_the_plugin_is_announced_to_pytest() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'[project.entry-points.pytest11]\nkubescene = "{MODULE}"\n' in project
