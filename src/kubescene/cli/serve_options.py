"""What can be said to ``kubescene serve`` alone."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

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
    Path | None, typer.Option(metavar="DIR", help="Keep traffic runs here; otherwise in memory.")
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
Seed: TypeAlias = Annotated[
    int, typer.Option(min=-(2**63), max=2**63 - 1, help="Where names and uids begin.")
]
