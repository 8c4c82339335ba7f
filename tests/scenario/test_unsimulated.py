"""Warnings for what nobody acts on: by the plugins and controllers that a run really has."""

import json
from typing import Any

import pytest

import kubescene
from kubescene.errors import ScenarioError
from kubescene.scenario import ScenarioBuilder, ScenarioPhase, parse_spec
from kubescene.scenario.validation.unsimulated import (
    ENDING,
    KINDS,
    POD_FIELDS,
    Players,
    unsimulated,
)
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import read_configuration
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject
from registry.confusion import CONFUSED
from widgets import widget_definition

ALL = frozenset(POD_FIELDS.values())
SPECS: dict[str, JsonObject] = {
    "affinity.nodeAffinity": {"affinity": {"nodeAffinity": {"x": []}}},
    "affinity.podAffinity": {"affinity": {"podAffinity": {"x": []}}},
    "affinity.podAntiAffinity": {"affinity": {"podAntiAffinity": {"x": []}}},
    "containers[].ports[].hostPort": {"containers": [{"ports": [{}, {"hostPort": 80}]}]},
    "nodeSelector": {"nodeSelector": {"a": "b"}},
    "resourceClaims": {"resourceClaims": [{"name": "x"}]},
    "schedulingGates": {"schedulingGates": [{"name": "x"}]},
    "schedulingGroup": {"schedulingGroup": {"podGroupName": "x"}},
    "tolerations": {"tolerations": [{"operator": "Exists"}]},
    "topologySpreadConstraints": {"topologySpreadConstraints": [{"maxSkew": 1}]},
    "volumes[].ephemeral": {"volumes": [{"ephemeral": {"volumeClaimTemplate": {}}}]},
    "volumes[].persistentVolumeClaim": {"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]},
    "workloadRef": {"workloadRef": {"name": "x"}},
}


def warnings(scenario: ScenarioBuilder, *controllers: str, plugins: Any = ALL) -> list[str]:
    cast = Players(controllers, {"default-scheduler": plugins})
    return [str(each) for each in unsimulated(parse_spec(scenario.build()), cast)]


@pytest.mark.parametrize("path", sorted(POD_FIELDS))
def test_a_pod_field_is_fine_if_its_plugin_is_there(path: str) -> None:
    pod = {**make_pod("p").build(), "spec": SPECS[path]}
    scenario, plugin = ScenarioBuilder("s").create(pod, id="x"), POD_FIELDS[path]
    assert warnings(scenario) == []
    field = path.replace("[]", "")
    assert warnings(scenario, plugins=ALL - {plugin}) == [
        f"pod field {field} has no effect: the plugin {plugin} is not there (operation 'x')"
    ]


@pytest.mark.parametrize("path", ["nodeSelector", "tolerations"])
def test_a_field_that_is_empty_is_not_used(path: str) -> None:
    empty: Any = {} if path == "nodeSelector" else []
    pod = {**make_pod("p").build(), "spec": {path: empty}}
    assert warnings(ScenarioBuilder("s").create(pod), plugins=()) == []


@pytest.mark.parametrize(("group", "kind"), sorted(KINDS))
def test_a_kind_is_fine_if_its_controller_runs(group: str, kind: str) -> None:
    obj = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "x"}}
    scenario, controller = ScenarioBuilder("s").create(obj, count=3, id="x"), KINDS[group, kind]
    left = [f"completion of a {kind}"] if (group, kind) in ENDING else []
    assert [each.partition(" has no effect")[0] for each in warnings(scenario, controller)] == left
    expected = f"{kind} has no effect: the controller {controller} does not run (operation 'x')"
    assert warnings(scenario) == [expected]


def test_a_template_is_looked_into_where_its_controller_runs() -> None:
    web = make_deployment("web").template(make_pod("web").select(disk="ssd"))
    scenario = ScenarioBuilder("s").create(web)
    assert "pod field nodeSelector" in warnings(scenario, "deployment", plugins=())[0]


def test_the_same_is_said_once_with_how_often() -> None:
    scenario = ScenarioBuilder("s")
    for name in "abc":
        scenario.create(make_pod(name).select(disk="ssd"), id=name)
    (warning,) = warnings(scenario, plugins=())
    assert warning.endswith("(operation 'a' and 2 more)")


