"""``kubescene bench``: how fast this machine schedules."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options

bench = typer.Typer(
    name="bench",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@bench.callback()
def benchmarks() -> None:
    """Measure how fast pods are scheduled on this machine.

    Example: kubescene bench scheduler-perf bench/scheduler-perf/misc.yaml --filter 500Nodes
    """


@bench.command("scheduler-perf")
def scheduler_perf(
    file: Annotated[Path, typer.Argument(help="A workload file of kube-scheduler's benchmark.")],
    filter_by: Annotated[
        str,
        typer.Option("--filter", metavar="NAME", help="Only workloads whose name contains this."),
    ] = "",
    as_json: options.AsJson = False,
) -> None:
    """Replay the workloads of kube-scheduler's own benchmark, scheduler_perf.

    Example: kubescene bench scheduler-perf bench/scheduler-perf/misc.yaml --filter 500Nodes
    """
    import orjson

    from kubescene.benchmarks.reports import document, table
    from kubescene.cli.bench.replays import chosen, replayed

    results = replayed(chosen(file, filter_by))
    if as_json:
        typer.echo(orjson.dumps(document(results), option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo("\n".join(table(results)))
