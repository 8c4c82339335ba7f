"""Expectations over the result of a run, in CEL (``spec.expectations``).

`faults_of` says before a run what is wrong with them, `ResultEvaluation` at its end what came of
them. What an expression may speak of is in `variables`. The expression language is imported here,
so nobody imports this package who expects nothing.
"""

from kubescene.results.expectations.compiling import faults_of
from kubescene.results.expectations.evaluation import ResultEvaluation

__all__ = ["ResultEvaluation", "faults_of"]
