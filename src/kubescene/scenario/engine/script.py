"""What the author of a scenario wants, which may change while it is played."""

from kubescene.scenario.edits import ignored_operations, spec_of
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.spec import Operation, ScenarioSpec, parse_spec
from kubescene.scenario.world import LiveScenario
from kubescene.types import JsonObject


class Script:
    """The spec as it was last read, and which of its operations were played."""

    def __init__(
        self,
        scenario: LiveScenario,
        folder: ScenarioFolder | None,
        listed: OperationList | None = None,
    ) -> None:
        self.spec = ScenarioSpec(())
        self.played: dict[str, Operation] = {}
        """The operations of all steps up to the current one, by id."""
        self._scenario = scenario
        self._folder = folder
        self._listed = listed
        self._source: JsonObject = {}

    def read(self) -> None:
        """Raises `ScenarioError` for a spec that cannot be played."""
        scenario = self._scenario.object
        listed = self._listed
        if listed is not None and listed.objects.wanted:
            self._listed = None  # it is as good as any later, and large
        self.spec = parse_spec(scenario, self._folder, listed)
        self._source = spec_of(scenario)

    def reread(self) -> None:
        """Take in what the author has changed since the last look."""
        if spec_of(self._scenario.object) is self._source:
            return
        self.read()
        self._scenario.ignored = ignored_operations(self.spec, self._major, self.played)

    def next_major(self) -> int | None:
        """The next step that has operations."""
        return self.spec.next_major(self._major)

    def note_late(self) -> tuple[str, ...]:
        """The ids of what stands after the done operation: it is never played."""
        ignored = ignored_operations(self.spec, self._major, self.played, is_over=True)
        self._scenario.ignored = ignored
        return tuple(each.id for each in ignored)

    @property
    def _major(self) -> int:
        return self._scenario.step.major