def test_a_conversion_that_nobody_makes_is_named() -> None:
    definition = widget_definition()
    hook = {"conversion": {"strategy": "Webhook"}}
    definition["spec"] = {**definition["spec"], **hook}
    assert warnings(ScenarioBuilder("s").create(definition)) == []
    versions = [*definition["spec"]["versions"], {"name": "v2", "served": True, "storage": False}]
    definition["spec"]["versions"] = versions
    assert warnings(ScenarioBuilder("s").create(definition))[0].startswith(
        "conversion by a webhook has no effect: nobody calls webhooks: between versions only"
    )


def test_a_patch_is_looked_into() -> None:
    patch = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    scenario = ScenarioBuilder("s").patch("v1", "Node", "n", patch)
    assert warnings(scenario)[0].startswith("the taint effect NoExecute has no effect")
    assert warnings(scenario, "taint-eviction") == []


def test_a_pod_that_is_placed_already_asks_nothing_of_a_scheduler() -> None:
    scenario = ScenarioBuilder("s").create(make_pod("p").on("n").select(disk="ssd"))
    assert warnings(scenario, plugins=()) == []


def test_an_unknown_scheduler_name_is_named_and_its_pods_wait() -> None:
    pod = make_pod("p").build()
    pod = {**pod, "spec": {**pod["spec"], "schedulerName": "mine"}}
    gated = make_pod("g").build()
    gated = {**gated, "spec": {**gated["spec"], "schedulingGates": [{"name": "a/b"}]}}
    run = kubescene.run(ScenarioBuilder("s").create(make_node("n"), pod, gated))
    assert run.ok, run.message
    (warning,) = run.summary.warnings
    assert "schedulerName: mine" in warning
    assert [(each.pod, each.attempts, each.message) for each in run.summary.pending] == [
        ("default/g", 0, "it waits for its scheduling gates: a/b"),
        ("default/p", 0, "no scheduler has tried to place it (schedulerName 'mine')"),
    ]


def test_a_gated_pod_that_is_let_go_waits_no_more() -> None:
    gated = make_pod("g").build()
    gated = {**gated, "spec": {**gated["spec"], "schedulingGates": [{"name": "a"}]}}
    scenario = ScenarioBuilder("s").create(make_node("n"), gated).next_step()
    scenario.patch("v1", "Pod", "g", {"spec": {"schedulingGates": None}}, patch_type="merge")
    run = kubescene.run(scenario)
    assert run.ok, run.message
    assert run.summary.pending == []


def test_a_controller_that_the_scenario_turns_off_is_missed() -> None:
    web = make_deployment("web")
    scenario = ScenarioBuilder("s").disable("deployment").create(web)
    assert "the controller deployment does not run" in kubescene.run(scenario).summary.warnings[0]
    assert kubescene.run(ScenarioBuilder("s").create(web)).summary.warnings == []


def test_strict_makes_it_a_fault_before_anything_is_touched() -> None:
    scenario = ScenarioBuilder("s").disable("deployment").create(make_deployment("web"), id="w")
    run = kubescene.run(scenario, strict=True)
    assert (run.phase, run.bad_input) == (ScenarioPhase.FAILED, True)
    assert run.message.startswith("step 1, operation 'w': Deployment has no effect")
    assert run.failed_at == ("spec", "operations", 0, "createOperation")
    assert len(run.timeline) == 0


def test_the_profile_of_a_plain_run_is_asked() -> None:
    spec = parse_spec(ScenarioBuilder("s").build())
    cast = Players.of(spec, ["deployment", "kube-scheduler"], SchedulerOptions())
    assert set(cast.controllers) == {"deployment", "kube-scheduler"}
    assert "NodeResourcesFit" in cast.plugins["default-scheduler"]


