"""The phase machine: plays one scenario in one world, moment by moment.

A major step goes through the table of the Scenario API: operations, settle, then the simulation
controllers one loop at a time, each write followed by a settle, until all have nothing left to do.
Every change of phase is stored, and so visible to a watch, before its work starts.

`playing` turns; `beginning`, `major_steps`, `operating`, `rest`, `passing_time` and `endings` are
what is done then; `gate` has the last word before a write and moves the minor step. `play` is what
they share: `script` (what the author wants), `participants`, `telling` (the status), `tasks`.
"""

from kubescene.scenario.engine.playing import Engine, EngineMoment

__all__ = ["Engine", "EngineMoment"]
