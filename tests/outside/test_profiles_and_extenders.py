"""A real kube-scheduler with several profiles, and with an extender, decides as ours does."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubescene.outside.settings import missing_settings, recommended_configuration
from kubescene.scenario.outside import OutsideController, OutsideKind
from kubescene.testing.comparing_schedulers import (
    Differences,
    ObservedDecision,
    OtherScheduler,
    decisions_in,
    names_in,
    ours,
)
from kubescene.timeline import TimelineLog
from kubescene.types import JsonObject
from outside.test_schedulers_in_turns import KUBE_SCHEDULER, node, pod
from outside_runs import Played, create, done, scenario, stage
from real_programs import require_program
from scheduler.extender_process import fake_extender

PROFILES = [
    {"schedulerName": "default-scheduler"},
    {
        "schedulerName": "packing",
        "plugins": {
            "score": {
                "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                "enabled": [{"name": "NodeResourcesFit", "weight": 5}],
            }
        },
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {
                        "type": "MostAllocated",
                        "resources": [{"name": "cpu", "weight": 1}],
                    }
                },
            }
        ],
    },
]


@pytest.fixture(scope="module")
def binary() -> str:
    return str(require_program("kube-scheduler"))


def configured(operations: list[JsonObject], **config: Any) -> JsonObject:
    """A scenario that ours plays with this configuration."""
    made = scenario(operations, simulation={"schedulerConfig": config})
    del made["spec"]["controllers"]["outside"]
    return made


def written(made: JsonObject, folder: Path) -> Path:
    """The same configuration as a file."""
    file = folder / "scheduler.yaml"
    config = recommended_configuration(made["spec"]["simulation"]["schedulerConfig"])
    file.write_text(yaml.safe_dump(config))
    return file


def configuration(**more: Any) -> JsonObject:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**kind, **more}


TWO_PROFILES = [
    *(create(1, node(f"n{i}", 4 + i % 2)) for i in range(6)),
    *(create(2, pod(f"spread{i}", "300m")) for i in range(6)),
    *(create(2, pod(f"packed{i}", "300m", schedulerName="packing")) for i in range(8)),
    *(create(3, pod(f"late{i}", "700m", schedulerName="packing")) for i in range(4)),
    create(3, pod("huge", "9", schedulerName="packing")),
    create(3, pod("huge-too", "9")),
    create(4, node("big", 20)),
    done(5),
]


def test_two_profiles_are_fed_in_one_line_and_decided_alike(binary: str, tmp_path: Path) -> None:
    made = configured(TWO_PROFILES, **configuration(profiles=PROFILES))
    here = ours(made)
    nodes = {each.pod.rstrip("0123456789"): set[str]() for each in here}
    for each in here:
        nodes[each.pod.rstrip("0123456789")].add(each.node)
    assert len(nodes["default/packed"]) < len(nodes["default/spread"])
    command = f"{binary} --config {written(made, tmp_path)} {{settings}}"
    with OtherScheduler(command, names_in(made)) as other:
        assert list(Differences(here, other.play(made)).lines()) == []


def test_a_profile_that_the_scenario_does_not_name_is_refused_by_name() -> None:
    config = recommended_configuration(configuration(profiles=PROFILES))
    one = OutsideController("kube-scheduler", OutsideKind.SCHEDULER)
    both = OutsideController("x", OutsideKind.SCHEDULER, ("packing", "default-scheduler"))
    (missing,) = [each for each in missing_settings(config, (), one) if "profiles" in each]
    assert "profiles is default-scheduler, packing, must be default-scheduler alone" in missing
    assert not [each for each in missing_settings(config, (), both) if "profiles" in each]


def labelled(obj: JsonObject, **labels: str) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


EXTENDED = [
    *(create(1, node(f"{name}{i}", 2)) for name in "ab" for i in range(4)),
    *(create(2, labelled(pod(f"p{i}", "600m"), shuns="ab"[i % 2])) for i in range(10)),
    create(3, labelled(pod("nowhere", "100m"), shuns="")),
    *(create(4, pod(f"q{i}", "400m")) for i in range(5)),
    done(5),
]


def test_an_extender_filters_and_scores_alike_where_no_two_nodes_are_equal(
    binary: str, tmp_path: Path
) -> None:
    """Among equals kube-scheduler draws lots then: refused, unless one says that one knows it."""
    with fake_extender() as extender:
        rules = {
            "urlPrefix": extender.url("ranking"),
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1000,
            "nodeCacheCapable": True,
        }
        made = configured(EXTENDED, **configuration(extenders=[rules]))
        here = ours(made)
        asked = len(extender.calls("ranking"))
        played = beside(binary, written(made, tmp_path))
        assert len(extender.calls("ranking")) >= 2 * asked
    assert (played.phase, played.message) == ("Succeeded", "")
    assert list(Differences(here, decided(played)).lines()) == []
    assert [each.message for each in here if "nowhere" in each.pod and each.message] != []


def beside(binary: str, config: Path) -> Played:
    with stage() as made:
        command = f"{binary} --config {config} {{settings}}"
        made.start("kube-scheduler", command, "scheduler", unchecked=True)
        return made.play(scenario(EXTENDED, {**KUBE_SCHEDULER, "settings": "Unchecked"}))


def decided(played: Played) -> list[ObservedDecision]:
    log = TimelineLog()
    for fact in played.facts:
        log.append(fact)
    return decisions_in(log)