@pytest.mark.parametrize(
    ("patch", "subresource", "warned"),
    [
        ({"status": {"phase": "Failed"}}, "", "the status of a Pod in a patch"),
        ([{"op": "add", "path": "/status/phase", "value": "Failed"}], "", "the status of a Pod"),
        ({"status": {"phase": "Failed"}}, "status", ""),
        ({"spec": {}, "status": {}}, "status", "the spec of a Pod in a patch of its status"),
        ([{"op": "remove", "path": "/metadata/labels"}], "", ""),
        ({"spec": {"activeDeadlineSeconds": None}}, "", ""),
    ],
)
def test_a_part_that_a_patch_cannot_reach_is_named(
    patch: Any, subresource: str, warned: str
) -> None:
    """The API drops it in silence: a node that was to fail would live on."""
    scenario = ScenarioBuilder("s").create(make_pod("p")).build()
    body = {
        "typeMeta": {"apiVersion": "v1", "kind": "Pod"},
        "objectMeta": {"name": "p"},
        "patch": json.dumps(patch),
        "patchType": "json" if isinstance(patch, list) else "merge",
        **({"subresource": subresource} if subresource else {}),
    }
    scenario["spec"]["operations"].append({"id": "x", "step": 1, "patchOperation": body})
    run = kubescene.run(scenario)
    assert len(run.summary.warnings) == bool(warned)
    assert all(warned in each for each in run.summary.warnings)


def test_the_status_of_a_custom_object_may_be_a_part_like_any_other() -> None:
    scenario = ScenarioBuilder("s").build()
    body = {
        "typeMeta": {"apiVersion": "ex.com/v1", "kind": "Foo"},
        "objectMeta": {"name": "p"},
        "patch": '{"status": {}}',
    }
    scenario["spec"]["operations"] = [{"id": "x", "step": 1, "patchOperation": body}]
    assert not unsimulated(parse_spec(scenario), Players((), {"default-scheduler": ALL}))


SCALER: JsonObject = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
}
SERIES: JsonObject = {
    "apiVersion": "kubescene.dev/v1alpha1",
    "kind": "MetricSeries",
    "metadata": {"name": "m"},
}


LOAD: JsonObject = {
    "apiVersion": "kubescene.dev/v1alpha1",
    "kind": "Traffic",
    "metadata": {"name": "t"},
}


@pytest.mark.parametrize(
    ("objects", "advance", "said"),
    [
        ([SCALER], "", ["HorizontalPodAutoscaler"]),
        ([SCALER], "1m", ["metrics of a HorizontalPodAutoscaler"]),
        ([SERIES, SCALER], "", ["HorizontalPodAutoscaler"]),
        ([SERIES, SCALER], "1m", []),
        ([SERIES], "", []),
        ([LOAD], "", ["Traffic"]),
        ([LOAD, SCALER], "1m", []),
    ],
)
def test_an_autoscaler_needs_time_and_metrics(
    objects: list[JsonObject], advance: str, said: list[str]
) -> None:
    operations: list[JsonObject] = [
        {"id": f"o{at}", "step": 1, "createOperation": {"object": each}}
        for at, each in enumerate(objects)
    ]
    if advance:
        operations.append({"id": "t", "step": 1, "advanceOperation": {"duration": advance}})
    scenario = ScenarioBuilder("s").build()
    scenario["spec"]["operations"] = operations
    spec = parse_spec(scenario)
    players = Players.of(spec, ["horizontalpodautoscaler", "traffic"], SchedulerOptions())
    assert [each.what for each in unsimulated(spec, players)] == said


@pytest.mark.parametrize(
    ("settings", "advance", "said"),
    [
        (None, "", ["max of a NodeGroup", "boot of a NodeGroup"]),
        (None, "1m", ["max of a NodeGroup"]),
        ({}, "", ["max of a NodeGroup", "boot of a NodeGroup"]),
        ({}, "1m", []),
        ({"mode": "Immediate"}, "", []),
    ],
)
def test_a_node_group_needs_an_autoscaler_and_time(
    settings: JsonObject | None, advance: str, said: list[str]
) -> None:
    group = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "g"},
        "spec": {"max": 3, "boot": {"time": "1m"}, "template": {}},
    }
    scenario = ScenarioBuilder("s").create(group).build()
    if advance:
        advanced = {"id": "t", "step": 1, "advanceOperation": {"duration": advance}}
        scenario["spec"]["operations"].append(advanced)
    if settings is not None:
        scenario["spec"]["simulation"] = {"clusterAutoscaler": settings}
    spec = parse_spec(scenario)
    players = Players.of(spec, ["node-provider"], SchedulerOptions())
    found = {each.what: each.why for each in unsimulated(spec, players)}
    assert list(found) == said
    if settings == {} and not advance:
        assert "looks every 10s" in found["max of a NodeGroup"]


