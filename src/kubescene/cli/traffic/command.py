"""``kubescene traffic``: how an autoscaler behaves under traffic."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options
from kubescene.cli.matrix import command as matrix_command

traffic = typer.Typer(
    name="traffic",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@traffic.callback()
def commands() -> None:
    """Simulate requests, replicas and the autoscalers that change them.

    Example: kubescene traffic run examples/traffic/step.yaml
    """


@traffic.command("run")
def run(
    file: options.TrafficFile,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Set a field, such as spec.replicas.initial=3. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write requests, decisions and summary here."),
    ] = None,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
    as_json: options.SummaryAsJson = False,
    quiet: options.Quiet = False,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the run in this SQLite file, to be repeated."),
    ] = None,
    data_dir: options.KeptIn = None,
    report: Annotated[
        bool, typer.Option("--report", help="With --out: write report.html there, too.")
    ] = False,
) -> None:
    """Simulate a TrafficRun and show what happened.

    Example: kubescene traffic run examples/traffic/step.yaml --set spec.traffic.step.rps=20
    """
    from kubescene.cli.traffic.playing import run_traffic
    from kubescene.runs.catalogue import TRAFFIC_FILE

    if store is None and out is None and data_dir is not None:
        store = data_dir / TRAFFIC_FILE
    raise typer.Exit(
        run_traffic(
            file,
            settings or (),
            autoscaler or (),
            processes=autoscaler_process or (),
            out=out,
            as_json=as_json,
            quiet=quiet,
            store=store,
            report=report,
        )
    )


@traffic.command("back-test")
def back_test(
    usage: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="CSV with a column time, and cpu, memory or a metric's name (and replicas); or "
            "answers of Prometheus to query_range, each as NAME=FILE.json.",
        ),
    ],
    hpa: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A HorizontalPodAutoscaler (YAML or JSON).")
    ] = None,
    vpa: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Or a VerticalPodAutoscaler.")
    ] = None,
    kpa: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Or a ConcurrencyAutoscaler: the rule of Knative."),
    ] = None,
    requests: Annotated[
        str,
        typer.Option(
            metavar="cpu=500m,...",
            help="What one pod requests: for utilization (HPA), or to compare with (VPA).",
        ),
    ] = "",
    replicas: Annotated[
        int | None,
        typer.Option(min=0, help="Replicas at the start (default: as recorded, or the least)."),
    ] = None,
    interval: Annotated[
        str,
        typer.Option(metavar="TIME", help="Between two passes (default: 15s; VPA 1m, KPA 2s)."),
    ] = "",
    startup: Annotated[
        str, typer.Option(metavar="TIME", help="How long a new pod takes to be ready.")
    ] = "",
    every_pass: Annotated[
        bool, typer.Option("--all", help="Show every pass, not only those that change the count.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Play recorded usage to an autoscaler: what it would have done, and why.

    Example: kubescene traffic back-test --hpa hpa.yaml --usage usage.csv --requests cpu=500m
    """
    import orjson

    from kubescene.cli.traffic.back_tests import back_tested

    shown = back_tested(
        usage,
        hpa=hpa,
        vpa=vpa,
        kpa=kpa,
        interval=interval,
        options={"--requests": requests, "--replicas": replicas, "--startup": startup},
    )
    if as_json:
        typer.echo(orjson.dumps(shown.document(), option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo("\n".join(shown.lines(every_pass)))


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

    from kubescene.cli.traffic.history import opened, table_of

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
    from kubescene.cli.traffic.playing import repeat_run

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
    seeds: matrix_command.Seeds = None,
    seed: matrix_command.Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep finished runs and the tables here, to go on later."),
    ] = None,
    executor: matrix_command.Executor = None,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
    quiet: matrix_command.Quiet = False,
) -> None:
    """Simulate a TrafficRun with every combination of values; one line of measures for each.

    With --seeds, each is simulated so often, and shown as means with their confidence intervals.
    With --out, the same command goes on where it was stopped. Exits with 1 if one of the runs
    failed; the others are simulated all the same.

    Example: kubescene traffic sweep step.yaml --set spec.traffic.step.rps=10,20,40 --seeds 5
    """
    from kubescene.cli.traffic.sweeps import SweepArguments, sweep_traffic

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


@traffic.command("compare")
def compare(
    a: Annotated[
        Path,
        typer.Argument(help="The --out directory of a run or sweep, DIR#ID, or a TrafficRun."),
    ],
    b: Annotated[Path, typer.Argument(help="What to compare with it, of the same kind.")],
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Of two files: simulate both with the seeds 1 to N."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what differs between two traffic runs, two sweeps, or two files with many seeds.

    Runs are compared in pairs of one seed, which have the same requests. Exits with 0 if nothing
    differs, with 1 if something does.

    Example: kubescene traffic compare out/before out/after
    """
    from kubescene.cli.traffic.comparing import compare_traffic

    raise typer.Exit(compare_traffic(a, b, seeds=seeds, as_json=as_json))


@traffic.command("report")
def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The --out directory of a run, DIR#ID or an ID."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page (default: RUN/report.html).")
    ] = None,
) -> None:
    """Write report.html of a traffic run: one page that fetches nothing.

    Example: kubescene traffic report out/step
    """
    from kubescene.cli.traffic.history import opened_run
    from kubescene.reports.html.traffic import write_traffic_report

    place = folder if folder.is_dir() else Path()
    written = write_traffic_report(opened_run(folder), out or place / "report.html")
    typer.echo(f"Wrote {written}")
