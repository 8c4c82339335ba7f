"""What is still to be done lies on a stack of tasks, bound methods with their data.

A task does one bounded piece of work (one object created, one round of a settle, one loop of a
controller) and may put others on the stack. So playing can be interrupted between any two of them,
and a scenario in the middle of its play is a value that can be copied.
"""

from collections.abc import Callable
from typing import Any

Task = tuple[Callable[..., None], tuple[Any, ...]]


class Tasks(list[Task]):
    """The stack: the last task put there is the first to be done."""

    waits = False
    """Whether the task that was done last found that it is another program's turn."""

    def then(self, task: Callable[..., None], *arguments: Any) -> None:
        self.append((task, arguments))
