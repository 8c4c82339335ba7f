"""Servers of tests end in the background: an orderly end takes as long as many a test."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

from kubescene.apiserver.server import Server

Retire: TypeAlias = Callable[[Server], None]


@contextmanager
def retiring() -> Iterator[Retire]:
    """Stops servers; at the end, all have stopped."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        stopping: list[Future[None]] = []
        yield lambda server: stopping.append(pool.submit(server.stop))
        for each in stopping:
            each.result()
