"""``kubescene size``: the least nodes, or the least money, that hold a scenario."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from kubescene.cli import options
from kubescene.cli.matrix.command import Executor, Jobs


def size(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A scenario, or a snapshot of a cluster."),
    ],
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="NodeGroups, in place of all nodes that FILE has or makes."
        ),
    ] = None,
    objective: Annotated[
        Literal["cost", "nodes"] | None,
        typer.Option(help="What is to be least; cost if all groups have prices, else nodes."),
    ] = None,
    prices: options.Prices = None,
    scheduler_config: options.SchedulerConfig = None,
    seed: Annotated[int | None, typer.Option(help="Play with this seed.")] = None,
    tries: Annotated[int, typer.Option(metavar="N", help="Play at most so many mixes.")] = 60,
    jobs: Jobs = None,
    executor: Executor = None,
    as_json: options.AsJson = False,
    fail_on: Annotated[
        str,
        typer.Option(metavar="MEASURE,...", help="Exit with 3 if one is above zero, or nodes>10."),
    ] = "",
) -> None:
    """Find the least nodes (or money) with which nobody waits in a scenario, and what binds.

    Tells what the cluster autoscaler orders beside it, and what sums of requests need at least.
    Exits with 0, 2 if the input is wrong, and 3 if nothing holds all pods or a measure of --fail-on
    is too high.

    Example: kubescene size scenario.yaml --groups groups.yaml --objective cost
    """
    from rich.console import Console

    from kubescene.cli.files import complain
    from kubescene.cli.what_if.asking import FAILED, FINE, json_of, print_answer
    from kubescene.sizing import size as sized
    from kubescene.sizing.answers import answer_of
    from kubescene.what_if.answers import failures

    found = sized(
        file,
        groups=groups,
        objective=objective,
        prices=prices,
        scheduler=scheduler_config,
        seed=seed,
        tries=tries,
        jobs=jobs,
        executor=executor,
    )
    answer = answer_of(found)
    failed = failures(answer, fail_on)
    if as_json:
        sys.stdout.buffer.write(json_of(answer, failed))
    else:
        print_answer(answer, Console())
    complain(failed, "kubescene: ")
    raise typer.Exit(FAILED if failed or found.best is None else FINE)
