"""What can be said to ``kubescene controller`` alone."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

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
