"""``kubescene runs``: the runs that a data directory, or a server, keeps."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias
from urllib.parse import quote

import msgspec
import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError

if TYPE_CHECKING:
    from kubescene.runs.catalogue import RunEntry

runs = typer.Typer(name="runs", no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Id: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The run, as `runs list` shows it.")
]
Format: TypeAlias = Annotated[
    Literal["table", "json"], typer.Option("--output", "-o", help="How to show it.")
]
PAGES = "/simulator/v1/runs"


@runs.callback()
def commands() -> None:
    """List, show and delete runs: of scenarios and of traffic, finished or under way.

    Example: kubescene runs list --data-dir data
    """


@runs.command("list")
def list_runs(
    data_dir: options.DataDir = None,
    server: options.Server = None,
    kind: Annotated[Literal["scenario", "traffic"] | None, typer.Option(help="Only these.")] = None,
    output: Format = "table",
) -> None:
    """List the runs, the newest first.

    Example: kubescene runs list --data-dir data -o json
    """
    from kubescene.cli.terminals import aligned

    with kept(data_dir, server) as place:
        found = [each for each in place.list() if kind in (None, str(each.kind))]
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    rows = [["ID", "KIND", "NAME", "PHASE", "CREATED", "FINISHED", "SEED"]]
    rows += [
        [each.id, each.kind, each.name, each.phase, each.created, each.finished, str(each.seed)]
        for each in found
    ]
    typer.echo(aligned(rows, left=range(6)), nl=False)


@runs.command("show")
def show_run(
    id: Id,
    data_dir: options.DataDir = None,
    server: options.Server = None,
    output: Format = "table",
) -> None:
    """Show a run and its files.

    Example: kubescene runs show scenario-3 --data-dir data
    """
    from kubescene.cli.terminals import aligned

    with kept(data_dir, server) as place:
        entry, files = place.get(id), place.files(id)
    shown: dict[str, Any] = msgspec.to_builtins(entry)
    if output == "json":
        shown["files"] = [{"name": name, "bytes": size} for name, size in files.items()]
        typer.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
        return
    rows = [[f"{name}:", str(value)] for name, value in shown.items() if value != ""]
    rows += [["files:", ", ".join(files) or "none"]]
    typer.echo(aligned(rows, left=(0, 1)), nl=False)


@runs.command("delete")
def delete_runs(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The runs.")],
    data_dir: options.DataDir = None,
    server: options.Server = None,
) -> None:
    """Delete runs with their files. Numbers are not given again.

    Example: kubescene runs delete scenario-3 traffic-7 --data-dir data
    """
    with kept(data_dir, server) as place:
        for id in ids:
            place.get(id)  # Nothing is deleted if one is not there.
        for id in ids:
            place.delete(id)
            typer.echo(f"run {id} deleted")


class Catalogue(Protocol):
    """Where runs are kept."""

    def list(self) -> "list[RunEntry]": ...

    def get(self, id: str) -> "RunEntry": ...

    def files(self, id: str) -> dict[str, int]: ...

    def delete(self, id: str) -> None: ...


@contextmanager
def kept(data_dir: Path | None, server: str | None) -> Iterator[Catalogue]:
    """The catalogue that a command line names; a server wins over the environment's directory."""
    if server is not None:
        with closing(ServedRuns(server)) as served:
            yield served
        return
    if data_dir is None:
        raise ConfigurationError(
            "name the directory that keeps the runs by --data-dir (or KUBESCENE_DATA_DIR), "
            "or a server by --server"
        )
    from kubescene.runs.catalogue import runs_in

    yield runs_in(data_dir)


class ServedRuns:
    """The runs of a server."""

    def __init__(self, url: str) -> None:
        from kubescene.actors import Actor
        from kubescene.client.http import HttpClient

        self._client = HttpClient(url, Actor("kubescene-runs"))

    def list(self) -> "list[RunEntry]":
        from kubescene.runs.catalogue import RunEntry

        found: list[RunEntry] = msgspec.convert(self._page("")["runs"], list[RunEntry])
        return found

    def get(self, id: str) -> "RunEntry":
        from kubescene.runs.catalogue import RunEntry

        return msgspec.convert(self._page(f"/{quote(id, safe='')}"), RunEntry)

    def files(self, id: str) -> dict[str, int]:
        listed = self._page(f"/{quote(id, safe='')}")["files"]
        return {each["name"]: each["bytes"] for each in listed}

    def delete(self, id: str) -> None:
        self._client.delete_page(f"{PAGES}/{quote(id, safe='')}")

    def close(self) -> None:
        self._client.close()

    def _page(self, rest: str) -> Any:
        return msgspec.json.decode(self._client.read_page(PAGES + rest))
