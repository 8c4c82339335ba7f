"""The command ``kubescene matrix``."""

import typer

from kubescene.cli import matrix_options, options


def matrix(
    files: matrix_options.Files,
    scheduler_config: matrix_options.Configurations = None,
    seeds: matrix_options.Seeds = None,
    seed: matrix_options.Seed = None,
    settings: matrix_options.Settings = None,
    out: matrix_options.Out = None,
    jobs: matrix_options.Jobs = None,
    executor: matrix_options.Executor = None,
    format: matrix_options.Format = "table",
    measure: matrix_options.Measures = None,
    prices: options.Prices = None,
    plugin: options.Plugins = None,
    controller: options.Controllers = None,
    feature_gates: matrix_options.FeatureGates = "",
    strict: options.Strict = False,
    quiet: matrix_options.Quiet = False,
) -> None:
    """Play scenarios x scheduler configurations x seeds in parallel, and show one table.

    Exits with 0 if all is well, 1 if a run failed, 2 if the input is wrong, and 3 if an expectation
    does not hold. With --out, the same command goes on where it was stopped.

    Example: kubescene matrix shop.yaml --scheduler-config pack.yaml --seeds 5 --out out/matrix
    """
    from kubescene.cli.matrix_playing import MatrixArguments, play_matrix

    arguments = MatrixArguments(
        files=files,
        configurations=scheduler_config or (),
        seeds=seeds,
        seed=seed or (),
        settings=settings or (),
        out=out,
        jobs=jobs,
        executor=executor,
        format=format,
        measures=measure or (),
        prices=prices,
        plugins=plugin or (),
        controllers=controller or (),
        feature_gates=feature_gates,
        strict=strict,
        quiet=quiet,
    )
    raise typer.Exit(play_matrix(arguments))
