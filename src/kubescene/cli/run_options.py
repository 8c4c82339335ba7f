"""What can be said to ``kubescene run`` alone."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

Delete: TypeAlias = Annotated[
    bool,
    typer.Option("--delete", help="With --server: delete the Scenario when this command ends."),
]
File: TypeAlias = Annotated[
    Path, typer.Argument(help="The scenario file (YAML or JSON); - is standard input.")
]
FullStatus: TypeAlias = Annotated[
    bool, typer.Option("--full-status", help="Put the whole timeline into result.yaml, too.")
]
Interactive: TypeAlias = Annotated[
    bool, typer.Option("--interactive", "-i", help="Play it by hand: step by step, also back.")
]
Junit: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write what came of the expectations here, as JUnit XML."),
]
Out: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Write result, timeline, explanations and summary here."),
]
Outside: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COMMAND",
        help="Start a program that takes part as the controller NAME; {kubeconfig} and "
        "{server} in the command are replaced. May be repeated.",
    ),
]
Plain: TypeAlias = Annotated[
    bool,
    typer.Option("--plain", help="Without anything that is only faster; the same result, slower."),
]
PluginErrors: TypeAlias = Annotated[
    Literal["fail", "stop"],
    typer.Option(help="Whether a plugin that raises fails the attempt or stops the run."),
]
Remedies: TypeAlias = Annotated[
    bool, typer.Option("--remedies", help="Show what it would take to place pods that wait.")
]
Report: TypeAlias = Annotated[
    bool, typer.Option("--report", help="With --out: write report.html there, too.")
]
SchedulerConfigs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A KubeSchedulerConfiguration, instead of spec.simulation.schedulerConfig. "
        "Given twice, both are played and compared; then 1 means that they differ.",
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(min=-(2**63), max=2**63 - 1, help="Instead of spec.simulation.seed."),
]
Server: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Let this server play it, such as http://127.0.0.1:8001."),
]
