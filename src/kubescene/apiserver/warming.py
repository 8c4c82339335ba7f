"""What the first traffic run would wait for is loaded while nobody asks for anything.

A server starts without what simulates traffic, and many never need it. Once a second has passed
without a request it is loaded, in a thread that touches nothing of the world that is served.
"""

import asyncio
from collections.abc import Callable
from threading import Thread

QUIET_S = 1.0


class Warming:
    """``requests`` says how many there were so far."""

    def __init__(self, load: Callable[[], None], requests: Callable[[], int]) -> None:
        self._load = load
        self._requests = requests
        self._seen = -1
        self._thread: Thread | None = None

    def watch(self) -> None:
        """Look every second, on the running loop, until there was no request since the last one."""
        before, self._seen = self._seen, self._requests()
        if before != self._seen:
            asyncio.get_running_loop().call_later(QUIET_S, self.watch)
            return
        self._thread = Thread(target=self._load, name="kubescene-warming")
        self._thread.start()

    def join(self) -> None:
        """Returns when the thread is gone; the loop must have ended before."""
        if self._thread is not None:
            self._thread.join()
