"""Calls to extenders from other threads: the one that owns the world goes on meanwhile.

So an extender may call back into our API before it answers.
"""

from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from kubescene.scheduler.extenders.extenders import ExtenderAnswer, ExtenderCaller, PendingCall

THREADS = 16


class BackgroundCaller:
    """Hands calls to another caller, on threads of its own."""

    def __init__(self, caller: ExtenderCaller) -> None:
        self.caller = caller
        self._calls: SimpleQueue[PendingCall] = SimpleQueue()
        self._threads: list[Thread] = []
        self._waiting = 0
        self._lock = Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> "BackgroundCaller":
        return self

    def call(self, pending: PendingCall) -> None:
        with self._lock:
            self._waiting += 1
            if self._waiting > len(self._threads) and len(self._threads) < THREADS:
                thread = Thread(target=self._work, name="kubescene-extender", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._calls.put(pending)

    def _work(self) -> None:
        while True:
            pending = self._calls.get()
            try:
                self.caller.call(pending)
            except Exception as error:
                # A cycle waits for this answer: it must not wait for ever.
                pending.answer(ExtenderAnswer(error=f"{type(error).__name__}: {error}"))
            finally:
                with self._lock:
                    self._waiting -= 1


def in_background(caller: ExtenderCaller | None) -> BackgroundCaller:
    """A caller for a world in which others wait for the same thread."""
    return caller if isinstance(caller, BackgroundCaller) else BackgroundCaller(caller or _http())


def at_once(caller: ExtenderCaller | None) -> ExtenderCaller | None:
    """A caller for a run that goes on when an extender has answered, and not before."""
    return caller.caller if isinstance(caller, BackgroundCaller) else caller


def _http() -> ExtenderCaller:
    # HTTP is imported only where there are extenders.
    from kubescene.scheduler.extenders.http import HttpExtenderCaller

    return HttpExtenderCaller()
