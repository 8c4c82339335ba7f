"""Scenarios that live in a served world: played one after the other, edited, watched, deleted.

`scenarios` decides who plays and who waits, `runs` is one of them with its records, `edits` says
what authors may change meanwhile. Everything here runs on the engine thread and knows no HTTP.
"""

from kubescene.live.runs import LiveRun
from kubescene.live.scenarios import LiveScenarios

__all__ = ["LiveRun", "LiveScenarios"]
