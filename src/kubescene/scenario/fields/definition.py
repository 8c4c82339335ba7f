"""The CustomResourceDefinition of Scenarios, for our API server and for any other."""

from kubescene.api.kinds import SCENARIO
from kubescene.api.scheme import GroupResource
from kubescene.scenario.fields.structural_schema import scenario_schema
from kubescene.types import JsonObject

SCENARIOS = GroupResource(SCENARIO.group, "scenarios")
DEFINITION = str(SCENARIOS)


def scenario_definition() -> JsonObject:
    """A definition that ``kubectl apply`` takes, here and at a real kube-apiserver."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": SCENARIO.group,
            "names": {
                "kind": SCENARIO.kind,
                "listKind": f"{SCENARIO.kind}List",
                "plural": SCENARIOS.resource,
                "singular": "scenario",
                "shortNames": ["scn"],
            },
            "scope": "Cluster",
            "versions": [
                {
                    "name": SCENARIO.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": scenario_schema()},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": printer_columns(),
                }
            ],
        },
    }


def printer_columns() -> list[JsonObject]:
    """What ``kubectl get scenarios`` shows beside the name."""
    return [
        column("Phase", "string", ".status.phase", "Where the scenario is in its life."),
        column("Step", "string", ".status.stepStatus.current", "The step, major and minor."),
        column("StepPhase", "string", ".status.stepStatus.phase", "Where the step stands."),
        column(
            "Controller",
            "string",
            ".status.stepStatus.runningSimulationController",
            "The simulation controller whose turn it is.",
        ),
        column("Age", "date", ".metadata.creationTimestamp", "Since when it exists."),
    ]


def column(name: str, kind: str, path: str, description: str) -> JsonObject:
    return {"name": name, "type": kind, "jsonPath": path, "description": description}
