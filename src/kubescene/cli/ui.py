"""``kubescene ui``: the pages for people, about runs that are finished, one or many."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli.serve import OpenPages, Port, cluster_with, listening, show_pages


def ui(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="What --out was given: of run, matrix or tune."),
    ],
    port: Port = 8001,
    open_pages: OpenPages = False,
) -> None:
    """Show finished runs in a browser: drag through time, click a pod, compare, fork.

    Of a matrix or a search over settings, its table with intervals, and charts of it.

    The cluster beside them is empty and in memory: what is played from here leaves them alone.

    Example: kubescene ui out/first-scenario --open
    """
    # No other command should wait for the HTTP stack.
    from kubescene.cluster import ClusterOptions
    from kubescene.runs.opened import OpenedRuns

    opened = OpenedRuns(runs)
    cluster = cluster_with(ClusterOptions(events=True, furnished=True), (), "wall")
    server = listening(cluster, "127.0.0.1", port, opened=opened, warm=True)
    typer.echo("The runs are not changed; what is played here is in memory")
    show_pages(f"{server.url}{opened.page}", is_opened=open_pages)
    server.run()
