"""What a plugin answers: a code and its reasons. "No" is a value, never an exception.

Codes and their numbers are those of the scheduling framework, since users compare them. [S-1, S-2]
"""

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    """``UNRESOLVABLE``: removing pods from the node would not help, so preemption skips it."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def is_rejection(self) -> bool:
        return self in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


_OK = Code.SUCCESS


@dataclass(frozen=True, slots=True)
class Status:
    """Immutable; the runtime stamps ``plugin``, plugins leave it empty."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        return self.code is _OK

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same answer with the name of the plugin that gave it."""
        return self if self.plugin else Status(self.code, self.reasons, plugin)

    @classmethod
    def unschedulable(cls, *reasons: str) -> "Status":
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> "Status":
        return cls(Code.UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, message: str) -> "Status":
        return cls(Code.ERROR, (message,))


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
