"""The structural schema of a Scenario: the one place that says what its fields are.

``kubectl explain``, the CustomResourceDefinition, editors and the reference are made of it. It is
lenient on purpose: fields it does not know are kept, so that the engine can name them (a typo that
the API server drops in silence would be a wrong answer), and an operation with none or two of its
bodies is admitted, as KEP-140 wants: such a scenario becomes ``Failed`` with a message.
"""

from typing import Any

from kubescene.scenario.phases import ScenarioPhase, StepPhase
from kubescene.scenario.spec import MAX_COUNT, MAX_STEP
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject

KEEP = "x-kubernetes-preserve-unknown-fields"


def text(description: str, **more: Any) -> JsonObject:
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> JsonObject:
    return {"type": "integer", "description": description, **more}


def listed(description: str, items: JsonObject, **more: Any) -> JsonObject:
    return {"type": "array", "description": description, "items": items, **more}


def fields(description: str, properties: JsonObject | None = None, **more: Any) -> JsonObject:
    """An object that keeps what it does not know."""
    return {
        "type": "object",
        "description": description,
        KEEP: True,
        **({"properties": properties} if properties else {}),
        **more,
    }


def scenario_schema() -> JsonObject:
    """``openAPIV3Schema`` of the kind Scenario."""
    return {
        "type": "object",
        "description": (
            "A Scenario describes what happens in a simulated cluster, step by step (KEP-140). "
            "The engine plays it through the scheduler and the controllers on a virtual clock; "
            "status tells where it stands and what has happened."
        ),
        "properties": {
            "apiVersion": text("APIVersion defines the versioned schema of this object."),
            "kind": text("Kind is the REST resource that this object represents."),
            "metadata": {"type": "object"},
            "spec": spec_schema(),
            "status": status_schema(),
        },
        "required": ["spec"],
    }


# -- spec ------------------------------------------------------------------------------------


def spec_schema() -> JsonObject:
    return fields(
        "What happens, and who plays. Operations may be added while the scenario runs or is "
        "paused; those that have started, controllers and simulation cannot be changed any more.",
        {
            "operations": listed(
                "All operations. Those of one step are carried out in list order. To add one: "
                "kubectl patch scenario NAME --type=json "
                '-p \'[{"op":"add","path":"/spec/operations/-","value":{...}}]\'.',
                operation_schema(),
                **{"x-kubernetes-list-type": "atomic"},
            ),
            "events": listed(
                "The operations in the form of the KEP's first drafts; not together with "
                "operations.",
                operation_schema(),
                **{"x-kubernetes-list-type": "atomic"},
            ),
            "controllers": controllers_schema(),
            "simulation": simulation_schema(),
            "expectations": listed(
                "What should be true at the end.",
                fields("An expectation in CEL over the result."),
                **{"x-kubernetes-list-type": "atomic"},
            ),
        },
    )


def operation_schema() -> JsonObject:
    return fields(
        "One operation: an id, a step, and exactly one of the operation bodies.",
        {
            "id": text("The name of the operation in the timeline; assigned if it is missing."),
            "step": whole(
                "The major step at which the operation is carried out. Steps without operations "
                "are skipped.",
                minimum=1,
                maximum=MAX_STEP,
            ),
            "operation": text(
                "The type of the operation in the drafts' form: Create, Patch, Delete or Done."
            ),
            "createOperation": create_schema(),
            "patchOperation": patch_schema(),
            "deleteOperation": fields(
                "Deletes an object.",
                {**target_fields(), "deleteOptions": fields("metav1.DeleteOptions.")},
            ),
            "doneOperation": fields(
                "When the step that holds it is complete, the scenario is Succeeded.",
                {"done": {"type": "boolean", "description": "The drafts' form; always true."}},
            ),
            "advanceOperation": fields(
                "Lets virtual time pass after the step has come to rest; the last operation of its "
                "step.",
                {"duration": text("How long, as a Go duration such as 5m or 1h30m.")},
            ),
        },
        required=["step"],
    )


def create_schema() -> JsonObject:
    return fields(
        "Creates an object, or count of them.",
        {
            "object": fields("The object to be created, with apiVersion and kind."),
            "count": whole(
                "How many to create; $(INDEX) in the object stands for the number of each, from 0.",
                minimum=1,
                maximum=MAX_COUNT,
            ),
            "subresource": text("Create this subresource of the object: binding or eviction."),
            "createOptions": fields("metav1.CreateOptions."),
        },
    )


def patch_schema() -> JsonObject:
    return fields(
        "Patches an object.",
        {
            **target_fields(),
            "patch": text("The patch, as JSON or YAML text."),
            "patchType": text(
                "JSON, merge, strategic merge or apply, as a media type or its short name. "
                "Default: strategic merge for built-in kinds, merge for custom ones."
            ),
            "PatchType": text("The same, as the KEP's Go type spells it."),
            "subresource": text("Patch this subresource of the object: status or scale."),
            "patchOptions": fields("metav1.PatchOptions."),
        },
    )


def target_fields() -> JsonObject:
    return {
        "typeMeta": fields(
            "The kind of the object.",
            {"apiVersion": text("Such as apps/v1."), "kind": text("Such as Deployment.")},
        ),
        "objectMeta": fields(
            "Which object.",
            {"name": text("Its name."), "namespace": text("Its namespace; default if missing.")},
        ),
    }


def controllers_schema() -> JsonObject:
    names = {
        "enabled": listed("Controllers that take part.", controller_schema()),
        "disabled": listed(
            'Controllers that do not take part; [{name: "*"}] means all.', controller_schema()
        ),
    }
    return fields(
        "Who takes part. Without it, kube-scheduler is the one simulation controller.",
        {
            "simulationControllers": fields(
                "The controllers under test. They run one by one, in the order of enabled, each "
                "until it has nothing to do.",
                names,
            ),
            "presimulationControllers": fields(
                "The controllers that are needed for the simulation. They run to rest before any "
                "simulation controller does. By default all others that are registered.",
                names,
            ),
            "preSimulationControllers": fields("Another spelling of presimulationControllers."),
        },
    )


def controller_schema() -> JsonObject:
    return fields("A controller.", {"name": text("Its name, such as kube-scheduler.")})


def simulation_schema() -> JsonObject:
    return fields(
        "How the scenario is played (an extension to the KEP).",
        {
            "seed": whole("Where chance, uids and generated names begin."),
            "startTime": text("The virtual time at which the scenario starts (RFC 3339)."),
            "explain": text(
                "How much is kept of each scheduling attempt. Auto is Full up to 200 nodes, else "
                "Failures.",
                enum=[str(level) for level in Explain],
            ),
            "kubelet": fields(
                "How long pods take; elapses only under advanceOperation.",
                {
                    "startDelay": text("From bound to running, as a Go duration."),
                    "readyDelay": text("From running to ready."),
                    "terminateDelay": text("From deleted to gone."),
                },
            ),
            "schedulerConfig": fields("A KubeSchedulerConfiguration (v1)."),
            "maxMinorSteps": whole("Ends a scenario that never comes to rest.", minimum=1),
            "maxSettleRounds": whole(
                "Ends controllers that never come to rest; ten rounds for each object of the world "
                "come on top.",
                minimum=1,
            ),
        },
    )


# -- status ----------------------------------------------------------------------------------


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
            "expectations": listed("The outcomes of spec.expectations.", fields("An outcome.")),
            "scenarioResult": result_schema(),
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
        },
    )
