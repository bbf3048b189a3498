"""The event loop's lag: how late it wakes a timer, which is how late it would read a token."""

import asyncio
from collections.abc import Callable

from gateway.core.clock import monotonic
from gateway.core.ports import Clock

EVERY_S = 0.5


async def watch_loop_lag(observe: Callable[[float], None], every_s: float = EVERY_S, clock: Clock = monotonic) -> None:
    """Observes the lag in seconds for ever; ends by being cancelled."""
    while True:
        due = clock() + every_s
        await asyncio.sleep(every_s)
        observe(max(0.0, clock() - due))
