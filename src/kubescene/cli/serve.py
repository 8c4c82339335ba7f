"""``kubescene serve``: a cluster on a loopback address, for kubectl and every other client."""

import ipaddress
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError

if TYPE_CHECKING:
    from kubescene.apiserver.server import Server
    from kubescene.apiserver.traffic.pages import TrafficPages
    from kubescene.clock.clocks import PacedClock
    from kubescene.cluster import ClusterOptions, ClusterWorld
    from kubescene.scenario.phases import ResultsStrategy

FASTEST = 100_000


AllowExtenders: TypeAlias = Annotated[
    bool, typer.Option(help="Let clients configure extenders, which this server then calls.")
]
AllowRemote: TypeAlias = Annotated[
    bool,
    typer.Option(help="Listen on an address that others can reach. There is no authentication."),
]
Autoscalers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="An autoscaler of yours for traffic runs, as module:Class."),
]
AutoscalerProcesses: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND", help="An autoscaler in a process, for traffic runs that name its type."
    ),
]
Clock: TypeAlias = Annotated[
    str,
    typer.Option(help="How time passes: wall, a rate such as 60x, or virtual (only when told to)."),
]
Controllers: TypeAlias = Annotated[
    bool, typer.Option(help="Run the scheduler, the kubelet and the controllers.")
]
DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="KUBESCENE_DATA_DIR",
        help="Keep the runs of scenarios and traffic here; otherwise in memory.",
    ),
]
Host: TypeAlias = Annotated[str, typer.Option(help="Address to listen on.")]
MaxBody: TypeAlias = Annotated[
    int, typer.Option(min=1024, help="Largest request body that is read, in bytes.")
]
MaxRequests: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Largest traffic run, in simulated requests.")
]
MaxRuns: TypeAlias = Annotated[
    int, typer.Option(min=1, max=64, help="Traffic runs that are simulated at once.")
]
Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
]
RequestTimeout: TypeAlias = Annotated[
    float,
    typer.Option(
        min=1, metavar="SECONDS", help="Cut off clients who take longer to send a request."
    ),
]
Seed: TypeAlias = Annotated[
    int, typer.Option(min=-(2**63), max=2**63 - 1, help="Where names and uids begin.")
]


def serve(
    port: Port = 8001,
    host: Host = "127.0.0.1",
    allow_remote: AllowRemote = False,
    controllers: Controllers = True,
    max_body: MaxBody = 3 * 1024 * 1024,
    request_timeout: RequestTimeout = 60,
    seed: Seed = 0,
    clock: Clock = "wall",
    plugin: options.Plugins = None,
    controller: options.Controllers = None,
    waiter: options.Waiters = None,
    scheduler_config: options.SchedulerConfig = None,
    feature_gates: options.FeatureGates = "",
    annotate: options.Annotate = False,
    allow_extenders: AllowExtenders = False,
    data_dir: DataDir = None,
    autoscaler: Autoscalers = None,
    autoscaler_process: AutoscalerProcesses = None,
    max_requests: MaxRequests = 5_000_000,
    max_runs: MaxRuns = 2,
    results_strategy: options.Results = "AtMovingNextStep",
    without: options.Without = None,
) -> None:
    """Serve a simulated cluster to kubectl and client libraries.

    Example: kubescene serve --port 8001
    """
    check_host(host, allow_remote=allow_remote)
    clock_named(clock)
    results = strategy_named(results_strategy)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # No other command should wait for the HTTP stack.
    from kubescene.apiserver.traffic.pages import TrafficPages
    from kubescene.cli.components import names_in, scheduler_with, waiters_named
    from kubescene.cluster import ClusterOptions

    pages = TrafficPages(
        data_dir,
        autoscaler or (),
        commands=autoscaler_process or (),
        most_requests=max_requests,
        at_once=max_runs,
    )
    check_traffic(pages)
    waiters = waiters_named(waiter or ())
    scheduler = scheduler_with(plugin or (), scheduler_config, feature_gates)
    scheduler = replace(scheduler, annotations=annotate)
    cluster = cluster_with(
        ClusterOptions(
            seed=seed, events=True, scheduler=scheduler, without=names_in(without or ())
        ),
        controller or (),
        clock,
    )
    server = listening(
        cluster,
        host,
        port,
        controllers=controllers,
        max_body=max_body,
        request_timeout_s=request_timeout,
        allow_extenders=allow_extenders,
        results=results,
        traffic=pages,
        warm=True,
    )
    server.stage.waiters = waiters
    typer.echo(f"Serving on {server.url}")
    typer.echo(f"Pages for people: {server.url}/ui")
    typer.echo(f"Connect with: kubescene kubeconfig --server {server.url} > kubescene.yaml")
    typer.echo(kept(data_dir))
    for line in left_out(cluster):
        typer.echo(line)
    server.run()