@pytest.mark.parametrize(
    ("profile", "settings", "is_said"),
    [
        ({}, {}, False),
        ({"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}, {}, True),
        (
            {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}},
            {"schedulerProfile": "default-scheduler"},
            False,
        ),
        ({"plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}, {}, False),
        (
            {
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/a"]}}
                ]
            },
            {},
            True,
        ),
    ],
)
def test_an_autoscaler_that_judges_otherwise_than_the_scheduler_is_named(
    profile: JsonObject, settings: JsonObject, is_said: bool
) -> None:
    group = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "g"},
        "spec": {"max": 3, "template": {}},
    }
    scenario = ScenarioBuilder("s").create(group).build()
    advanced = {"id": "t", "step": 1, "advanceOperation": {"duration": "1m"}}
    scenario["spec"]["operations"].append(advanced)
    scenario["spec"]["simulation"] = {"clusterAutoscaler": settings}
    spec = parse_spec(scenario)
    configuration: JsonObject = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    options = read_configuration(configuration, SchedulerOptions())
    players = Players.of(spec, ["node-provider"], options)
    found = [str(each) for each in unsimulated(spec, players)]
    assert ["schedulerProfile: default-scheduler" in each for each in found] == [True] * is_said


ANSWERING = {"enable-provisioning-requests": True}


@pytest.mark.parametrize(
    ("settings", "advance", "class_name", "said"),
    [
        (None, "1m", "check-capacity", "add `enable-provisioning-requests: true`"),
        ({}, "1m", "check-capacity", "add `enable-provisioning-requests: true`"),
        (ANSWERING, "", "check-capacity", "looks every 10s"),
        (ANSWERING, "1m", "queued", "of the classes check-capacity.autoscaling.x-k8s.io"),
        (ANSWERING, "1m", "check-capacity", ""),
        ({**ANSWERING, "mode": "Immediate"}, "", "best-effort-atomic-scale-up", ""),
    ],
)
def test_a_provisioning_request_needs_somebody_who_answers(
    settings: JsonObject | None, advance: str, class_name: str, said: str
) -> None:
    request = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {
            "provisioningClassName": f"{class_name}.autoscaling.x-k8s.io",
            "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}],
        },
    }
    scenario = ScenarioBuilder("s").create(request).build()
    if advance:
        advanced = {"id": "t", "step": 1, "advanceOperation": {"duration": advance}}
        scenario["spec"]["operations"].append(advanced)
    if settings is not None:
        scenario["spec"]["simulation"] = {"clusterAutoscaler": settings}
    spec = parse_spec(scenario)
    players = Players.of(spec, ["cluster-autoscaler"], SchedulerOptions())
    found = [str(each) for each in unsimulated(spec, players)]
    assert [said in each for each in found] == [True] * bool(said)


@pytest.mark.parametrize(
    ("settings", "advance", "offers", "said"),
    [
        (None, "1m", True, "add `spec.simulation.karpenter: {}`"),
        ({}, "", True, "add an `advanceOperation`"),
        ({}, "1m", False, "create an InstanceCatalogue"),
        ({}, "1m", True, ""),
    ],
)
def test_a_node_pool_needs_karpenter_time_and_offers(
    settings: JsonObject | None, advance: str, offers: bool, said: str
) -> None:
    objects: list[JsonObject] = [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "p"},
            "spec": {"template": {"spec": {"requirements": []}}},
        }
    ]
    if offers:
        kind = {"name": "m", "capacity": {"cpu": "1", "memory": "1Gi"}, "offers": []}
        objects.append(
            {
                "apiVersion": "kubescene.dev/v1alpha1",
                "kind": "InstanceCatalogue",
                "metadata": {"name": "c"},
                "spec": {"instanceTypes": [kind]},
            }
        )
    builder = ScenarioBuilder("s")
    for each in objects:
        builder.create(each)
    scenario = builder.build()
    if advance:
        advanced = {"id": "t", "step": 1, "advanceOperation": {"duration": advance}}
        scenario["spec"]["operations"].append(advanced)
    if settings is not None:
        scenario["spec"]["simulation"] = {"karpenter": settings}
    spec = parse_spec(scenario)
    players = Players.of(spec, ["karpenter"], SchedulerOptions())
    found = [each.why for each in unsimulated(spec, players) if each.what == "NodePool"]
    assert [each.endswith(said) for each in found] == [True] * bool(said)


