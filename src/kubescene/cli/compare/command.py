"""What can be said to ``kubescene compare``."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def compare(
    run_a: Annotated[
        str, typer.Argument(help="The --out directory of a run, or URL#SCENARIO of a server.")
    ],
    run_b: Annotated[str, typer.Argument(help="That of the run to compare with it.")],
    form: Annotated[
        Literal["terminal", "markdown", "json", "html"] | None,
        typer.Option("--format", help="How to show it; by default as the name of --out ends."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file, not to the terminal.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="For how many pods to find out which plugin moved them.")
    ] = 200,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Play runs again that have not kept why pods were placed."),
    ] = False,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Ask B's scheduler about pods that follow, in A's cluster; plays A again.",
        ),
    ] = False,
    plugin: Annotated[
        list[str] | None, typer.Option(help="To play again: a plugin that a run was given.")
    ] = None,
    controller: Annotated[
        list[str] | None, typer.Option(help="To play again: a controller that they were given.")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(metavar="NAME=true,...", help="To play again: those of the runs.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="To play again: where objectFrom reads.")
    ] = None,
) -> None:
    """Show what differs between two runs, and which plugin moved whom. Exits 1 if they differ.

    Example: kubescene compare out/before out/after --format markdown
    """
    from kubescene.cli.compare.comparison import (
        ComparisonFormat,
        compare_runs,
        form_of,
        show_comparison,
    )
    from kubescene.cli.origins import origin_of
    from kubescene.cli.replaying import PlayedWith

    given = PlayedWith(
        plugins=plugin or (),
        controllers=controller or (),
        feature_gates=feature_gates,
        folder=folder,
    )
    chosen = form_of(out) if form is None else ComparisonFormat(form)
    found = compare_runs(
        origin_of(run_a),
        origin_of(run_b),
        looked_at=limit,
        replay=given if replay else None,
        what_if=given if what_if else None,
    )
    raise typer.Exit(show_comparison(found, chosen, out))
