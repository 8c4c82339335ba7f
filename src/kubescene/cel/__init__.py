"""The Common Expression Language, as Kubernetes uses it.

`compile_expression` checks a text once; the `Program` that it gives is immutable and is evaluated
as often as needed, each time within a limit of work, so that nobody's expression can hang a world::

    program = compile_expression("device.driver == 'gpu.example.com'", {"device": DEVICE})
    program.evaluate({"device": {"driver": "gpu.example.com"}})      # True

Standard library, macros, optional values, and the Kubernetes extensions for strings, lists, regular
expressions, quantities, semantic versions, sets, IP addresses, URLs and named formats. Messages
are built from no types but those that patches of admission policies are written with.
"""

from kubescene.cel.errors import CelError, CompileError, CostExceededError, EvaluationError
from kubescene.cel.programs import DEFAULT_COST, Program, compile_expression
from kubescene.cel.types import (
    ANY,
    BOOL,
    DOUBLE,
    DYN,
    INT,
    QUANTITY,
    STRING,
    Type,
    list_of,
    map_of,
    object_of,
)

__all__ = [
    "ANY",
    "BOOL",
    "DEFAULT_COST",
    "DOUBLE",
    "DYN",
    "INT",
    "QUANTITY",
    "STRING",
    "CelError",
    "CompileError",
    "CostExceededError",
    "EvaluationError",
    "Program",
    "Type",
    "compile_expression",
    "list_of",
    "map_of",
    "object_of",
]
