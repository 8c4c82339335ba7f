"""Measures of one's own: functions of a run.

    def surge(run: RunSource) -> float | None:
        \"\"\"Most pods that came in one step.\"\"\"
        return max((step.pods_created for step in run.tables()["steps"]), default=None)

The name of the function is that of the measure, the first line of its docstring its meaning, and an
attribute ``unit`` its unit. None is no value. They are named as ``module:function``, or by the name
under which a package offers one (entry points ``kubescene.measures``), and only those that are
named are used.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.installed import offered
from kubescene.results.measures.measure import Value
from kubescene.results.sources import RunSource

ENTRY_POINTS = "kubescene.measures"
HOW = "write it as module:function"

OwnFunction: TypeAlias = Callable[[RunSource], Value]


class OwnMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A function that was checked, with what is told of it."""

    name: str
    meaning: str
    unit: str
    of: OwnFunction

    def value(self, run: RunSource) -> Value:
        """Its value; `ConfigurationError` if it raises, or gives what is no number."""
        try:
            found = self.of(run)
        except Exception as error:
            # Whatever the author's function does: it must be known whose fault it is.
            why = f"{type(error).__name__}: {error}"
            raise ConfigurationError(f"measure {self.name} raised {why}") from error
        if found is not None and not _is_number(found):
            raise ConfigurationError(
                f"measure {self.name} gave {found!r}: a measure is a finite number, or None where "
                "there is nothing to measure"
            )
        return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def own_measures(functions: Iterable[OwnFunction], taken: Sequence[str]) -> list[OwnMeasure]:
    """Functions as measures; ``taken`` are the names that there are already."""
    found: list[OwnMeasure] = []
    for each in functions:
        measure = own_measure(each)
        if measure.name in (*taken, *(other.name for other in found)):
            raise ConfigurationError(f"there is a measure {measure.name} already: rename yours")
        found.append(measure)
    return found


def own_measure(function: OwnFunction) -> OwnMeasure:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ConfigurationError(f"{function!r} is no function with a name: it cannot be a measure")
    told = (getattr(function, "__doc__", None) or "").strip().splitlines()
    meaning = told[0] if told else f"{function.__module__}:{name}"
    return OwnMeasure(
        name=name, meaning=meaning, unit=str(getattr(function, "unit", "")), of=function
    )


def is_reference(name: str) -> bool:
    """Whether a name is that of a function, rather than of a measure that there is already."""
    return ":" in name or bool(offered(ENTRY_POINTS, name))


def load_measure(reference: str) -> OwnFunction:
    """The function that ``module:function``, or the name of an entry point, stands for."""
    installed = [] if ":" in reference else offered(ENTRY_POINTS, reference)
    value = installed[0].value if installed else reference
    module_name, _, name = value.partition(":")
    if not module_name or not name:
        known = ", ".join(point.name for point in offered(ENTRY_POINTS)) or "none"
        raise ConfigurationError(f"measure {reference!r}: {HOW}; installed are: {known}")
    try:
        found = getattr(import_module(module_name), name, None)
    except Exception as error:
        # Whatever the author's module does when it is imported.
        why = str(error) if isinstance(error, ImportError) else repr(error)
        raise ConfigurationError(f"measure {reference!r} cannot be imported: {why}") from error
    if not callable(found):
        raise ConfigurationError(f"measure {reference!r}: {module_name} has no function {name}")
    checked: OwnFunction = found
    own_measure(checked)
    return checked
