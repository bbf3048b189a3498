"""The event loop's lag."""

import asyncio
import contextlib
from itertools import chain, repeat

from gateway.telemetry.loop_lag import watch_loop_lag


def test_a_timer_that_wakes_late_is_observed_as_lag_and_one_in_time_as_none() -> None:
    moments = chain([0.0, 0.7], repeat(1.0))
    observed: list[float] = []

    async def run() -> None:
        enough = asyncio.Event()

        def observe(seconds: float) -> None:
            observed.append(seconds)
            if len(observed) == 2:
                enough.set()
                task.cancel()

        task = asyncio.create_task(watch_loop_lag(observe, every_s=0.0, clock=lambda: next(moments)))
        await enough.wait()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert observed == [0.7, 0.0]
