"""The CustomResourceDefinition of Scenarios, for our API server and for any other.

The schema of the spec comes from the table of fields (`fields`, `json_schema`); that of the status,
which nobody writes but the engine, is here. ``kubectl explain`` shows both.
"""

from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.api.scheme import GroupResource
from kubescene.scenario.fields.json_schema import KEEP_UNKNOWN, spec_schema
from kubescene.scenario.fields.table import SCENARIO_FIELDS
from kubescene.scenario.phases import DRAFT_STEP_PHASE, ScenarioPhase, StepPhase
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


def scenario_schema() -> JsonObject:
    """``openAPIV3Schema`` of the kind Scenario."""
    return {
        "type": "object",
        "description": SCENARIO_FIELDS.about,
        "properties": {
            "apiVersion": text("APIVersion defines the versioned schema of this object."),
            "kind": text("Kind is the REST resource that this object represents."),
            "metadata": {"type": "object"},
            "spec": spec_schema(),
            "status": status_schema(),
        },
    }


def text(description: str, **more: Any) -> JsonObject:
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> JsonObject:
    return {"type": "integer", "description": description, **more}


def listed(description: str, items: JsonObject) -> JsonObject:
    return {"type": "array", "description": description, "items": items}


def fields(description: str, properties: JsonObject | None = None) -> JsonObject:
    """An object that keeps what it does not know: later versions may say more."""
    members = {"properties": properties} if properties else {}
    return {"type": "object", "description": description, KEEP_UNKNOWN: True, **members}


def status_schema() -> JsonObject:
    return fields(
        "Where the scenario stands and what has happened; written by the engine alone.",
        {
            "phase": text(
                "Pending: another scenario is under way. Running. Paused: all operations are "
                "finished and none was done; add some and it goes on. Succeeded: the step with the "
                "done operation is complete. Failed: message says why.",
                enum=[str(phase) for phase in ScenarioPhase],
            ),
            "message": text("Why the scenario is in this phase."),
            "schedulerStatus": text("Whether simulation controllers run, as in the first draft."),
            "stepStatus": step_status_schema(),
            "step": whole("The major step, as in the first draft; of scenarios with events."),
            "stepPhase": text(
                "Where the step stands in the words of the second draft; of scenarios with events.",
                enum=list(dict.fromkeys(DRAFT_STEP_PHASE.values())),
            ),
            "ignoredOperations": listed(
                "Operations that will never be played.",
                fields(
                    "An operation that came too late, or after a done operation.",
                    {
                        "id": text("Its id."),
                        "step": whole("Its step."),
                        "reason": text("Why it is ignored."),
                    },
                ),
            ),
            "expectations": listed(
                "What came of spec.expectations, at a pause and at the end; none if it failed.",
                outcome_schema(),
            ),
            "outside": listed(
                "How controllers outside were judged to have nothing left to do.",
                outside_schema(),
            ),
            "scenarioResult": result_schema(),
        },
    )


def outside_schema() -> JsonObject:
    return fields(
        "One controller of spec.controllers.outside.",
        {
            "name": text("Its name."),
            "kind": text("Its kind."),
            "judgedBy": listed(
                "Signs: parked (it says so itself), park-pod, still (the kernel's accounts), "
                "quiet (silence), linger (a longer silence), waiter NAME (it had to agree).",
                {"type": "string"},
            ),
            "sameBytes": {
                "type": "boolean",
                "description": "Whether another run will give the same.",
            },
            "message": text("Why another run may differ."),
        },
    )


def outcome_schema() -> JsonObject:
    return fields(
        "The outcome of one expectation.",
        {
            "name": text("The expectation's name."),
            "expression": text("What it says."),
            "holds": {"type": "boolean", "description": "Whether its expression is true."},
            "message": text("What its author wants to be told where it does not hold."),
            "error": text("Why its expression has no value; it does not hold then."),
        },
    )


def step_status_schema() -> JsonObject:
    return fields(
        "Where the present step stands.",
        {
            "step": step_schema("The present step."),
            "current": text("The present step as major.minor, for tables."),
            "phase": text(
                "Operating: operations, then pre-simulation controllers until all are at rest. "
                "OperatingCompleted: a simulation controller is about to run. ControllerRunning: "
                "it runs. ControllerPaused: it has written, the others react. ControllerCompleted: "
                "it has nothing more to do. Finished: the step is complete.",
                enum=[str(phase) for phase in StepPhase],
            ),
            "runningSimulationController": text("The simulation controller whose turn it is."),
        },
    )


def step_schema(description: str) -> JsonObject:
    return fields(
        description,
        {
            "major": whole("Moved by operations.", format="int32"),
            "minor": whole("Moved by writes of simulation controllers.", format="int32"),
        },
    )


def result_schema() -> JsonObject:
    return fields(
        "What has happened, published as UPDATE_SCENARIO_RESULTS_STRATEGY says.",
        {
            "simulatorVersion": text("The version of Kubescene that played the scenario."),
            "timeline": {
                "type": "object",
                "description": "Events in order, by major step.",
                "additionalProperties": {"type": "array", "items": event_schema()},
            },
            "storedAt": text(
                "The run directory that holds the timeline, where it is larger than the API server "
                "can store; there is no timeline here then."
            ),
            "message": text("Why the timeline is not here."),
        },
    )


def event_schema() -> JsonObject:
    written = "What was asked for (operation) and what came of it (result)."
    pod = "The pod and its scheduling attempts."
    return fields(
        "Something that happened, with exactly one body.",
        {
            "id": text("The id of the operation; otherwise one that begins with @."),
            "step": step_schema("When, in steps."),
            "time": text("When, in virtual time."),
            "actor": text("Who did it."),
            "operation": text("The type of the event, such as Create or PodScheduled."),
            "create": fields(written),
            "patch": fields(written),
            "delete": fields("What was asked for (operation)."),
            "done": fields("The done operation."),
            "advance": fields("The advance operation."),
            "podScheduled": fields(pod),
            "podUnscheduled": fields(pod),
            "podPreempted": fields(pod),
            "outcome": fields(
                "What came of an operation beyond what it wrote: it waits, is refused, complete."
            ),
        },
    )
