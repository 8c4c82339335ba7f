"""Controllers that users write: how they are found, watched, and blamed."""

import sys
from pathlib import Path

import pytest

import kubescene
from controllers import authored
from controllers.authored import DEFINITION, Broken, DefinedWidgets, Silent, Widgets
from kubescene.controllers.authoring import (
    controller_from,
    import_controller,
    installed_controllers,
)
from kubescene.errors import ConfigurationError
from kubescene.scenario import ScenarioBuilder, ScenarioPhase
from kubescene.types import JsonObject

HOME = "controllers.authored"
WIDGET: JsonObject = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
}
CONFIG_MAP: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def test_a_class_brings_the_definitions_that_it_needs() -> None:
    scenario = ScenarioBuilder("s").create(WIDGET)
    run = kubescene.run(scenario, reconcilers=[DefinedWidgets])
    assert run.ok, run.message
    assert run.cluster.get("configmaps", "w")["metadata"]["ownerReferences"][0]["name"] == "w"


def test_a_kind_may_be_defined_by_the_scenario_itself() -> None:
    scenario = ScenarioBuilder("s").create(DEFINITION).next_step().create(WIDGET)
    run = kubescene.run(scenario, reconcilers=[Widgets])
    assert run.ok, run.message
    assert run.cluster.get("configmaps", "w")


def test_an_owned_object_that_changes_wakes_its_owner() -> None:
    scenario = ScenarioBuilder("s").create(WIDGET).next_step().delete("v1", "ConfigMap", "w")
    run = kubescene.run(scenario, reconcilers=[DefinedWidgets])
    assert run.ok, run.message
    assert run.cluster.get("configmaps", "w")
    assert run.summary.steps[1].controller_writes == 1


def test_it_may_be_simulated() -> None:
    scenario = ScenarioBuilder("s").simulate("widgets").create(WIDGET)
    run = kubescene.run(scenario, reconcilers=[DefinedWidgets])
    assert run.summary.steps[0].minor_steps == 1


def test_a_world_with_it_can_be_copied() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(WIDGET).done(), reconcilers=[DefinedWidgets])
    fork = run.cluster.fork()
    fork.delete("configmaps", "w")
    fork.settle()
    assert (
        fork.get("configmaps", "w")["metadata"]["uid"]
        != (run.cluster.get("configmaps", "w")["metadata"]["uid"])
    )


def test_what_it_raises_fails_the_scenario_by_name_object_and_line() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(CONFIG_MAP), reconcilers=[Broken])
    assert run.phase is ScenarioPhase.FAILED
    assert "controller 'broken': reconcile of " in run.message
    assert "raised ValueError: no idea" in run.message
    assert f"{Path(authored.__file__).name}, line " in run.message


def test_no_plan_is_an_error_that_says_so() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(CONFIG_MAP), reconcilers=[Silent])
    assert run.message == "controller 'silent': reconcile returned NoneType, not a Plan"


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("Widgets", "must be written as module:Class"),
        ("no.such.module:X", "cannot be imported: No module named 'no'"),
        (f"{HOME}:Nobody", "has no class Nobody"),
        (f"{HOME}:NOT_A_CLASS", "has no class NOT_A_CLASS"),
        (f"{HOME}:Nameless", "needs a name"),
        (f"{HOME}:Kindless", "needs kinds"),
        (f"{HOME}:Textual", "must be a GroupVersionKind"),
        (f"{HOME}:NoReconciler", "has no method reconcile"),
    ],
)
def test_what_is_no_controller_is_refused(reference: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        import_controller(reference)
    assert complaint in str(caught.value)


def test_a_controller_is_imported_by_name() -> None:
    assert import_controller(f"{HOME}:Widgets") is Widgets
    assert controller_from(Widgets).name == "widgets"


def test_installed_packages_bring_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_widgets-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: some-widgets\nVersion: 1\n")
    points = f"[kubescene.controllers]\nwidgets = {HOME}:Widgets\n"
    (package / "entry_points.txt").write_text(points)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert Widgets in installed_controllers()