def left_out(cluster: "ClusterWorld") -> "Iterator[str]":
    """Who is not there, and what nobody does until somebody takes the place."""
    missing = cluster.registrations.left_out
    if missing:
        from kubescene.scenario.validation.unsimulated import KINDS, undone

        yield "Until somebody takes their place:"
        yield from (f"  {each}" for each in undone(missing))
        for (_, kind), controller in KINDS.items():
            if controller in missing:
                yield f"  {controller} was left out: nobody acts on a {kind}"


def kept(data_dir: Path | None) -> str:
    """What is left when the server has ended."""
    runs = "" if data_dir is None else f"; runs are kept in {data_dir}"
    return f"The world and its Scenarios are in memory, and gone when it ends{runs}"


def cluster_with(asked: "ClusterOptions", controllers: Sequence[str], clock: str) -> "ClusterWorld":
    """The world that is served; what a server itself notes is on the machine's clock."""
    from kubescene.cli.components import registered
    from kubescene.clock import WallClock
    from kubescene.cluster import ClusterWorld

    return ClusterWorld(
        asked,
        controllers=registered(asked, controllers),
        clock=clock_named(clock),
        server_clock=WallClock(),
    )


def listening(cluster: "ClusterWorld", host: str, port: int, **more: Any) -> "Server":
    """A server at an address; raises `ConfigurationError` if that cannot be had."""
    from kubescene.apiserver.server import Server

    try:
        return Server(cluster, host=host, port=port, **more)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror}: choose another --port"
        ) from error


def check_traffic(pages: "TrafficPages") -> None:
    """Refuse a store or an autoscaler that cannot be used before anybody asks for it."""
    if pages.store_file is None and not pages.autoscalers and not pages.commands:
        return
    from kubescene.autoscalers.references import load_autoscaler

    if pages.autoscalers and "" not in sys.path:
        sys.path.insert(0, "")  # as with python -m: it may lie in the current directory
    for each in pages.autoscalers:
        load_autoscaler(each)
    pages.runs()


def clock_named(text: str) -> "PacedClock":
    """The clock that ``--clock`` asks for; it begins now, so that ages look right."""
    from kubescene.clock import ScaledClock, VirtualClock, WallClock

    now = WallClock().now()
    if text == "wall":
        return WallClock()
    if text == "virtual":
        return VirtualClock(now)
    rate = text.removesuffix("x")
    if text.endswith("x") and rate.isdecimal() and 1 <= int(rate) <= FASTEST:
        return ScaledClock(int(rate), now)
    raise ConfigurationError(
        f"--clock is {text!r}: it may be wall, virtual, or a rate from 1x to {FASTEST}x"
    )


def strategy_named(text: str) -> "ResultsStrategy":
    """The strategy of ``--results-strategy``, or of the KEP's environment variable."""
    from kubescene.scenario.phases import RESULTS_STRATEGY_VARIABLE, ResultsStrategy

    return ResultsStrategy.of_environment({RESULTS_STRATEGY_VARIABLE: text})


def check_host(host: str, *, allow_remote: bool) -> None:
    """Refuse an address that others can reach unless that is wanted."""
    if allow_remote or host == "localhost":
        return
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ConfigurationError(
            f"{host} is not a loopback address, and the server lets everybody do everything: "
            "use 127.0.0.1, or say --allow-remote"
        )
