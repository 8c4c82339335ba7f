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
