"""KubeSchedulerConfiguration: what is accepted, what it means, and what is refused in which words.

Texts are those of kube-scheduler v1.36; ids are those of the fidelity checklist.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubescene.errors import ConfigurationError, SchedulerConfigurationError
from kubescene.scheduler import (
    SUCCESS,
    ClassFactory,
    CycleState,
    ExtensionPoint,
    FilterPlugin,
    Handle,
    NodeInfo,
    Plugin,
    PodInfo,
    SchedulerOptions,
    ScorePlugin,
    Status,
    default_profile,
)
from kubescene.scheduler.configuration import describe, load_configuration, read_configuration
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.types import JsonObject

V1 = "kubescheduler.config.k8s.io/v1"
CREATING = "initializing profiles: creating profile for scheduler name default-scheduler: "
FIT = f'{CREATING}initializing plugin "NodeResourcesFit": scoringStrategy'


def config(**fields: Any) -> JsonObject:
    return {"apiVersion": V1, "kind": "KubeSchedulerConfiguration", **fields}


def profile(**fields: Any) -> JsonObject:
    return config(profiles=[fields])


def plugins(**sets: Any) -> JsonObject:
    return profile(plugins=sets)


def args(name: str, **given: Any) -> JsonObject:
    return profile(pluginConfig=[{"name": name, "args": given}])


def strategy(**given: Any) -> JsonObject:
    return args("NodeResourcesFit", scoringStrategy=given)


def enabled(*names: str, **weights: int) -> JsonObject:
    return {"enabled": [{"name": name} for name in names] + _weighted(weights)}


def _weighted(weights: Mapping[str, int]) -> list[JsonObject]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def disabled(*names: str) -> JsonObject:
    return {"disabled": [{"name": name} for name in names]}


def names(options: SchedulerOptions, point: ExtensionPoint, at: int = 0) -> list[str]:
    return [each.name for each in options.profiles[at].at(point)]


def weights(options: SchedulerOptions) -> dict[str, int]:
    return {each.name: each.weight for each in options.profiles[0].at(ExtensionPoint.SCORE)}


def refused(value: Any) -> SchedulerConfigurationError:
    with pytest.raises(SchedulerConfigurationError) as caught:
        read_configuration(value, source="scheduler.yaml")
    return caught.value


# -- what is meant -----------------------------------------------------------------------------


def test_k_2_an_empty_configuration_is_the_default_scheduler() -> None:
    options = read_configuration(config())
    assert options.profiles[0].points == default_profile().points
    assert options.profiles[0].scheduler_name == "default-scheduler"
    assert (options.backoff.initial_s, options.backoff.maximum_s) == (1, 10)
    complete = describe(options)
    assert complete["parallelism"] == 16
    assert complete["percentageOfNodesToScore"] == 0
    assert complete["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    }
    assert complete["clientConnection"]["qps"] == 50
    assert complete["enableContentionProfiling"] is True


def test_k_3_arguments_have_their_defaults() -> None:
    arguments = read_configuration(config()).profiles[0].arguments
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    assert arguments["NodeResourcesFit"] == {
        "scoringStrategy": {"type": "LeastAllocated", "resources": resources}
    }
    assert arguments["NodeResourcesBalancedAllocation"] == {"resources": resources}
    assert arguments["NodeAffinity"] == {}
    given = read_configuration(
        profile(
            pluginConfig=[
                {"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 3}},
                {"name": "InterPodAffinity"},
                {"name": "PodTopologySpread", "args": {}},
                {"name": "VolumeBinding", "args": None},
                {"name": "DynamicResources", "args": {"filterTimeout": "90s"}},
            ]
        )
    )
    found = given.profiles[0].arguments
    assert found["DefaultPreemption"] == {
        "minCandidateNodesPercentage": 10,
        "minCandidateNodesAbsolute": 3,
    }
    assert found["InterPodAffinity"] == {
        "hardPodAffinityWeight": 1,
        "ignorePreferredTermsOfExistingPods": False,
    }
    assert found["PodTopologySpread"] == {"defaultingType": "System"}
    assert found["VolumeBinding"] == {"bindTimeoutSeconds": 600}
    assert found["DynamicResources"] == {"filterTimeout": "1m30s", "bindingTimeout": "10m0s"}


def test_k_3_a_resource_without_weight_has_weight_1() -> None:
    given = strategy(type="MostAllocated", resources=[{"name": "cpu"}, {"name": "x", "weight": 0}])
    found = read_configuration(given).profiles[0].arguments["NodeResourcesFit"]
    assert [each["weight"] for each in found["scoringStrategy"]["resources"]] == [1, 1]


def test_k_4_a_default_that_is_enabled_again_keeps_its_place_and_loses_its_weight() -> None:
    options = read_configuration(plugins(multiPoint=enabled("TaintToleration")))
    default = weights(SchedulerOptions())
    assert weights(options) == default | {"TaintToleration": 1}
    assert list(weights(options)) == list(default)


def test_k_4_star_leaves_only_what_is_enabled() -> None:
    only = enabled("PrioritySort", "DefaultBinder", "NodeName") | disabled("*")
    options = read_configuration(plugins(multiPoint=only))
    assert names(options, ExtensionPoint.FILTER) == ["NodeName"]
    assert names(options, ExtensionPoint.SCORE) == []


def test_k_5_what_a_point_enables_comes_first_if_it_is_a_default() -> None:
    options = read_configuration(plugins(score=enabled(NodeResourcesFit=5)))
    others = [name for name in weights(SchedulerOptions()) if name != "NodeResourcesFit"]
    assert list(weights(options)) == ["NodeResourcesFit", *others]
    assert weights(options)["NodeResourcesFit"] == 5


def test_k_5_star_at_a_point_leaves_only_what_that_point_enables() -> None:
    options = read_configuration(plugins(score=enabled("NodeAffinity") | disabled("*")))
    assert weights(options) == {"NodeAffinity": 1}
    assert names(options, ExtensionPoint.FILTER) == names(SchedulerOptions(), ExtensionPoint.FILTER)


def test_k_5_a_disabled_plugin_that_is_enabled_at_the_same_point_runs_last() -> None:
    both = enabled("TaintToleration") | disabled("TaintToleration")
    assert list(weights(read_configuration(plugins(score=both))))[-1] == "TaintToleration"


def test_k_6_disabled_at_multi_point_does_not_remove_what_a_point_enables() -> None:
    given = plugins(
        multiPoint=disabled("NodeAffinity"), score=enabled("NodeAffinity", TaintToleration=0)
    )
    options = read_configuration(given)
    assert "NodeAffinity" not in names(options, ExtensionPoint.FILTER)
    assert weights(options)["NodeAffinity"] == 1
    assert weights(options)["TaintToleration"] == 1


def test_k_14_profiles_have_their_own_plugins_and_percentages() -> None:
    options = read_configuration(
        config(
            percentageOfNodesToScore=30,
            podInitialBackoffSeconds=2,
            podMaxBackoffSeconds=60,
            profiles=[
                {"schedulerName": "a", "percentageOfNodesToScore": 70},
                {"schedulerName": "b", "plugins": {"filter": disabled("*")}},
                {"schedulerName": "c", "percentageOfNodesToScore": 0},
            ],
        )
    )
    assert [each.percentage_of_nodes_to_score for each in options.profiles] == [70, 30, 0]
    assert names(options, ExtensionPoint.FILTER, 1) == []
    assert (options.backoff.initial_s, options.backoff.maximum_s) == (2, 60)


def test_k_10_backoffs_may_be_equal() -> None:
    options = read_configuration(config(podInitialBackoffSeconds=10, podMaxBackoffSeconds=10))
    assert (options.backoff.initial_s, options.backoff.maximum_s) == (10, 10)


def test_arguments_of_a_plugin_that_does_not_exist_are_accepted() -> None:
    read_configuration(args("Unknown", x=1))


def test_a_complete_configuration_stands_for_itself() -> None:
    first = read_configuration(plugins(score=enabled(NodeAffinity=7) | disabled("TaintToleration")))
    again = read_configuration(describe(first))
    assert again.profiles == first.profiles
    assert describe(again) == describe(first)


def test_options_made_by_hand_can_be_described_and_read_again() -> None:
    options = with_plugin(SchedulerOptions(), Picky)
    again = read_configuration(describe(options), options)
    assert again.profiles[0].points == options.profiles[0].points
    assert read_configuration(describe(SchedulerOptions())).profiles[0].points == (
        default_profile().points
    )


# -- what is refused ---------------------------------------------------------------------------

WRONG = {
    "K-1 version": (
        {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration"},
        "apiVersion",
        'no kind "KubeSchedulerConfiguration" is registered for version '
        '"kubescheduler.config.k8s.io/v1beta3" in scheme '
        '"pkg/scheduler/apis/config/scheme/scheme.go:29"',
    ),
    "K-1 unknown field": (
        profile(schedulerNames="x"),
        "profiles[0].schedulerNames",
        'strict decoding error: unknown field "profiles[0].schedulerNames"',
    ),
    "K-1 unknown argument": (
        args("InterPodAffinity", nope=1),
        "profiles[0].pluginConfig[0].args.nope",
        "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: "
        'decoding args for plugin InterPodAffinity: strict decoding error: unknown field "nope"',
    ),
    "K-1 arguments of another plugin": (
        args("NodeAffinity", apiVersion=V1, kind="VolumeBindingArgs"),
        "profiles[0].pluginConfig[0].args.kind",
        "decoding .profiles[0].pluginConfig[0]: args for plugin NodeAffinity were not of type "
        "NodeAffinityArgs.kubescheduler.config.k8s.io, "
        "got VolumeBindingArgs.kubescheduler.config.k8s.io",
    ),
    "wrong type": (
        profile(plugins={"score": {"enabled": [{"name": "NodeAffinity", "weight": "2"}]}}),
        "profiles[0].plugins.score.enabled[0].weight",
        "profiles[0].plugins.score.enabled[0].weight: must be a whole number of 32 bits, not '2'",
    ),
    "wrong type of an argument": (
        args("NodeResourcesFit", scoringStrategy={"resources": "cpu"}),
        "profiles[0].pluginConfig[0].args.scoringStrategy.resources",
        "profiles[0].pluginConfig[0].args.scoringStrategy.resources: must be a list, not 'cpu'",
    ),
    "weight beyond 32 bits": (
        plugins(score=enabled(NodeAffinity=1 << 31)),
        "profiles[0].plugins.score.enabled[0].weight",
        "profiles[0].plugins.score.enabled[0].weight: must be a whole number of 32 bits, "
        "not 2147483648",
    ),
    "weight below 0": (
        plugins(score=enabled(NodeAffinity=-1)),
        "profiles[0].plugins.multiPoint",
        f"{CREATING}score plugins: total score of Score plugins could overflow",
    ),
    "K-7 unknown": (
        plugins(score=enabled("Nope")),
        "profiles[0].plugins.score.enabled[0]",
        f'{CREATING}ScorePlugin "Nope" does not exist',
    ),
    "K-7 unknown everywhere": (
        plugins(multiPoint=enabled("Nope"), preFilter=disabled("*")),
        "profiles[0].plugins.multiPoint.enabled[",
        f'{CREATING}FilterPlugin "Nope" does not exist',
    ),
    "K-7 wrong point": (
        plugins(score=enabled("NodeName")),
        "profiles[0].plugins.score.enabled[0]",
        f'{CREATING}plugin "NodeName" does not extend ScorePlugin plugin',
    ),
    "K-7 twice": (
        plugins(filter=enabled("NodeName", "NodeName")),
        "profiles[0].plugins.filter.enabled[1]",
        f'{CREATING}plugin "NodeName" already registered as "FilterPlugin"',
    ),
    "K-7 twice everywhere": (
        plugins(multiPoint=enabled("NodeAffinity", "NodeAffinity")),
        "profiles[0].plugins.multiPoint.enabled[",
        f'{CREATING}plugin "NodeAffinity" already registered as "PreFilterPlugin"',
    ),
    "placement plugins": (
        plugins(placementScore=enabled("NodeName")),
        "profiles[0].plugins.placementScore.enabled[0]",
        f'{CREATING}plugin "NodeName" does not extend PlacementScorePlugin plugin',
    ),
    "K-8 no queue sort": (
        plugins(multiPoint=disabled("PrioritySort")),
        "profiles[0].plugins.queueSort",
        f"{CREATING}only one queue sort plugin required for profile with scheduler name "
        '"default-scheduler", but got 0',
    ),
    "K-8 no bind": (
        plugins(bind=disabled("*")),
        "profiles[0].plugins.bind",
        f"{CREATING}at least one bind plugin is needed for profile with scheduler name "
        '"default-scheduler"',
    ),
    "K-8 queue sorts differ": (
        config(
            profiles=[
                {"schedulerName": "a"},
                {"schedulerName": "b", "plugins": {"queueSort": enabled("PrioritySort")}},
            ]
        ),
        "profiles[1].plugins.queueSort",
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort",'
        '"Weight":0}],"Disabled":null}: must be the same for all profiles',
    ),
    "K-9": (
        profile(pluginConfig=[{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]),
        "profiles[0].pluginConfig[1]",
        'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
    ),
    "K-10 parallelism": (
        config(parallelism=0),
        "parallelism",
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ),
    "K-10 percentage": (
        profile(percentageOfNodesToScore=101),
        "profiles[0].percentageOfNodesToScore",
        "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    "K-10 backoff": (
        config(podInitialBackoffSeconds=0, podMaxBackoffSeconds=-1),
        "podInitialBackoffSeconds",
        "[podInitialBackoffSeconds: Invalid value: 0: must be greater than 0, "
        "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to "
        "PodInitialBackoffSeconds]",
    ),
    "K-10 duplicate profile": (
        config(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}]),
        "profiles[1].schedulerName",
        "profiles[1].schedulerName: Duplicate value: {}",
    ),
    "K-10 nameless profiles": (
        config(profiles=[{"schedulerName": "a"}, {}]),
        "profiles[1].schedulerName",
        "profiles[1].schedulerName: Required value",
    ),
    "K-10 lock": (
        config(leaderElection={"resourceLock": "endpoints"}),
        "leaderElection.resourceLock",
        'leaderElection.resourceLock: Invalid value: "endpoints": '
        'resourceLock value must be "leases"',
    ),
    "K-10 lease": (
        config(leaderElection={"leaseDuration": "5s", "retryPeriod": "-1m"}),
        "leaderElection.retryPeriod",
        '[leaderElection.retryPeriod: Invalid value: "-1m0s": must be greater than zero, '
        'leaderElection.leaseDuration: Invalid value: "10s": '
        "must be greater than `RenewDeadline`]",
    ),
    "K-10 burst": (
        config(clientConnection={"burst": -1}),
        "clientConnection.burst",
        "clientConnection.burst: Invalid value: -1: must be non-negative",
    ),
    "K-10 removed plugin": (
        plugins(filter=enabled("EBSLimits")),
        "profiles[0].plugins.filter.enabled[0]",
        'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version '
        '"v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    "K-11 weight": (
        config(extenders=[{"urlPrefix": "http://x", "prioritizeVerb": "p"}]),
        "extenders[0].weight",
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ),
    "K-11 binders": (
        config(extenders=[{"bindVerb": "b"}, {"bindVerb": "b"}]),
        "extenders",
        'extenders: Invalid value: "found 2 extenders implementing bind": '
        "only one extender can implement bind",
    ),
    "K-11 managed twice": (
        config(extenders=[{"managedResources": [{"name": "a.b/c"}, {"name": "a.b/c"}]}]),
        "extenders[0].managedResources[1].name",
        'extenders[0].managedResources[1].name: Invalid value: "a.b/c": '
        "duplicate extender managed resource name",
    ),
    "K-12 preemption": (
        args("DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0),
        "profiles[0].pluginConfig[0].args.minCandidateNodesPercentage",
        "[profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 0: "
        "cannot be zero at the same time as minCandidateNodesAbsolute, "
        "profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: Invalid value: 0: "
        "cannot be zero at the same time as minCandidateNodesPercentage]",
    ),
    "K-12 spread": (
        args("PodTopologySpread", defaultingType="List", defaultConstraints=[{}]),
        "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew",
        "[profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: Invalid value: 0: "
        "not in valid range (0, inf), "
        "profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: Required value: "
        "can not be empty, "
        "profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: "
        "Required value: can not be empty]",
    ),
    "K-12 shape of volumes": (
        args("VolumeBinding", shape=[{"utilization": 5}], bindTimeoutSeconds=0),
        "profiles[0].pluginConfig[0].args.shape",
        'profiles[0].pluginConfig[0].args.shape: Invalid value: [{"Utilization":5,"Score":0}]: '
        "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
    ),
    "K-12 claims": (
        args("DynamicResources", bindingTimeout="999ms", filterTimeout="-1s"),
        "profiles[0].pluginConfig[0].args.filterTimeout",
        '[profiles[0].pluginConfig[0].args.filterTimeout: Invalid value: "-1s": '
        "must be zero or positive, "
        'profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: "999ms": '
        "must be at least 1 second]",
    ),
    "K-12 balanced": (
        args("NodeResourcesBalancedAllocation", resources=[{"name": "a"}, {"name": "a"}]),
        "profiles[0].pluginConfig[0].args.resources[1].name",
        'profiles[0].pluginConfig[0].args.resources[1].name: Duplicate value: "a"',
    ),
    "K-13 strategy": (
        strategy(type="Nope"),
        "profiles[0].pluginConfig[0].args.scoringStrategy.type",
        f'{FIT}.type: Unsupported value: "Nope": supported values: "LeastAllocated", '
        '"MostAllocated", "RequestedToCapacityRatio"',
    ),
    "K-13 weight": (
        strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
        "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight",
        f"{FIT}.resources[0].weight: Invalid value: 101: "
        "resource weight of cpu not in valid range (0, 100]",
    ),
    "K-13 ratio without need": (
        strategy(type="LeastAllocated", requestedToCapacityRatio={}),
        "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio",
        f"{FIT}.requestedToCapacityRatio: Forbidden: "
        "must be nil when type is not RequestedToCapacityRatio",
    ),
    "K-13 shape": (
        strategy(
            type="RequestedToCapacityRatio",
            requestedToCapacityRatio={
                "shape": [{"utilization": 5, "score": 11}, {"utilization": 5, "score": 1}]
            },
        ),
        "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[1]",
        f'{CREATING}initializing plugin "NodeResourcesFit": '
        "[scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: "
        "values must be sorted in increasing order, "
        "scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: "
        "not in valid range [0, 10]]",
    ),
    "no object": ([], "", "a configuration is an object of kind KubeSchedulerConfiguration"),
    "no version": (
        {"kind": "KubeSchedulerConfiguration"},
        "apiVersion",
        f"Object 'apiVersion' is missing: it must be {V1}",
    ),
}


@pytest.mark.parametrize(("value", "path", "text"), WRONG.values(), ids=WRONG)
def test_a_bad_configuration_is_refused_in_the_words_of_kube_scheduler(
    value: Any, path: str, text: str
) -> None:
    error = refused(value)
    assert error.text == text
    assert error.path.startswith(path)
    assert str(error).startswith("scheduler.yaml: ")
    assert error.path in str(error)


def test_without_a_source_an_error_is_its_text() -> None:
    with pytest.raises(SchedulerConfigurationError) as caught:
        read_configuration(plugins(score=enabled("Nope")))
    assert str(caught.value) == caught.value.text


# -- files -------------------------------------------------------------------------------------


def test_a_file_is_yaml_or_json(tmp_path: Path) -> None:
    json_file, yaml_file = tmp_path / "c.json", tmp_path / "c.yaml"
    json_file.write_text(json.dumps(config(podMaxBackoffSeconds=30)))
    yaml_file.write_text(
        f"# ours\napiVersion: {V1}\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 30\n"
    )
    assert load_configuration(json_file).backoff.maximum_s == 30
    assert load_configuration(yaml_file) == load_configuration(json_file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "kind: KubeSchedulerConfiguration\nkind: KubeSchedulerConfiguration\n"
            f"apiVersion: {V1}\n",
            'strict decoding error: line 2, column 1: duplicate field "kind"',
            id="twice in YAML",
        ),
        pytest.param(
            f'{{"apiVersion": "{V1}", "kind": "KubeSchedulerConfiguration", '
            '"profiles": [{"schedulerName": "a", "schedulerName": "b"}]}',
            'strict decoding error: duplicate field "profiles[0].schedulerName"',
            id="twice in JSON",
        ),
        pytest.param("{", "unexpected end of data", id="torn"),
        pytest.param("--- {}\n--- {}\n", "it must hold one document, not 2", id="two"),
        pytest.param("", "it must hold one document, not 0", id="empty"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(text)
    with pytest.raises(SchedulerConfigurationError) as caught:
        load_configuration(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchedulerConfigurationError, match=r"nothing\.yaml: cannot be read"):
        load_configuration(tmp_path / "nothing.yaml")


# -- plugins of the user's ---------------------------------------------------------------------


class Picky(FilterPlugin, ScorePlugin):
    name = "Picky"

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        del handle
        self.only = arguments.get("only", "")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


def standing(options: SchedulerOptions) -> list[ExtensionPoint]:
    points = options.profiles[0].points
    return [point for point, at in points.items() if any(each.name == "Picky" for each in at)]


REGISTERED = SchedulerOptions(plugins={"Picky": ClassFactory(Picky)})


def test_a_registered_plugin_runs_where_it_is_enabled() -> None:
    everywhere = read_configuration(plugins(multiPoint=enabled(Picky=4)), REGISTERED)
    assert standing(everywhere) == [ExtensionPoint.FILTER, ExtensionPoint.SCORE]
    assert weights(everywhere)["Picky"] == 4
    once = read_configuration(plugins(score=enabled("Picky")), REGISTERED)
    assert standing(once) == [ExtensionPoint.SCORE]
    assert standing(read_configuration(config(), REGISTERED)) == []


def test_arguments_reach_a_plugin_as_they_are_written() -> None:
    options = read_configuration(args("Picky", only="b", weights=[1]), REGISTERED)
    assert options.profiles[0].arguments["Picky"] == {"only": "b", "weights": [1]}


def test_an_added_plugin_is_a_default_unless_the_configuration_speaks_of_it() -> None:
    added = with_plugin(SchedulerOptions(), Picky)
    assert standing(read_configuration(config(), added)) == [
        ExtensionPoint.FILTER,
        ExtensionPoint.SCORE,
    ]
    assert names(read_configuration(config(), added), ExtensionPoint.FILTER)[-1] == "Picky"
    placed = read_configuration(plugins(score=enabled("Picky")), added)
    assert standing(placed) == [ExtensionPoint.SCORE]
    assert standing(read_configuration(plugins(multiPoint=disabled("Picky")), added)) == []


def hide(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    return Picky(arguments, handle)


def test_a_class_is_a_factory_that_tells_what_it_makes() -> None:
    shown = SchedulerOptions(plugins={"Picky": Picky})
    assert standing(read_configuration(plugins(score=enabled("Picky")), shown))
    hidden = SchedulerOptions(plugins={"Picky": hide})
    with pytest.raises(ConfigurationError, match="register its class"):
        read_configuration(plugins(multiPoint=enabled("Picky")), hidden)
