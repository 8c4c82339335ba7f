"""``KubeSchedulerConfiguration`` v1: from what people write to what a scheduler is made with.

`read_configuration` does it for an object, `load_configuration` for a file. `schema` has the
fields, `decoding` is strict about them, `defaulting` fills in what is open and merges plugin sets,
`checks` finds what is wrong, `expansion` works out which plugin runs where, and `reading` puts the
result together.

Loaded with the first name that somebody asks for: whoever may have no configuration to read imports
the package and asks when there is one.
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.scheduler.configuration.reading import (
        check_configuration,
        describe,
        load_configuration,
        parse_configuration,
        read_configuration,
    )

__all__ = [
    "check_configuration",
    "describe",
    "load_configuration",
    "parse_configuration",
    "read_configuration",
]

_HOMES = {
    "check_configuration": "reading",
    "describe": "reading",
    "load_configuration": "reading",
    "parse_configuration": "reading",
    "read_configuration": "reading",
}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
