"""What can go wrong with an expression: it cannot be compiled, or it fails on its input."""

from kubescene.errors import KubesceneError


class CelError(KubesceneError):
    """An expression that does not work."""


class CompileError(CelError):
    """The text is no expression, or one that cannot have a meaning; says where.

    ``unknown`` is the name or field that nobody has declared, ``known`` those that were.
    """

    def __init__(
        self,
        problem: str,
        source: str,
        offset: int,
        *,
        unknown: str = "",
        known: tuple[str, ...] = (),
    ) -> None:
        self.problem = problem
        self.offset = offset
        self.unknown = unknown
        self.known = known
        super().__init__(_located(problem, source, offset))


class EvaluationError(CelError):
    """The expression has no value for this input. The message is the one that cel-go gives."""


class CostExceededError(EvaluationError):
    """The expression does more work than it may. Nothing in the expression can absorb this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    """An operator or function was given values that it is not made for."""
    return EvaluationError("no such overload")


def _located(problem: str, source: str, offset: int) -> str:
    """The problem with the line it is in and a mark below the place."""
    line = source.count("\n", 0, offset)
    start = source.rfind("\n", 0, offset) + 1
    text = source.splitlines()[line] if source.splitlines()[line:] else ""
    column = offset - start
    dots = "".join("." if each.isascii() else "．" for each in text[:column])
    arrow = "^" if text[column : column + 1].isascii() else "＾"
    mark = f" | {text}\n | {dots:.<{column}}{arrow}"
    return f"ERROR: <input>:{line + 1}:{column + 1}: {problem}\n{mark}"
