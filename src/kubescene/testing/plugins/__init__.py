"""A conformance suite for scheduler plugins: point it at your class.

One call, which raises `ConformanceError` with all that is wrong::

    from kubescene.testing.plugins import conformance

    def test_my_plugin() -> None:
        conformance(MyPlugin, arguments={"weight": 3})

or a class for pytest, with one test per promise::

    class TestMyPlugin(PluginConformance):
        plugin = MyPlugin

The plugin is asked in random clusters: the same every time. Give ``pods`` and ``nodes`` if your
plugin looks at something that those do not have, such as an annotation of yours, and ``objects`` if
it reads other kinds. What is checked stands in `checks`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kubescene.client.verbs import AnyObject
from kubescene.errors import ConfigurationError
from kubescene.scheduler.framework.points import points_of
from kubescene.testing.plugins.checks import CHECKS
from kubescene.testing.plugins.worlds import Subject

CLUSTERS = 5


class ConformanceError(AssertionError):
    """A plugin breaks promises; one line for each."""


def conformance(
    plugin: type,
    *,
    arguments: Mapping[str, Any] | None = None,
    pods: Sequence[AnyObject] = (),
    nodes: Sequence[AnyObject] = (),
    objects: Sequence[AnyObject] = (),
    clusters: int = CLUSTERS,
) -> None:
    """Check all that a plugin promises, in so many random clusters."""
    subject = _subject(plugin, arguments, pods, nodes, objects)
    broken = [f"{name}: {fault}" for name in CHECKS if (fault := fault_of(name, subject, clusters))]
    if broken:
        raise ConformanceError(f"{subject.name}:\n  " + "\n  ".join(broken))


def fault_of(check: str, subject: Subject, clusters: int = CLUSTERS) -> str:
    """What is wrong by one check, in the first cluster that shows it; empty if nothing is."""
    for number in range(clusters):
        try:
            CHECKS[check](subject, number)
        except AssertionError as error:
            return f"{error} (cluster {number})"
    return ""


def _subject(
    plugin: type,
    arguments: Mapping[str, Any] | None,
    pods: Sequence[AnyObject],
    nodes: Sequence[AnyObject],
    objects: Sequence[AnyObject],
) -> Subject:
    if not points_of(plugin):
        raise ConfigurationError(f"{plugin!r} has none of the methods of a scheduler plugin")
    return Subject(plugin, arguments or {}, pods, nodes, objects)


class PluginConformance:
    """A base for test classes: set `plugin`, and the rest if it matters."""

    plugin: ClassVar[type]
    arguments: ClassVar[Mapping[str, Any]] = {}
    pods: ClassVar[Sequence[AnyObject]] = ()
    nodes: ClassVar[Sequence[AnyObject]] = ()
    objects: ClassVar[Sequence[AnyObject]] = ()
    clusters: ClassVar[int] = CLUSTERS

    def holds(self, check: str) -> None:
        subject = _subject(self.plugin, self.arguments, self.pods, self.nodes, self.objects)
        if fault := fault_of(check, subject, self.clusters):
            raise ConformanceError(f"{subject.name}: {fault}")

    def test_answers_are_answers(self) -> None:
        self.holds("answers_are_answers")

    def test_forms_agree(self) -> None:
        self.holds("forms_agree")

    def test_nothing_is_changed(self) -> None:
        self.holds("nothing_is_changed")

    def test_same_question_same_answer(self) -> None:
        self.holds("same_question_same_answer")

    def test_reads_what_it_says(self) -> None:
        self.holds("reads_what_it_says")

    def test_prepares_by_class(self) -> None:
        self.holds("prepares_by_class")

    def test_concerns_what_it_says(self) -> None:
        self.holds("concerns_what_it_says")

    def test_can_be_copied(self) -> None:
        self.holds("can_be_copied")

    def test_keeps_up(self) -> None:
        self.holds("keeps_up")

    def test_hints_are_honest(self) -> None:
        self.holds("hints_are_honest")

    def test_suppositions_hold(self) -> None:
        self.holds("suppositions_hold")


__all__ = ["CHECKS", "ConformanceError", "PluginConformance", "conformance", "fault_of"]
