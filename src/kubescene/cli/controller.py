"""``kubescene controller``: plays the Scenarios of a real API server."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kubescene.cli import options
from kubescene.cli.serve import strategy_named
from kubescene.errors import ApiError, ConfigurationError

if TYPE_CHECKING:
    from kubescene.client.http import Endpoint
    from kubescene.outside.remote.playing import Player
    from kubescene.outside.remote.webhook.certificates import Certificate

RUN_FAILED = 1
UNCHECKED = (
    "No --webhook-port: what others write while a scenario is under way is not refused, and makes "
    "it fail."
)


def controller(
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the API server is; without it, as kubectl finds."),
    ] = None,
    context: Annotated[str, typer.Option(help="A context of the kubeconfig.")] = "",
    insecure_skip_tls_verify: Annotated[
        bool,
        typer.Option(
            "--insecure-skip-tls-verify", help="Accept a kubeconfig that checks no certificate."
        ),
    ] = False,
    webhook_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Serve the admission webhook here that turns others away; 0 takes a free port.",
        ),
    ] = None,
    webhook_host: Annotated[
        str, typer.Option(help="Address to serve it at, as the API server reaches it.")
    ] = "127.0.0.1",
    webhook_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its certificate; without it, openssl makes one."),
    ] = None,
    webhook_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key of that certificate.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the run directory of each scenario goes."),
    ] = None,
    plugin: options.Plugins = None,
    user_controller: Annotated[
        list[str] | None,
        typer.Option(
            "--controller", help="A controller of yours, as module:Class. May be repeated."
        ),
    ] = None,
    scheduler_config: options.SchedulerConfig = None,
    feature_gates: Annotated[
        str,
        typer.Option(metavar="NAME=true,...", help="Feature gates of the scheduler."),
    ] = "",
    allow_extenders: Annotated[
        bool, typer.Option(help="Let Scenarios bring extenders, which are then called.")
    ] = False,
    results_strategy: options.Results = "AtMovingNextStep",
) -> None:
    """Play the Scenarios of a real API server, whose cluster must be disposable.

    Example: kubescene controller --kubeconfig cluster.yaml --webhook-port 9443
    """
    results = strategy_named(results_strategy)
    check_pair(webhook_cert, webhook_key)
    # No other command should wait for what this one needs.
    from kubescene.cli.controllers import registered
    from kubescene.cli.scheduler import scheduler_with
    from kubescene.client.http import read_kubeconfig
    from kubescene.cluster import ClusterOptions
    from kubescene.outside.remote.cluster import RemoteCluster
    from kubescene.outside.remote.leadership import Leadership
    from kubescene.outside.remote.playing import Player

    endpoint = read_kubeconfig(
        kubeconfig, context=context, allow_unverified=insecure_skip_tls_verify
    )
    scheduler = scheduler_with(plugin or (), scheduler_config, feature_gates)
    options = ClusterOptions(scheduler=scheduler)
    controllers = registered(options, user_controller or ())
    certificate = None
    if webhook_port is not None:
        certificate = certificate_of(webhook_cert, webhook_key, webhook_host)
    leadership = Leadership(endpoint)
    try:
        # Before anything else: to come to a server is to unlock it and to fail what was under way.
        leadership.acquire(partial(typer.echo, err=True))
        cluster = RemoteCluster(endpoint, options, controllers=controllers)
        try:
            player = Player(
                cluster,
                out or default_out(),
                results,
                allow_extenders=allow_extenders,
                tell=typer.echo,
            )
            if certificate is None or webhook_port is None:
                typer.echo(UNCHECKED, err=True)
            else:
                url = player.admit_by(certificate, webhook_host, webhook_port)
                typer.echo(f"Admission webhook at {url}")
            leadership.when_lost(player.stop)
            typer.echo(f"Playing the Scenarios of {endpoint.url}")
            play(player)
        finally:
            cluster.close()
    except ApiError as error:
        typer.echo(f"kubescene: {told(error, endpoint)}", err=True)
        raise typer.Exit(RUN_FAILED) from None
    finally:
        leadership.release()
    if leadership.lost:
        typer.echo(f"kubescene: {leadership.lost}", err=True)
        raise typer.Exit(RUN_FAILED)


def play(player: "Player") -> None:
    """Until somebody presses Ctrl-C or the process is to end."""
    handled = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: player.stop()) for number in handled]
    try:
        player.run()
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)


def told(error: ApiError, endpoint: "Endpoint") -> str:
    """What the server did not do, and what to look at."""
    if error.code in (401, 403):
        return (
            f"{endpoint.url} refuses the credentials of the kubeconfig: {error.message}; they must "
            "be valid and allow everything (cluster-admin)"
        )
    return error.message


def certificate_of(certificate: Path | None, key: Path | None, host: str) -> "Certificate":
    """The one that was given, or one that is made."""
    from kubescene.outside.remote.webhook.certificates import make_certificate, read_certificate

    if certificate is not None and key is not None:
        return read_certificate(certificate, key)
    return make_certificate(host)


def check_pair(certificate: Path | None, key: Path | None) -> None:
    if (certificate is None) is not (key is None):
        raise ConfigurationError("--webhook-cert and --webhook-key belong together: give both")


def default_out() -> Path:
    """The user's folder for what programs remember."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kubescene" / "runs"
