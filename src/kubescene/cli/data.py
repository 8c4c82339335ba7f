"""``kubescene data``: the world that a data directory keeps, while no server has it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kubescene.errors import ConfigurationError

if TYPE_CHECKING:
    from kubescene.store.disk import StoredWorld

WORLD = "world"
"""The folder of a data directory that holds the objects."""

data = typer.Typer(name="data", no_args_is_help=True, add_completion=False, rich_markup_mode=None)

DataDir: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", help="What `kubescene serve --data-dir` was given.")
]


@data.callback()
def commands() -> None:
    """Look after the world that a server keeps on disk, while no server runs on it.

    Example: kubescene data info data
    """


@data.command("info")
def info(data_dir: DataDir) -> None:
    """Tell what is kept: objects by kind, files, and the newest revision.

    Example: kubescene data info data
    """
    from kubescene.cli.terminals import aligned

    contents = read(data_dir)
    typer.echo(told(contents))
    rows = [["RESOURCE", "OBJECTS"]]
    held = {str(resource): len(each) for resource, each in contents.records.items() if each}
    rows += [[resource, f"{held[resource]:,}"] for resource in sorted(held)]
    typer.echo(aligned(rows, left=(0,)), nl=False)


@data.command("verify")
def verify(data_dir: DataDir) -> None:
    """Read everything and check it: lengths, checksums, and that every change fits the one before.

    Example: kubescene data verify data
    """
    contents = read(data_dir)
    typer.echo(f"whole: {told(contents)}")
    if contents.cut is not None and contents.cut.is_more_than_room:
        typer.echo(
            f"{contents.cut.path} ends in a write that was cut short and never acknowledged: "
            f"{contents.cut.size - contents.cut.end:,} bytes that the next start leaves out"
        )


@data.command("export")
def export(
    data_dir: DataDir,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; otherwise standard output.")
    ] = None,
    until_damage: Annotated[
        bool, typer.Option(help="Take what comes before a damaged place, and say so.")
    ] = False,
) -> None:
    """Write the objects as one Kubernetes List, which an import takes.

    Example: kubescene data export data --out world.json
    """
    from kubescene.registry.exports import exported, list_of
    from kubescene.store.disk import restored

    store, contents = restored(folder_of(data_dir), until_damage=until_damage)
    document = list_of(exported(store))
    if out is None:
        typer.echo(document)
    else:
        out.write_bytes(document)
        typer.echo(f"{told(contents)}: written to {out}", err=True)


@data.command("compact")
def compact(data_dir: DataDir) -> None:
    """Write a snapshot in place of all changes, so that the next start is faster.

    Watches can begin at the newest revision only, then. Example: kubescene data compact data
    """
    from kubescene.store.disk import compacted

    before, after = compacted(folder_of(data_dir))
    typer.echo(f"{before:,} bytes before, {after:,} now")


def folder_of(data_dir: Path) -> Path:
    """Where a data directory has its world; raises if it has none."""
    folder = data_dir / WORLD
    if not folder.is_dir():
        raise ConfigurationError(
            f"there is no world in {data_dir}: name what `kubescene serve --data-dir` was given"
        )
    return folder


def read(data_dir: Path) -> "StoredWorld":
    from kubescene.store.disk import StoredWorld

    contents = StoredWorld(folder_of(data_dir))
    for _ in contents.read():
        pass
    return contents


def told(contents: "StoredWorld") -> str:
    count = sum(len(each) for each in contents.records.values())
    sizes = contents.sizes
    return (
        f"{count:,} objects at revision {contents.revision}, {sizes.snapshot:,} bytes of snapshot, "
        f"{contents.changes:,} changes since in {sizes.changes:,} bytes"
    )
