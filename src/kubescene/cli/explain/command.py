"""What can be said to ``kubescene explain``."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError

Attempt: TypeAlias = Annotated[
    int | None, typer.Option(help="Show one attempt: 1 is the first, -1 the last.")
]
Controllers: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="With --remedy: a controller that the run was given.")
]
FeatureGates: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME=true,...", help="With --remedy: those of the run.")
]
Folder: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="With --remedy: where objectFrom reads.")
]
Node: TypeAlias = Annotated[str, typer.Option(help="Show what was said about this node only.")]
Plugins: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="With --remedy: a plugin that the run was given.")
]
Remedy: TypeAlias = Annotated[
    bool,
    typer.Option("--remedy", help="Show what it would take to place it; plays --run again."),
]
Run: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The --out directory of a run, or DIR#ID.")
]
SchedulerConfig: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --remedy: that of the run.")
]
Words: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="pod NAME, where NAME is NAMESPACE/NAME or a name in default; or node NAME."
    ),
]


def explain(
    pod: Words,
    run: Run = None,
    server: options.Server = None,
    scenario: options.ScenarioName = "",
    node: Node = "",
    attempt: Attempt = None,
    remedy: Remedy = False,
    plugin: Plugins = None,
    controller: Controllers = None,
    scheduler_config: SchedulerConfig = None,
    feature_gates: FeatureGates = "",
    folder: Folder = None,
) -> None:
    """Show why a pod was placed where it was, or why not; or what became of a node, and why.

    Example: kubescene explain pod default/database --run out/first-scenario, or
    kubescene explain node steady-a-2 --run out/nodes-follow
    """
    from kubescene.cli.explain.answers import ExplainQuestion, answer, named
    from kubescene.cli.replaying import PlayedWith

    if (run is None) == (server is None):
        raise ConfigurationError("explain needs either --run DIR or --server URL")
    given = PlayedWith(
        plugins=plugin or (),
        controllers=controller or (),
        scheduler_config=scheduler_config,
        feature_gates=feature_gates,
        folder=folder,
    )
    kind, name = named(pod)
    question = ExplainQuestion(
        pod=name if kind == "pod" else "",
        story=name if kind == "node" else "",
        node=node,
        attempt=attempt,
        remedy=remedy,
    )
    from kubescene.cli.origins import directory_named

    folder = None if run is None else directory_named(str(run))
    raise typer.Exit(answer(question, folder, server or "", scenario, given))
