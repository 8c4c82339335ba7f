"""Steps are ordered like hours and minutes."""

from kubescene.clock import ScenarioStep


def test_major_counts_before_minor() -> None:
    assert ScenarioStep(1, 99) < ScenarioStep(2, 0) < ScenarioStep(2, 1)


def test_a_step_can_be_written_and_continued() -> None:
    step = ScenarioStep(3, 4).next_minor()
    assert (str(step), step.to_dict()) == ("3.5", {"major": 3, "minor": 5})