def test_static_capacity_of_a_node_pool_is_named() -> None:
    catalogue = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "InstanceCatalogue"}
    kind = {"name": "m", "capacity": {"cpu": "1", "memory": "1Gi"}, "offers": []}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}}
    spec = {"replicas": 2, "template": {"spec": {"requirements": []}}}
    builder = ScenarioBuilder("s").create({**pool, "spec": spec})
    builder.create({**catalogue, "metadata": {"name": "c"}, "spec": {"instanceTypes": [kind]}})
    scenario = builder.build()
    advanced = {"id": "t", "step": 1, "advanceOperation": {"duration": "1m"}}
    scenario["spec"]["operations"].append(advanced)
    scenario["spec"]["simulation"] = {"karpenter": {}}
    read = parse_spec(scenario)
    players = Players.of(read, ["karpenter"], SchedulerOptions())
    found = [each.what for each in unsimulated(read, players)]
    assert found == ["a NodePool with replicas"]


CAPACITY_TYPE = "karpenter.sh/capacity-type"


def replaced_in_vain(
    capacity_types: list[str],
    *requirements: JsonObject,
    labels: JsonObject | None = None,
    **disruption: str,
) -> list[str]:
    """What is said of a NodePool with these requirements over such offers."""
    offers = [{"zone": "a", "price": "0.1", "capacityType": each} for each in capacity_types]
    template = {"metadata": {"labels": labels or {}}, "spec": {"requirements": [*requirements]}}
    builder = ScenarioBuilder("s").create(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "p"},
            "spec": {"template": template, "disruption": disruption},
        }
    )
    kind = {"name": "m", "capacity": {"cpu": "1", "memory": "1Gi"}, "offers": offers}
    builder.create(
        {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "InstanceCatalogue",
            "metadata": {"name": "c"},
            "spec": {"instanceTypes": [kind]},
        }
    )
    scenario = builder.build()
    scenario["spec"]["simulation"] = {"karpenter": {}}
    advanced = {"id": "t", "step": 1, "advanceOperation": {"duration": "1m"}}
    scenario["spec"]["operations"].append(advanced)
    spec = parse_spec(scenario)
    return [
        str(each) for each in unsimulated(spec, Players.of(spec, ["karpenter"], SchedulerOptions()))
    ]


def required(operator: str, *values: str) -> JsonObject:
    return {"key": CAPACITY_TYPE, "operator": operator, "values": [*values]}


def test_replacing_nodes_where_nothing_is_offered_as_spot_is_told_before_the_run() -> None:
    [said] = replaced_in_vain(["on-demand"])
    assert said.startswith("replacing nodes of a NodePool by cheaper ones has no effect")
    assert f"require `{CAPACITY_TYPE} In [on-demand]`" in said
    assert replaced_in_vain(["on-demand"], required("Exists")) == [said]
    assert replaced_in_vain(["on-demand"], required("In", "spot", "on-demand")) == [said]
    assert replaced_in_vain(["on-demand"], {**required("In", "b"), "key": "zone"}) == [said]


