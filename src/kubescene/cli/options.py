"""Options that several commands have, each said once."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Annotate: TypeAlias = Annotated[
    bool, typer.Option("--annotate", help="Annotate pods with the results of every attempt.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Autoscalers: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="An autoscaler of yours, as module:Class. May be repeated.")
]
AutoscalerProcesses: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="COMMAND", help="An autoscaler in a process of its own. May be repeated."),
]
Controllers: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="A controller of yours, as module:Class. May be repeated.")
]
DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="KUBESCENE_DATA_DIR",
        help="The directory that keeps runs by their ids.",
    ),
]
FeatureGates: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAME=true,...", help="Feature gates of the scheduler, such as GangScheduling."
    ),
]
KeptIn: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        envvar="KUBESCENE_DATA_DIR",
        help="Without --out: keep the run here by an id, for kubescene runs.",
    ),
]
OwnMeasures: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        metavar="MODULE:FUNCTION",
        help="A measure of yours that expectations may name. May be repeated.",
    ),
]
Plugins: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="A scheduler plugin of yours, as module:Class. May be repeated."),
]
Prices: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What nodes cost in an hour; without it no cost."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Results: TypeAlias = Annotated[
    str,
    typer.Option(
        help="When status.scenarioResult of a Scenario is brought up to date: "
        "AtMovingNextStep, OnPause or OnDone.",
        envvar="UPDATE_SCENARIO_RESULTS_STRATEGY",
    ),
]
RunArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]", help="The --out directory of a run, DIR#ID or an ID of a data directory."
    ),
]
ScenarioName: TypeAlias = Annotated[
    str, typer.Option(help="With --server: which scenario, if there are several.")
]
SchedulerConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration for the scheduler."),
]
Server: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="A server that has played a scenario.")
]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="What is not simulated is a fault, not a warning.")
]
SummaryAsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON.")
]
TrafficFile: TypeAlias = Annotated[
    Path, typer.Argument(help="A TrafficRun (YAML or JSON); - is standard input.")
]
TrafficStore: TypeAlias = Annotated[
    Path, typer.Option(metavar="FILE", help="The SQLite file of kept runs.")
]
Waiters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="A ControllerWaiter of yours, as module:Class. May be repeated."),
]
Without: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,...",
        help="Leave built-in controllers out, so that programs of yours can take their place. "
        "May be repeated.",
    ),
]
