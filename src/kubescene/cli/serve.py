"""``kubescene serve``: a cluster on a loopback address, for kubectl and every other client."""

import ipaddress
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError

if TYPE_CHECKING:
    from kubescene.apiserver.traffic_pages import TrafficPages
    from kubescene.clock.clocks import PacedClock
    from kubescene.scenario.phases import ResultsStrategy

FASTEST = 100_000


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8001,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool,
        typer.Option(
            help="Listen on an address that others can reach. There is no authentication."
        ),
    ] = False,
    controllers: Annotated[
        bool, typer.Option(help="Run the scheduler, the kubelet and the controllers.")
    ] = True,
    max_body: Annotated[
        int, typer.Option(min=1024, help="Largest request body that is read, in bytes.")
    ] = 3 * 1024 * 1024,
    seed: Annotated[
        int, typer.Option(min=-(2**63), max=2**63 - 1, help="Where names and uids begin.")
    ] = 0,
    clock: Annotated[
        str,
        typer.Option(
            help="How time passes: wall, a rate such as 60x, or virtual (only when told to)."
        ),
    ] = "wall",
    plugin: options.Plugins = None,
    controller: options.Controllers = None,
    waiter: options.Waiters = None,
    scheduler_config: options.SchedulerConfig = None,
    feature_gates: options.FeatureGates = "",
    annotate: options.Annotate = False,
    allow_extenders: Annotated[
        bool,
        typer.Option(help="Let clients configure extenders, which this server then calls."),
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep traffic runs here; otherwise in memory."),
    ] = None,
    autoscaler: Annotated[
        list[str] | None,
        typer.Option(help="An autoscaler of yours for traffic runs, as module:Class."),
    ] = None,
    autoscaler_process: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="An autoscaler in a process, for traffic runs that name its type.",
        ),
    ] = None,
    max_requests: Annotated[
        int, typer.Option(min=1, help="Largest traffic run, in simulated requests.")
    ] = 5_000_000,
    max_runs: Annotated[
        int, typer.Option(min=1, max=64, help="Traffic runs that are simulated at once.")
    ] = 2,
    results_strategy: options.Results = "AtMovingNextStep",
) -> None:
    """Serve a simulated cluster to kubectl and client libraries.

    Example: kubescene serve --port 8001
    """
    check_host(host, allow_remote=allow_remote)
    clock_named(clock)
    results = strategy_named(results_strategy)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # No other command should wait for the HTTP stack.
    from kubescene.apiserver.server import Server
    from kubescene.apiserver.traffic_pages import TrafficPages
    from kubescene.cli.controllers import registered
    from kubescene.cli.scheduler import scheduler_with
    from kubescene.cli.waiters import waiters_named
    from kubescene.clock import WallClock
    from kubescene.cluster import Cluster, ClusterOptions

    pages = TrafficPages(
        data_dir,
        autoscaler or (),
        commands=autoscaler_process or (),
        most_requests=max_requests,
        at_once=max_runs,
    )
    if data_dir is not None or autoscaler or autoscaler_process:
        check_traffic(pages)
    waiters = waiters_named(waiter or ())
    scheduler = scheduler_with(plugin or (), scheduler_config, feature_gates)
    scheduler = replace(scheduler, annotations=annotate)
    options = ClusterOptions(seed=seed, events=True, scheduler=scheduler)
    cluster = Cluster(
        options,
        controllers=registered(options, controller or ()),
        clock=clock_named(clock),
        server_clock=WallClock(),
    )
    try:
        server = Server(
            cluster,
            host=host,
            port=port,
            controllers=controllers,
            max_body=max_body,
            allow_extenders=allow_extenders,
            results=results,
            traffic=pages,
        )
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror}: choose another --port"
        ) from error
    server.stage.waiters = waiters
    typer.echo(f"Serving on {server.url}")
    typer.echo(f"Connect with: kubescene kubeconfig --server {server.url} > kubescene.yaml")
    server.run()


def check_traffic(pages: "TrafficPages") -> None:
    """Refuse a store or an autoscaler that cannot be used before anybody asks for it."""
    from kubescene.autoscalers.loading import load_autoscaler

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
