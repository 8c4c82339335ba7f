"""Names that are nearly right: a fault says which one is meant."""

import pytest

from kubescene.api.builtin import builtin_scheme
from kubescene.api.kinds import POD
from kubescene.api.schemas.strict_decoding import known_fields
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import BadRequestError
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.spec import normalised
from kubescene.scenario.validation.objects import object_faults
from kubescene.testing import make_pod
from kubescene.types import JsonObject


def faults(obj: JsonObject) -> list[str]:
    spec = normalised(ScenarioBuilder("s").create(obj).done().build(), None)
    return [str(each.error) for each in object_faults(spec, ControllerRegistrations())]


def test_a_field_of_a_pod_that_is_meant() -> None:
    pod = make_pod("a").build()
    pod["spec"]["nodeSelectr"] = {"a": "b"}
    pod["spec"]["containers"][0]["resourcesX"] = {}
    pod["spec"]["zzz"] = 1
    told = " ".join(faults(pod))
    assert 'unknown field "spec.nodeSelectr": did you mean nodeSelector?' in told
    assert 'unknown field "spec.containers[0].resourcesX": did you mean resources?' in told
    assert 'unknown field "spec.zzz"' in told
    assert 'unknown field "spec.zzz":' not in told


@pytest.mark.parametrize(
    ("version", "kind", "meant"),
    [
        ("v1", "Pood", "did you mean Pod\\?"),
        ("apps/v1", "Deploymnt", "did you mean Deployment\\?"),
        ("v1", "Deployment", "Deployment is of apps/v1;"),
        ("v1", "Gadget", 'version "v1": check apiVersion'),
    ],
)
def test_a_kind_that_is_meant(version: str, kind: str, meant: str) -> None:
    with pytest.raises(BadRequestError, match=meant):
        builtin_scheme().of_kind(version, kind)


def test_which_fields_stand_beside_one() -> None:
    assert "nodeSelector" in known_fields(POD, ("spec", "x"))
    assert "resources" in known_fields(POD, ("spec", "containers", 0, "x"))
    assert known_fields(POD, ("nothing", "x")) == []
    assert known_fields(POD, ("metadata", "labels", "x")) == []


def outage(**spec: object) -> JsonObject:
    body: JsonObject = {"what": "NodesSilent", "nodes": {}, **spec}
    named = {"name": "o"}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": named,
        "spec": body,
    }


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"fro": "1m"}, 'unknown field "spec.fro": did you mean for?'),
        (
            {"nodes": {"matchExpression": []}},
            'unknown field "spec.nodes.matchExpression": did you mean matchExpressions?',
        ),
        (
            {"nodes": {"matchExpressions": [{"key": "a", "operator": "In", "value": []}]}},
            'unknown field "spec.nodes.matchExpressions[0].value": did you mean values?',
        ),
        ({"what": "NodesSilnt"}, 'Unsupported value: "NodesSilnt"'),
        ({"for": "soon"}, "spec.for: 'soon' is not a duration"),
        ({"share": 2}, "spec.share: must be above 0 and at most 1, not 2"),
        ({"what": "MetricsGap", "cpuShare": 0.5}, "spec.cpuShare: only CpuStolen has it"),
        ({"groups": {"matchLabel": {}}}, 'unknown field "spec.groups.matchLabel"'),
    ],
)
def test_an_outage_that_makes_no_sense_is_found_before_the_run(spec: JsonObject, told: str) -> None:
    written = normalised(ScenarioBuilder("s").create(outage(**spec)).done().build(), None)
    found = [each.error for each in object_faults(written)]
    assert any(told in str(each) for each in found)
    assert all(each.path[3:5] == ("createOperation", "object") for each in found)


def test_every_fault_of_an_outage_has_its_place() -> None:
    spec = {"share": 2, "for": "soon", "notice": "1m"}
    written = normalised(ScenarioBuilder("s").create(outage(**spec)).done().build(), None)
    assert [each.path[5:] for each in object_faults(written)] == [
        ("spec", "share"),
        ("spec", "notice"),
        ("spec", "for"),
    ]
