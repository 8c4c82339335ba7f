"""Feature gates: names and defaults of kube-scheduler v1.36, and what may be turned here."""

import pickle

import pytest

from kubescene.errors import ConfigurationError
from kubescene.scheduler import ExtensionPoint, FeatureGates, SchedulerOptions, default_profile
from kubescene.scheduler.framework.feature_gates import DEFAULTS

GANGS = {"GenericWorkload": True, "GangScheduling": True}


def test_gates_are_at_their_defaults_unless_given() -> None:
    gates = FeatureGates.of({"SchedulerPopFromBackoffQ": False})
    assert not gates.pop_from_backoff
    assert not gates.gang_scheduling
    assert FeatureGates().pop_from_backoff


def test_the_flag_of_kube_scheduler_is_understood() -> None:
    gates = FeatureGates.parse("GenericWorkload=true, GangScheduling=True,")
    assert gates == FeatureGates.of(GANGS)
    assert FeatureGates.parse("") == FeatureGates()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"GangSchedling": True}, "unrecognized feature gate: GangSchedling"),
        ({"GangScheduling": True}, "depends on GenericWorkload, which is off"),
        ({"WorkloadAwarePreemption": True}, "cannot be turned here: this scheduler has it off"),
        ({"SchedulerQueueingHints": False}, "cannot be turned here: this scheduler has it on"),
        ({"GenericWorkload": "yes"}, "'yes' is neither true nor false"),
    ],
    ids=["unknown", "dependency", "off", "on", "text"],
)
def test_what_cannot_be_kept_is_refused(given: dict[str, bool], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        FeatureGates.of(given)


@pytest.mark.parametrize("text", ["GangScheduling", "GangScheduling=", "GangScheduling=1"])
def test_a_flag_says_true_or_false(text: str) -> None:
    with pytest.raises(ConfigurationError, match="write NAME=true or NAME=false"):
        FeatureGates.parse(text)


def test_a_gate_may_be_given_at_its_default() -> None:
    assert FeatureGates.of(dict(DEFAULTS)).enabled("SidecarContainers")


def test_the_default_profile_has_the_plugins_of_the_gates() -> None:
    options = SchedulerOptions(feature_gates=FeatureGates.of(GANGS))
    assert [each.name for each in options.profiles[0].at(ExtensionPoint.PERMIT)] == [
        "GangScheduling"
    ]
    assert options.profiles[0].points == default_profile(gates=FeatureGates.of(GANGS)).points
    assert not SchedulerOptions().profiles[0].at(ExtensionPoint.PERMIT)


def test_options_with_gates_can_be_sent_to_another_process() -> None:
    options = SchedulerOptions(feature_gates=FeatureGates.of(GANGS))
    assert pickle.loads(pickle.dumps(options)) == options
