"""More of ``kubescene traffic``: the history of runs, sweeps and reports."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import matrix_options, options
from kubescene.cli.traffic import traffic

__all__ = ["traffic"]


@traffic.command("runs")
def runs(
    store: options.TrafficStore,
    limit: Annotated[int, typer.Option(min=1, help="Show so many, the newest first.")] = 50,
    before: Annotated[
        int | None, typer.Option(metavar="ID", help="Only those that are older than this one.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the runs that a store keeps.

    Example: kubescene traffic runs --store runs.db
    """
    import msgspec

    from kubescene.cli.traffic_history import opened, table_of

    with opened(store, must_exist=True) as kept:
        found = kept.runs(limit, before)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        typer.echo(table_of(found), nl=False)


@traffic.command("repeat")
def repeat(
    id: Annotated[int, typer.Argument(metavar="ID", help="The run, as `traffic runs` shows it.")],
    store: options.TrafficStore,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
    as_json: options.SummaryAsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Simulate a kept run again and compare: 1 if the result is not the same.

    Autoscalers of yours that the run used have to be named again.

    Example: kubescene traffic repeat 7 --store runs.db
    """
    from kubescene.cli.traffic_history import repeat_run

    code = autoscaler or (), autoscaler_process or ()
    raise typer.Exit(repeat_run(id, store, *code, as_json=as_json, quiet=quiet))


@traffic.command("sweep")
def sweep(
    file: Annotated[Path, typer.Argument(help="A TrafficRun (YAML or JSON).")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=A,B,C",
            help="Try each of these values of a field. May be repeated: all combinations.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes (default: one for each CPU).")
    ] = None,
    format: Annotated[str, typer.Option(help="table, csv or json.")] = "table",
    seeds: matrix_options.Seeds = None,
    seed: matrix_options.Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep finished runs and the tables here, to go on later."),
    ] = None,
    executor: matrix_options.Executor = None,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
    quiet: matrix_options.Quiet = False,
) -> None:
    """Simulate a TrafficRun with every combination of values; one line of measures for each.

    With --seeds, each is simulated so often, and shown as means with their confidence intervals.
    With --out, the same command goes on where it was stopped. Exits with 1 if one of the runs
    failed; the others are simulated all the same.

    Example: kubescene traffic sweep step.yaml --set spec.traffic.step.rps=10,20,40 --seeds 5
    """
    from kubescene.cli.traffic_sweeping import SweepArguments, sweep_traffic

    arguments = SweepArguments(
        file=file,
        settings=settings or (),
        autoscalers=autoscaler or (),
        processes=autoscaler_process or (),
        seeds=seeds,
        seed=seed or (),
        out=out,
        jobs=jobs,
        executor=executor,
        format=format,
        quiet=quiet,
    )
    raise typer.Exit(sweep_traffic(arguments))


@traffic.command("report")
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What --out of a run wrote.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page (default: DIR/report.html).")
    ] = None,
) -> None:
    """Write report.html of a traffic run: one page that fetches nothing.

    Example: kubescene traffic report out/step
    """
    from kubescene.reports.html.traffic import write_traffic_report
    from kubescene.traffic import TrafficResult

    written = write_traffic_report(TrafficResult.load(folder), out or folder / "report.html")
    typer.echo(f"Wrote {written}")
