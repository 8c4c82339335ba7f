"""What components say about a run while it goes on, and who may listen.

The lowest floor of telling: everybody from the registry to the scheduler needs this and nothing of
the timeline, which is one of the listeners. `hooks` has `Instruments` and `Instrument`; `attempts`
is what a scheduler reports of one attempt, in `score_columns` and `stretches` of nodes.
"""

from kubescene.instruments.hooks import Instrument, Instruments, ObjectWrite, StepPhaseChange

__all__ = ["Instrument", "Instruments", "ObjectWrite", "StepPhaseChange"]
