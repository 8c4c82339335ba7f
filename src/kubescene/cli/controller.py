"""``kubescene controller``: plays the Scenarios of a real API server."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kubescene.cli import options
from kubescene.cli.serve import strategy_named
from kubescene.errors import ApiError, ConfigurationError

if TYPE_CHECKING:
    from kubescene.client.http import Endpoint
    from kubescene.remote.cluster import RemoteCluster
    from kubescene.remote.player import Player
    from kubescene.remote.webhook.certificates import Certificate

RUN_FAILED = 1
UNCHECKED = (
    "No --webhook-port: what others write while a scenario is under way is not refused, and makes "
    "it fail."
)


@dataclass(frozen=True, slots=True)
class WebhookPlace:
    """Where the admission webhook is served, and as whom."""

    host: str
    port: int
    certificate: "Certificate"


AllowExtenders: TypeAlias = Annotated[
    bool, typer.Option(help="Let Scenarios bring extenders, which are then called.")
]
Context: TypeAlias = Annotated[str, typer.Option(help="A context of the kubeconfig.")]
Controllers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--controller", help="A controller of yours, as module:Class. May be repeated."),
]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where the API server is; without it, as kubectl finds."),
]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the run directory of each scenario goes."),
]
Unverified: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--insecure-skip-tls-verify", help="Accept a kubeconfig that checks no certificate."
    ),
]
WebhookCert: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Its certificate; without it, openssl makes one."),
]
WebhookHost: TypeAlias = Annotated[
    str, typer.Option(help="Address to serve it at, as the API server reaches it.")
]
WebhookKey: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key of that certificate.")
]
WebhookPort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="Serve the admission webhook here that turns others away; 0 takes a free port.",
    ),
]


def controller(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    insecure_skip_tls_verify: Unverified = False,
    webhook_port: WebhookPort = None,
    webhook_host: WebhookHost = "127.0.0.1",
    webhook_cert: WebhookCert = None,
    webhook_key: WebhookKey = None,
    out: Out = None,
    plugin: options.Plugins = None,
    user_controller: Controllers = None,
    scheduler_config: options.SchedulerConfig = None,
    feature_gates: options.FeatureGates = "",
    allow_extenders: AllowExtenders = False,
    results_strategy: options.Results = "AtMovingNextStep",
) -> None:
    """Play the Scenarios of a real API server, whose cluster must be disposable.

    Example: kubescene controller --kubeconfig cluster.yaml --webhook-port 9443
    """
    results = strategy_named(results_strategy)
    check_pair(webhook_cert, webhook_key)
    # No other command should wait for what this one needs.
    from kubescene.cli.components import registered, scheduler_with
    from kubescene.client.http import read_kubeconfig
    from kubescene.cluster import ClusterOptions
    from kubescene.remote.cluster import RemoteCluster
    from kubescene.remote.player import Player

    endpoint = read_kubeconfig(
        kubeconfig, context=context, allow_unverified=insecure_skip_tls_verify
    )
    asked = ClusterOptions(scheduler=scheduler_with(plugin or (), scheduler_config, feature_gates))
    controllers = registered(asked, user_controller or ())
    place = None
    if webhook_port is not None:
        certificate = certificate_of(webhook_cert, webhook_key, webhook_host)
        place = WebhookPlace(webhook_host, webhook_port, certificate)
    come = partial(RemoteCluster, endpoint, asked, controllers=controllers)
    staged = partial(
        Player,
        out=out or default_out(),
        results=results,
        allow_extenders=allow_extenders,
        tell=typer.echo,
    )
    lead(endpoint, come, staged, place)


def lead(
    endpoint: "Endpoint",
    come: "Callable[[], RemoteCluster]",
    staged: "Callable[[RemoteCluster], Player]",
    place: WebhookPlace | None,
) -> None:
    """Play as the only controller of a server, until told to stop or no longer the only one."""
    from kubescene.remote.leadership import Leadership

    leadership = Leadership(endpoint)
    try:
        # Before anything else: to come to a server is to unlock it and to fail what was under way.
        leadership.acquire(partial(typer.echo, err=True))
        with closing(come()) as cluster:
            player = staged(cluster)
            admit(player, place)
            leadership.when_lost(player.stop)
            typer.echo(f"Playing the Scenarios of {endpoint.url}")
            play(player)
    except ApiError as error:
        typer.echo(f"kubescene: {told(error, endpoint)}", err=True)
        raise typer.Exit(RUN_FAILED) from None
    finally:
        leadership.release()
    if leadership.lost:
        typer.echo(f"kubescene: {leadership.lost}", err=True)
        raise typer.Exit(RUN_FAILED)


def admit(player: "Player", place: WebhookPlace | None) -> None:
    """Turn others away, if there is a place for the webhook that does."""
    if place is None:
        typer.echo(UNCHECKED, err=True)
    else:
        url = player.admit_by(place.certificate, place.host, place.port)
        typer.echo(f"Admission webhook at {url}")


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
    from kubescene.remote.webhook.certificates import make_certificate, read_certificate

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
