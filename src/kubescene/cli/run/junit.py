"""``--junit FILE``: what came of a run for those who show test results."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.results import Summary
from kubescene.types import JsonObject


class JunitFile:
    """The file that a run is told to, if there is one. Its writer is loaded when it is needed."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def tell(self, summary: Summary, scenario: JsonObject) -> None:
        """A run that is over, whatever came of it."""
        if self.path is not None:
            from kubescene.reports.junit import suite_of, write_junit

            write_junit(self.path, [suite_of(summary, names_in(scenario))])

    def tell_fault(self, name: str, fault: str) -> None:
        """A scenario that could not be played."""
        if self.path is not None:
            from kubescene.reports.junit import unplayed, write_junit

            write_junit(self.path, [unplayed(name, fault)])


NO_JUNIT = JunitFile(None)


@contextmanager
def told_to(path: Path | None, scenario: Path) -> Iterator[JunitFile]:
    """Make room for the file; a scenario that cannot be read or played is told there, too."""
    file = JunitFile(path)
    if path is not None:
        from kubescene.reports.junit import clear_junit

        clear_junit(path)
    try:
        yield file
    except (ScenarioError, ConfigurationError) as error:
        file.tell_fault(str(scenario), str(error))
        raise


def names_in(scenario: JsonObject) -> list[str]:
    """The names of a scenario's expectations, as far as an unchecked one has them."""
    listed = (scenario.get("spec") or {}).get("expectations")
    items = listed if isinstance(listed, list) else []
    names = [each.get("name") for each in items if isinstance(each, dict)]
    return [name for name in names if isinstance(name, str)]
