"""Selectors of devices: what they may ask about a device, and whether they can be used at all."""

from functools import lru_cache

from kubescene.bounded import KEPT
from kubescene.cel.errors import CompileError
from kubescene.cel.programs import DEFAULT_COST, Program, compile_expression, worst_cost
from kubescene.cel.sizes import Path
from kubescene.cel.types import ANY, BOOL, QUANTITY, STRING, map_of, object_of

LONGEST_EXPRESSION = 10 * 1024
MOST_ATTRIBUTES = 32
LONGEST_NAME, LONGEST_VALUE, LONGEST_DOMAIN = 32, 64, 63

DEVICE = object_of(
    "kubernetes.DRADevice",
    {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, ANY)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    },
)
TOO_COMPLEX = "too complex, exceeds cost limit"


@lru_cache(maxsize=KEPT)
def compiled(expression: str) -> Program | str:
    """The program of a selector, or why it is none."""
    try:
        program = compile_expression(expression, {"device": DEVICE}, may_mix=False)
    except CompileError as error:
        return f"compilation failed: {error}"
    if program.result == BOOL or program.result.is_open:
        return program
    return f"must evaluate to bool or the unknown type, not {program.result}"


def is_too_complex(program: Program) -> bool:
    """Whether it might do more on some device than a selector may."""
    return worst_cost(program, {"device": DEVICE}, size_at) > DEFAULT_COST


def size_at(path: Path) -> int | None:
    """How large a part of a device can be; None if that is not known."""
    if path[0] != "device":
        return None
    return _SIZES.get(path[1:]) or _SIZES.get(_by_name(path[1:]))


def _by_name(path: Path) -> Path:
    """An attribute that is selected by its name is one of the values."""
    if len(path) == 3 and path[:2] == ("attributes", "@values") and path[2][0] != "@":
        return (*path[:2], "@values")
    return path


_SIZES = {
    ("driver",): LONGEST_DOMAIN,
    ("allowMultipleAllocations",): 1,
    ("attributes",): MOST_ATTRIBUTES,
    ("attributes", "@keys"): LONGEST_DOMAIN,
    ("attributes", "@values"): MOST_ATTRIBUTES,
    ("attributes", "@values", "@keys"): LONGEST_NAME,
    ("attributes", "@values", "@values"): LONGEST_VALUE,
    ("capacity",): MOST_ATTRIBUTES,
    ("capacity", "@keys"): LONGEST_DOMAIN,
    ("capacity", "@values"): MOST_ATTRIBUTES,
    ("capacity", "@values", "@keys"): LONGEST_NAME,
}