def test_nodes_that_can_be_replaced_or_never_are_not_told() -> None:
    assert replaced_in_vain(["on-demand", "spot"]) == []
    excluding = (required("In", "on-demand"), required("NotIn", "spot"), required("DoesNotExist"))
    for only in excluding:
        assert replaced_in_vain(["on-demand"], only) == []
    assert replaced_in_vain(["on-demand"], labels={CAPACITY_TYPE: "on-demand"}) == []
    assert replaced_in_vain(["on-demand"], consolidationPolicy="WhenEmpty") == []
    assert replaced_in_vain(["on-demand"], consolidateAfter="Never") == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"what": "CpuStolen", "cpuShare": 0.5}, ["the outage CpuStolen"]),
        ({"what": "MetricsGap"}, ["the outage MetricsGap"]),
        ({"what": "ImagePull", "pullTime": "1m"}, []),
    ],
)
def test_outages_that_nobody_feels_are_told(spec: JsonObject, said: list[str]) -> None:
    outage = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": {"name": "o"},
        "spec": {"nodes": {}, **spec},
    }
    run = kubescene.run(ScenarioBuilder("s").create(outage).done())
    assert [each.partition(" has no effect")[0] for each in run.summary.warnings] == said


@pytest.mark.parametrize("value", CONFUSED, ids=repr)
@pytest.mark.parametrize(
    "place",
    [
        "metadata",
        "metadata.namespace",
        "metadata.annotations",
        "metadata.labels",
        "spec",
        "spec.containers",
        "spec.taints",
        "spec.template",
        "spec.template.metadata",
        "spec.template.metadata.labels",
        "spec.template.metadata.annotations",
        "spec.template.spec",
        "status",
    ],
)
def test_what_has_the_wrong_type_is_somebody_elses_fault(place: str, value: Any) -> None:
    """The API refuses it when it is played: to look for what nobody simulates is no reason."""
    for made in (make_pod("p").build(), make_deployment("d").build(), make_node("n").build()):
        body = json.loads(json.dumps(made))
        *above, last = place.split(".")
        here = body
        for step in above:
            here = here.setdefault(step, {})
        here[last] = value
        create = {"createOperation": {"object": body}}
        for act in (create, {"patchOperation": {**PATCHED, "patch": json.dumps(body)}}):
            operations = [{"id": "a", "step": 1, **act}, {"id": "d", "step": 2, **DONE}]
            try:
                spec = parse_spec({**KEP, "spec": {"operations": operations}})
            except ScenarioError:
                continue
            unsimulated(spec, Players((), {"default-scheduler": ALL}))


BEHAVIOUR = {
    "kubescene.dev/run-time": "5m",
    "kubescene.dev/post-start-time": "1s",
    "kubescene.dev/readiness-probe": "{failAfter: 5m}",
    "kubescene.dev/containers": "[{name: c, exitCode: 1}]",
}
BEHAVING: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "annotations": BEHAVIOUR},
    "spec": {
        "initContainers": [{"name": "i", "image": "x"}],
        "containers": [
            {
                "name": "c",
                "image": "x",
                "lifecycle": {"postStart": {"exec": {"command": ["x"]}}},
                "readinessProbe": {"exec": {"command": ["x"]}},
            }
        ],
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return []
    found = [(*path, name) for name in (value if isinstance(value, dict) else range(len(value)))]
    deeper = [places(value[each[-1]], each) for each in found]
    return found + [each for some in deeper for each in some]


def test_what_is_said_of_that_pod_is_not_in_vain() -> None:
    assert warnings(ScenarioBuilder("s").create(BEHAVING)) == []


@pytest.mark.parametrize("place", places(BEHAVING["spec"]), ids=str)
def test_nor_does_it_matter_to_what_is_said_of_a_pod(place: tuple[Any, ...]) -> None:
    """A server plays what nobody has looked at yet: the play itself failed."""
    for value in CONFUSED:
        body = json.loads(json.dumps(BEHAVING))
        here = body["spec"]
        for step in place[:-1]:
            here = here[step]
        here[place[-1]] = value
        create = {"id": "a", "step": 1, "createOperation": {"object": body}}
        operations = [create, {"id": "d", "step": 2, **DONE}]
        spec = parse_spec({**KEP, "spec": {"operations": operations}})
        unsimulated(spec, Players((), {"default-scheduler": ALL}))


DONE: JsonObject = {"doneOperation": {}}
KEP: JsonObject = {
    "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "s"},
}
PATCHED = {"typeMeta": {"apiVersion": "v1", "kind": "Pod"}, "objectMeta": {"name": "p"}}
