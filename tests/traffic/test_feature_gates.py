"""Gates of the autoscalers, opened by the run."""

from pathlib import Path

import pytest

from kubescene.errors import TrafficError
from kubescene.traffic import load_run, run, run_of
from kubescene.traffic.results import TrafficResult

FIGHTING = Path(__file__).parents[2] / "examples" / "traffic" / "fighting.yaml"
MODE = "spec.autoscalers.1.object.spec.updatePolicy.updateMode="


def fought(*settings: str) -> TrafficResult:
    return run(load_run(FIGHTING, ["spec.duration=24h", *settings]))


def test_update_mode_in_place_needs_its_gate() -> None:
    told = r"spec.autoscalers\[1\]: .*updateMode.*feature gate InPlace is disabled"
    with pytest.raises(TrafficError, match=told):
        fought(f"{MODE}InPlace")


def test_with_the_gate_replicas_are_resized_and_never_evicted() -> None:
    evicting = fought()
    resizing = fought(f"{MODE}InPlace", "spec.featureGates.InPlace=true")
    assert evicting.summary.evictions
    assert not any(each.resized for each in evicting.sizes)
    assert not resizing.summary.evictions
    assert any(each.resized for each in resizing.sizes)


def test_an_autoscalers_tolerance_counts_unless_its_gate_is_closed() -> None:
    behavior = "spec.autoscalers.0.object.spec.behavior={scaleUp: {tolerance: '20'}}"
    quiet = ["spec.duration=2h", f"{MODE}'Off'", "spec.traffic.constant.rps=6", behavior]
    assert not fought(*quiet).summary.scale_ups
    assert fought(*quiet, "spec.featureGates.HPAConfigurableTolerance=false").summary.scale_ups


def test_an_unknown_gate_is_named() -> None:
    spec = {"featureGates": {"InPlaceOrRecreate": True}}
    document = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "TrafficRun"}
    with pytest.raises(TrafficError, match=r"spec.featureGates.InPlaceOrRecreate: there is no"):
        run_of({**document, "metadata": {"name": "x"}, "spec": spec})
