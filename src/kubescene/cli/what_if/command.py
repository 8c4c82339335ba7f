"""What can be said to ``kubescene what-if``."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options


def what_if(
    snapshot: Annotated[
        Path, typer.Argument(help="What `kubescene snapshot` wrote, or anything that it reads.")
    ],
    question: Annotated[
        list[str],
        typer.Argument(
            help="lose NODES, drain NODES, shrink [NODES], upgrade [NODES], balance [NODES], "
            "autoscale, rightsize, repack [NODES], schedule, explain pod NAME, fit, apply. NODES "
            "are zone=Z, pool=P, node=N or any label KEY=VALUE."
        ),
    ],
    as_json: options.AsJson = False,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="MEASURE,...", help="Exit with 3 if one is above zero, or as in pending>2."
        ),
    ] = "",
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer as a page that fetches nothing, too."),
    ] = None,
    removed: Annotated[
        bool, typer.Option("--removed", help="lose: the nodes are deleted, not only silent.")
    ] = False,
    within: Annotated[
        str,
        typer.Option("--for", metavar="DURATION", help="lose, apply, autoscale: how long."),
    ] = "",
    keep: Annotated[
        str, typer.Option(metavar="SHARE", help="shrink: what stays free, such as 10%.")
    ] = "0%",
    tries: Annotated[
        int, typer.Option(min=1, help="shrink, rightsize: end after so many nodes that cannot go.")
    ] = 3,
    force: Annotated[
        bool, typer.Option("--force", help="drain, shrink: as kubectl drain has it.")
    ] = False,
    delete_emptydir_data: Annotated[
        bool, typer.Option("--delete-emptydir-data", help="drain, shrink: as kubectl drain has it.")
    ] = False,
    timeout: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="drain, shrink (10m), upgrade (1h): how long the drain of a node may take.",
        ),
    ] = "",
    surge: Annotated[
        int, typer.Option(min=0, help="upgrade: so many new nodes come before old ones go.")
    ] = 1,
    unavailable: Annotated[
        int, typer.Option(min=0, help="upgrade: so many old nodes go before new ones come.")
    ] = 0,
    boot: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="upgrade (3m), autoscale (2m): from its order to a node's readiness.",
        ),
    ] = "",
    groups: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="autoscale: NodeGroups, named as pools of the snapshot."),
    ] = None,
    autoscaler_flags: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="autoscale: flags of the cluster autoscaler, as YAML."),
    ] = None,
    limits: Annotated[
        str, typer.Option(metavar="MIN:MAX", help="autoscale: of every group, without --groups.")
    ] = "",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="balance: a policy of the descheduler (LowNodeUtilization). May be repeated.",
        ),
    ] = None,
    thresholds: Annotated[
        str,
        typer.Option(metavar="LOW,HIGH", help="balance: when nodes are under- and overused."),
    ] = "20,50",
    moves: Annotated[int, typer.Option(min=1, help="balance: evict no more than so many.")] = 50,
    usage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="rightsize: a file or folder of Prometheus' answers, OpenCost's CSV, or a URL of "
            "Prometheus. May be repeated.",
        ),
    ] = None,
    window: Annotated[
        str, typer.Option(metavar="DURATION", help="rightsize: so long of a URL's usage.")
    ] = "168h",
    quantile: Annotated[
        float, typer.Option(help="rightsize: the share of samples that requests shall cover.")
    ] = 0.9,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", help="fit, apply: a file of objects. May be repeated."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="fit: try no more than so many.")] = 100_000,
    unplace: Annotated[
        str, typer.Option(metavar="SELECTOR", help="schedule: the pods that are placed anew.")
    ] = "all",
    shape: Annotated[
        str,
        typer.Option(
            metavar="[TYPE:]SIZE", help="repack: a new node, such as 16cpu,64Gi or m6i:16cpu,64Gi."
        ),
    ] = "",
    scheduler_config: options.SchedulerConfig = None,
    start_delay: Annotated[
        str, typer.Option(metavar="DURATION", help="From a pod's place to its being ready.")
    ] = "0s",
    prices: options.Prices = None,
    autoscaler: options.Autoscalers = None,
    seed: Annotated[int, typer.Option(help="Where names and chance begin.")] = 0,
    format: Annotated[
        str, typer.Option(metavar="NAME", help="The form of the snapshot, if it is in doubt.")
    ] = "",
) -> None:
    """Ask what would happen in a cluster, without touching it.

    Exits with 0, 2 if the input is wrong, and 3 if a measure of --fail-on is too high.

    Example: kubescene what-if shop.snapshot.json.gz lose zone=eu-1a --removed --for 30m
    """
    from kubescene.cli.what_if.asking import WhatIfCommand, ask

    asked = WhatIfCommand(
        snapshot=snapshot,
        question=tuple(question),
        as_json=as_json,
        fail_on=fail_on,
        report=report,
        removed=removed,
        within=within,
        keep=keep,
        tries=tries,
        force=force,
        delete_emptydir_data=delete_emptydir_data,
        timeout=timeout,
        surge=surge,
        unavailable=unavailable,
        boot=boot,
        groups=groups,
        autoscaler_flags=autoscaler_flags,
        limits=limits,
        policies=tuple(policy or ()),
        thresholds=thresholds,
        moves=moves,
        usage=tuple(usage or ()),
        window=window,
        quantile=quantile,
        files=tuple(file or ()),
        most=most,
        unplace=unplace,
        shape=shape,
        scheduler_config=scheduler_config,
        start_delay=start_delay,
        prices=prices,
        autoscalers=tuple(autoscaler or ()),
        seed=seed,
        format=format,
    )
    raise typer.Exit(ask(asked))
