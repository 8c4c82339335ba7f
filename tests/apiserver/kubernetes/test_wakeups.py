"""Waking streams: nothing may be missed between looking for work and going to sleep."""

import asyncio

from kubescene.apiserver.kubernetes.wakeups import Sleeper, Wakeups


async def woken(sleeper: Sleeper) -> bool:
    """Whether a sleep ends by itself rather than by its time."""
    sleeping = asyncio.ensure_future(sleeper.sleep(3600))
    for _ in range(5):
        await asyncio.sleep(0)
    done = sleeping.done()
    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)
    return done


def test_a_mark_wakes_the_sleeper() -> None:
    async def play() -> bool:
        sleeper = Sleeper(Wakeups(asyncio.get_running_loop()))
        asyncio.get_running_loop().call_soon(sleeper.mark)
        return await woken(sleeper)

    assert asyncio.run(play())


def test_a_mark_while_busy_elsewhere_is_not_lost() -> None:
    async def play() -> list[bool]:
        sleeper = Sleeper(Wakeups(asyncio.get_running_loop()))
        sleeper.mark()
        # The coroutine waits for its client to read; meanwhile the mark is delivered.
        for _ in range(3):
            await asyncio.sleep(0)
        return [await woken(sleeper), await woken(sleeper)]

    assert asyncio.run(play()) == [True, False]


def test_nobody_wakes_without_a_mark() -> None:
    async def play() -> bool:
        return await woken(Sleeper(Wakeups(asyncio.get_running_loop())))

    assert not asyncio.run(play())
