"""``kubescene serve``: a cluster on a loopback address, for kubectl and every other client."""

import ipaddress
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from kubescene.cli import options
from kubescene.cli.data import WORLD
from kubescene.errors import ConfigurationError

if TYPE_CHECKING:
    from kubescene.apiserver.access.security import Security
    from kubescene.apiserver.audit import AuditTrail
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
    typer.Option(help="Listen on an address that others can reach, by https and with tokens."),
]
AuditBackups: TypeAlias = Annotated[
    int, typer.Option(min=0, help="How many audit logs that were put aside are kept; 0: all.")
]
AuditPath: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Tell here who asked for what, as kube-apiserver does; - is stdout."
    ),
]
AuditPolicy: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="An audit.k8s.io/v1 Policy: how much of what; without it Metadata of everything.",
    ),
]
AuditSize: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Megabytes after which the audit log is put aside.")
]
Autoscalers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="An autoscaler of yours for objects and traffic runs, as module:Class."),
]
AutoscalerProcesses: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND",
        help="An autoscaler in a process, for objects and runs that name its type.",
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
        help="Keep the world and the runs of scenarios and traffic here; otherwise in memory.",
    ),
]
Host: TypeAlias = Annotated[str, typer.Option(help="Address to listen on.")]
Identities: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With --tls: who is known; in --data-dir, or else for all servers of a user.",
    ),
]
MaxBody: TypeAlias = Annotated[
    int, typer.Option(min=1024, help="Largest request body that is read, in bytes.")
]
MaxPods: TypeAlias = Annotated[
    int, typer.Option(min=1, help="How many pods there may be: more are refused.")
]
MaxRequests: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Largest traffic run, in simulated requests.")
]
MaxRuns: TypeAlias = Annotated[
    int, typer.Option(min=1, max=64, help="Traffic runs that are simulated at once.")
]
OpenPages: TypeAlias = Annotated[
    bool, typer.Option("--open", help="Open the pages for people in a browser.")
]
Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
]
RoleBased: TypeAlias = Annotated[
    bool,
    typer.Option("--rbac", help="Let Roles and their bindings say who may do what, as a cluster."),
]
RequestTimeout: TypeAlias = Annotated[
    float,
    typer.Option(
        min=1, metavar="SECONDS", help="Cut off clients who take longer to send a request."
    ),
]
Snapshot: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="SNAPSHOT",
        help="The cluster that is there when it begins: a file or folder that `kubescene snapshot` "
        "reads or wrote.",
    ),
]
ClientAuthority: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Whose certificates say who a client is, besides our own, as PEM."
    ),
]
Tls: TypeAlias = Annotated[
    bool, typer.Option("--tls", help="Serve https, for those who show a token.")
]
TlsAuthority: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Whom clients trust, as PEM; without it the certificate."),
]
TlsCertificate: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The certificate and its chain, as PEM; else one is made."),
]
TlsKey: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, as PEM.")]
TlsNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tls-name",
        metavar="NAME",
        help="Another name or address at which clients find the server. May be repeated.",
    ),
]
WebhookHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook-host",
        metavar="HOST",
        help="Another host than this one at which webhooks may be called. May be repeated.",
    ),
]
WebhookServices: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook-service",
        metavar="NAMESPACE/NAME=HOST:PORT",
        help="Where a Service is behind which webhooks are. May be repeated.",
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
    max_pods: MaxPods = 150_000,
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
    open_pages: OpenPages = False,
    snapshot: Snapshot = None,
    rbac: RoleBased = False,
    tls: Tls = False,
    identities: Identities = None,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    tls_ca: TlsAuthority = None,
    tls_name: TlsNames = None,
    client_ca: ClientAuthority = None,
    audit_log_path: AuditPath = "",
    audit_policy_file: AuditPolicy = None,
    audit_log_maxsize: AuditSize = 100,
    audit_log_maxbackup: AuditBackups = 0,
    webhook_host: WebhookHosts = None,
    webhook_service: WebhookServices = None,
) -> None:
    """Serve a simulated cluster to kubectl and client libraries.

    Example: kubescene serve --port 8001
    """
    is_secure = tls or not check_host(host, allow_remote=allow_remote)
    about = TlsOptions(identities, tls_cert, tls_key, tls_ca, tuple(tls_name or ()), client_ca)
    if not is_secure:
        about.check_unused()
    security = about.security(host, data_dir) if is_secure else None
    audit = audit_trail(audit_log_path, audit_policy_file, audit_log_maxsize, audit_log_maxbackup)
    clock_named(clock)
    results = strategy_named(results_strategy)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # No other command should wait for the HTTP stack.
    from kubescene.apiserver.traffic.pages import TrafficPages
    from kubescene.apiserver.webhooks import WebhookPlaces
    from kubescene.autoscalers.references import running
    from kubescene.cli.components import autoscalers_named, names_in, scheduler_with, waiters_named
    from kubescene.cluster import ClusterOptions

    places = WebhookPlaces.of(webhook_host or (), webhook_service or ())
    waiters = waiters_named(waiter or ())
    scheduler = scheduler_with(plugin or (), scheduler_config, feature_gates)
    scheduler = replace(scheduler, annotations=annotate)
    # Objects of the cluster and traffic runs have the same processes.
    with running(autoscaler_process or ()) as processes:
        pages = TrafficPages(
            data_dir,
            autoscaler or (),
            commands=autoscaler_process or (),
            processes=processes,
            most_requests=max_requests,
            at_once=max_runs,
        )
        check_traffic(pages)
        cluster = cluster_with(
            ClusterOptions(
                seed=seed,
                events=True,
                furnished=True,
                scheduler=scheduler,
                without=names_in(without or ()),
                autoscaler_plugins=(*autoscalers_named(autoscaler or ()), *processes),
            ),
            controller or (),
            clock,
            data_dir,
        )
        for line in () if snapshot is None else restored(cluster, snapshot):
            typer.echo(line)
        server = listening(
            cluster,
            host,
            port,
            controllers=controllers,
            max_body=max_body,
            most_pods=max_pods,
            request_timeout_s=request_timeout,
            allow_extenders=allow_extenders,
            results=results,
            traffic=pages,
            rbac=rbac,
            security=security,
            webhooks=places,
            warm=True,
            audit=audit,
        )
        server.stage.waiters = waiters
        welcome(server.url, security, is_opened=open_pages)
        for line in (kept(data_dir), *left_out(cluster)):
            typer.echo(line)
        server.run()


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What the command line says of https."""

    identities: Path | None
    certificate: Path | None
    key: Path | None
    authority: Path | None
    names: tuple[str, ...]
    client_ca: Path | None = None

    def security(self, host: str, data_dir: Path | None) -> "Security":
        """The certificate and the identities of a server; `ConfigurationError` without them."""
        from kubescene.apiserver.access.security import GivenCertificate, secured

        given = None
        if self.certificate is not None and self.key is not None:
            given = GivenCertificate(self.certificate, self.key, self.authority)
        elif self.certificate or self.key or self.authority:
            raise ConfigurationError("--tls-cert and --tls-key belong together: give both")
        folder = self.identities or identities_in(data_dir)
        return secured(folder, host, self.names, given, self.client_ca)

    def check_unused(self) -> None:
        given = (self.identities, self.certificate, self.key, self.authority, self.names)
        if any((*given, self.client_ca)):
            raise ConfigurationError(
                "--identities, --tls-cert, --tls-key, --tls-ca, --tls-name and --client-ca are for "
                "https: say --tls"
            )


def audit_trail(path: str, policy: Path | None, size: int, backups: int) -> "AuditTrail | None":
    """Where it is told who asked for what; raises `ConfigurationError`."""
    if not path:
        if policy is not None:
            raise ConfigurationError("--audit-policy-file needs --audit-log-path: where to tell it")
        return None
    from kubescene.apiserver.audit import METADATA_OF_ALL, AuditLog, AuditTrail, read_policy

    told = METADATA_OF_ALL if policy is None else read_policy(policy)
    return AuditTrail(AuditLog(path, size, backups), told)


def identities_in(data_dir: Path | None) -> Path:
    """Where identities are, unless it is said."""
    if data_dir is not None:
        return data_dir / "identities"
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kubescene" / "identities"


def connecting(url: str, security: "Security | None") -> str:
    """How a client gets in."""
    if security is None:
        return f"Connect with: kubescene kubeconfig --server {url} > kubescene.yaml"
    administrator = security.introduce(url)
    return (
        f"Connect with: export KUBECONFIG={administrator.absolute()}\n"
        "Others are let in by: kubescene kubeconfig "
        f"--identities {security.identities.path} --as NAME"
    )


def welcome(url: str, security: "Security | None", *, is_opened: bool) -> None:
    """Say where the server is, for people and for clients."""
    typer.echo(f"Serving on {url}")
    show_pages(f"{url}/ui", is_opened=is_opened)
    if security is not None:
        typer.echo("They ask for a token: open a kubeconfig there, such as this administrator's")
    typer.echo(connecting(url, security))


def show_pages(url: str, *, is_opened: bool) -> None:
    """Say where the pages are; a browser that is opened waits until the server answers."""
    import webbrowser  # not for those who have one open

    typer.echo(f"Pages for people: {url}")
    if is_opened and not webbrowser.open(url):
        typer.echo("There is no browser here that could be opened: go there yourself")


def restored(cluster: "ClusterWorld", path: Path) -> "Iterator[str]":
    """Put a snapshot into the world before anybody comes; what is to be known of it."""
    from kubescene.snapshots import read_snapshot, restore

    if cluster.slots or cluster.list("pods") or cluster.list("nodes"):
        raise ConfigurationError(
            "--from is for a world that begins: --data-dir holds one that has gone on already"
        )
    snapshot = read_snapshot(path)
    refused = restore(cluster.registry, snapshot)
    yield f"The cluster of {path}: {len(snapshot.objects):,} objects"
    yield from (f"  {each}" for each in (*snapshot.unknowns, *snapshot.told_left_out, *refused))


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
    if data_dir is None:
        return "The world and its Scenarios are in memory, and gone when it ends"
    return f"The world, its Scenarios and all runs are kept in {data_dir}"


def cluster_with(
    asked: "ClusterOptions",
    controllers: Sequence[str],
    clock: str,
    data_dir: Path | None = None,
) -> "ClusterWorld":
    """The world that is served; what a server itself notes is on the machine's clock."""
    from kubescene.cli.components import registered
    from kubescene.clock import WallClock
    from kubescene.cluster import ClusterWorld
    from kubescene.store.disk import open_store

    return ClusterWorld(
        asked,
        controllers=registered(asked, controllers),
        clock=clock_named(clock),
        server_clock=WallClock(),
        store=None if data_dir is None else open_store(data_dir / WORLD),
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


def check_host(host: str, *, allow_remote: bool) -> bool:
    """Whether only this machine reaches it; refused if others do unless that is wanted."""
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not (is_local or allow_remote):
        raise ConfigurationError(
            f"{host} is not a loopback address: use 127.0.0.1, or say --allow-remote, which serves "
            "https for those who show a token"
        )
    return is_local
