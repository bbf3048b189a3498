"""Statistics across restarts: read from the state before serving, written to it every minute and at the end."""

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter

from gateway.core.clock import monotonic, wall_offset_s
from gateway.core.ports import Remembered
from gateway.stores.sqlite import SqliteState

NOTE_EVERY_S = 60.0

log = logging.getLogger("gateway.stores")


class Remembering:
    """Joins a speed book to a state database."""

    def __init__(self, state: SqliteState, book: Remembered, offset_s: Callable[[], float] = wall_offset_s) -> None:
        self._state = state
        self._book = book
        self._offset_s = offset_s

    def restore(self) -> None:
        """Fills the book. Reads the disk: to be called in a thread, and before anybody else has the book."""
        began = perf_counter()
        hours, learnt = self._state.remembered()
        self._book.restore(hours, learnt, self._offset_s(), monotonic())
        if hours or learnt:
            took_s = perf_counter() - began
            log.info("statistics of %d deployments (%d hours) restored in %.2f s", len(learnt), len(hours), took_s)

    def note(self) -> None:
        """Queues what has changed."""
        now, offset_s = monotonic(), self._offset_s()
        self._state.keep(self._book.changed_hours(offset_s, now), self._book.learnt(offset_s, now))

    async def run(self, every_s: float = NOTE_EVERY_S) -> None:
        """Notes until it is cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.note()
