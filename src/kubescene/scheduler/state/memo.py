"""What is made of a pod's class, its signature or the like is made once.

What depends on nothing else belongs to the object that it is made of (`Shared`), what also depends
on a plugin's arguments or on the nodes to whoever makes it (`Memo`).
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from kubescene.bounded import BoundedDict
from kubescene.scheduler.state.row_policy import POLICY

T = TypeVar("T")
K = TypeVar("K")


class Shared:
    """Immutable, so that copies of a world may share it; only what is compiled from it is added.

    What is compiled must depend on nothing else and is shared as well.
    """

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: dict[Any, Any] = {}

    def compiled(self, compile_it: Callable[[Self], T]) -> T:
        """What a plain function makes of this object, made once.

        A function that also depends on a plugin's arguments, or on the nodes, is a method of that
        plugin and its results belong to the plugin: see `Memo`.
        """
        try:
            found: T = self._compiled[compile_it]
        except KeyError:
            if getattr(compile_it, "__self__", None) is not None:
                raise TypeError(
                    f"{compile_it!r} is bound to an object: keep what it makes in a Memo of that "
                    "object, since pods are shared by profiles and by copies of a world"
                ) from None
            found = self._compiled[compile_it] = compile_it(self)
        return found

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Memo(Generic[K, T]):
    """What one object makes of each class, signature or the like: made once, kept for a while.

    It belongs to a plugin, so that two profiles with different arguments, and two copies of a
    world, keep theirs apart::

        self._verdicts = Memo(self._judge)          # in __init__
        self._verdicts[pod.pod_class]               # in Filter
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[K], T], kept: int = POLICY.classes_kept) -> None:
        self._make = make
        self._known: BoundedDict[K, T] = BoundedDict(kept)

    def __getitem__(self, key: K) -> T:
        try:
            return self._known[key]
        except KeyError:
            found = self._known[key] = self._make(key)
            return found

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        self._known.clear()
