"""Struct types that are decoded by more than one thread are looked at before any thread does.

msgspec learns the fields of a struct type when it is first decoded into, and shows what it has
learnt so far to other threads meanwhile: two that begin at once with the same type may end the
process (seen with msgspec 0.22). So a module that somebody may import and use in a thread says
`build` for its types at its own end, where the lock of its import keeps others away; and a server
says `build_all` before it listens.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def build(*types: type) -> None:
    """Let msgspec look at these types, and at those that they are made of."""
    for each in types:
        msgspec.json.Decoder(each)


def build_all() -> None:
    """The same for every struct type of ours that is defined so far."""
    for each in _below(msgspec.Struct):
        if each.__module__.partition(".")[0] == "kubescene":
            # Some are never decoded into, and could not be.
            with suppress(TypeError, NameError):
                build(each)


def _below(kind: type) -> Iterator[type]:
    subclasses: list[type] = kind.__subclasses__()
    for each in subclasses:
        yield each
        yield from _below(each)
