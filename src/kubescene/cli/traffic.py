"""``kubescene traffic``: how an autoscaler behaves under traffic."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options

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
    report: Annotated[
        bool, typer.Option("--report", help="With --out: write report.html there, too.")
    ] = False,
) -> None:
    """Simulate a TrafficRun and show what happened.

    Example: kubescene traffic run examples/traffic/step.yaml --set spec.traffic.step.rps=20
    """
    from kubescene.cli.traffic_running import run_traffic

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
        Path,
        typer.Option(
            metavar="FILE", help="CSV with a column time, and cpu, memory or a metric's name."
        ),
    ],
    hpa: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A HorizontalPodAutoscaler (YAML or JSON).")
    ] = None,
    vpa: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Or a VerticalPodAutoscaler.")
    ] = None,
    requests: Annotated[
        str,
        typer.Option(metavar="cpu=500m,...", help="HPA: what one pod requests, for utilization."),
    ] = "",
    replicas: Annotated[
        int | None, typer.Option(min=0, help="HPA: replicas at the start (default: minReplicas).")
    ] = None,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Between two passes (default: 15s; VPA: 1m).")
    ] = "",
    startup: Annotated[
        str, typer.Option(metavar="TIME", help="HPA: how long a new pod takes to be ready.")
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

    from kubescene.cli.back_tests import back_tested

    shown = back_tested(
        usage,
        hpa=hpa,
        vpa=vpa,
        interval=interval,
        for_hpa={"--requests": requests, "--replicas": replicas, "--startup": startup},
    )
    if as_json:
        typer.echo(orjson.dumps(shown.document(), option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo("\n".join(shown.lines(every_pass)))
