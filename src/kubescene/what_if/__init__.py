"""What if: questions to a cluster as it was, each answered in a copy of it.

::

    asking      `WhatIf`: a snapshot restored and settled once, and a method for each question
    answers     what an `Answer` holds: what is not known, a sentence, tables, measures
    worlds      what questions ask of a world: who waits, who is ready, what is asked of a node
    selecting   which nodes are meant: ``zone=a``, ``pool=general``, ``node=n1``
    draining    nodes emptied as kubectl does it, while virtual time passes
    used, sizes   what containers used, and what they should ask for
    costs       what nodes cost, if a price list says it
    descheduling  which pods the descheduler's policies choose
    losing, shrinking, upgrading, balancing, autoscaling, rightsizing, placing, repacking, fitting,
    changing: the questions
    pages       an answer as a page

Nothing is ever written to the cluster that a snapshot was taken of. The same snapshot, question and
seed give the same bytes.
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.what_if.answers import Answer
    from kubescene.what_if.asking import WhatIf

__all__ = ["Answer", "WhatIf"]

_HOMES = {"Answer": "answers", "WhatIf": "asking"}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
