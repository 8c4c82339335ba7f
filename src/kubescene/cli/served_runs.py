"""A run that a server has played, fetched to be read like one of our own."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from kubescene.actors import Actor
from kubescene.cli.explain.at_server import SIMULATOR, only_scenario
from kubescene.client.http import HttpClient
from kubescene.errors import ConfigurationError, NotFoundError
from kubescene.results.opening import open_run
from kubescene.results.output import write_results
from kubescene.results.sources import RunSource
from kubescene.runs.catalogue import is_id

ACTOR = Actor("kubescene-results")
NOT_KEPT = "has played no scenario: there are no results"


@contextmanager
def served_run(url: str, scenario: str = "") -> Iterator[RunSource]:
    """The run of a scenario (or of the only one) at a server, as long as it is needed."""
    with fetched_run(url, scenario) as (folder, name):
        source = open_run(folder)
        source.place = f"{url.rstrip('/')}, scenario {name}"
        yield source


@contextmanager
def fetched_run(url: str, scenario: str = "") -> Iterator[tuple[Path, str]]:
    """The same as a directory, and the scenario's name."""
    with TemporaryDirectory(prefix="kubescene-results-") as folder:
        yield Path(folder), fetch_run(url, scenario, Path(folder))


def fetch_run(url: str, scenario: str, folder: Path) -> str:
    """Write what a run of our own would have written; returns the scenario's name."""
    place = url.rstrip("/")
    with closing(HttpClient(url, ACTOR)) as client:
        if is_id(scenario) and fetch_kept(client, scenario, folder):
            return scenario
        name = scenario or only_scenario(client, place, NOT_KEPT)
        try:
            pages = {
                page: client.read_page(f"{SIMULATOR}/scenarios/{name}/{page}")
                for page in ("result", "timeline", "explanations", "summary")
            }
        except NotFoundError as error:
            raise ConfigurationError(f"{place}: {error.message}") from None
    write_results(folder, orjson.loads(pages.pop("result")), **pages)
    return name


def fetch_kept(client: HttpClient, id: str, folder: Path) -> bool:
    """The files of a run in the server's catalogue; whether there is one of that id."""
    place = f"{SIMULATOR}/runs/{id}"
    try:
        listed = orjson.loads(client.read_page(place))["files"]
    except NotFoundError:
        return False
    for each in listed:
        name = Path(each["name"]).name
        (folder / name).write_bytes(client.read_page(f"{place}/files/{name}"))
    return True
