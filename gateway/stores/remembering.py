"""Statistics across restarts: read from the state before serving, written to it every minute and at the end."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from time import perf_counter

from gateway.core.clock import monotonic, wall_offset_s
from gateway.core.ports import Hour, Remembered
from gateway.stores.sqlite import SqliteState

NOTE_EVERY_S = 60.0
# So long the start may wait for statistics: enough for ten deployments that were busy all week. The rest follows while
# it serves, the latest hours first.
START_S = 0.5
# Hours of one deployment that are taken up at once while serving: a millisecond or two of the event loop.
AT_ONCE = 6
_PAUSE_S = 0.005
_SLICE_S = 0.002

log = logging.getLogger("gateway.stores")


class Remembering:
    """Joins a speed book to its `state` on disk."""

    def __init__(self, state: SqliteState, book: Remembered, offset_s: Callable[[], float] = wall_offset_s) -> None:
        self.state = state
        self._book = book
        self._offset_s = offset_s
        self._waiting: deque[Sequence[Hour]] = deque()

    def restore(self, within_s: float = START_S) -> None:
        """Fills the book, or begins to. Reads the disk: to be called in a thread, before anybody else has the book."""
        began = perf_counter()
        hours, learnt = self.state.remembered()
        self._book.restore((), learnt, self._offset_s(), monotonic())
        self._waiting.extend(_portions(hours))
        while self._waiting and perf_counter() - began < within_s:
            self._take_up()
        if hours or learnt:
            log.info("statistics of %d deployments found, taken up in %.2f s", len(learnt), perf_counter() - began)

    async def run(self, every_s: float = NOTE_EVERY_S) -> None:
        """Takes up what the start left, then notes what changes, until it is cancelled. Never long at a time."""
        while self._waiting:
            self._take_up()
            await asyncio.sleep(_PAUSE_S)
        while True:
            await asyncio.sleep(every_s)
            until = perf_counter() + _SLICE_S
            for _ in self._noted():
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + _SLICE_S

    def note(self) -> None:
        """Queues all that has changed."""
        deque(self._noted(), maxlen=0)

    async def close(self) -> None:
        """Notes the last changes and closes the state, for at most five seconds."""
        self.note()
        await asyncio.to_thread(self.state.close)

    def _take_up(self) -> None:
        self._book.restore(self._waiting.popleft(), {}, self._offset_s(), monotonic())

    def _noted(self) -> Iterator[None]:
        """One step for each hour."""
        now, offset_s = monotonic(), self._offset_s()
        self.state.keep((), self._book.learnt(offset_s, now))
        for hour in self._book.changed_hours(offset_s, now):
            self.state.keep((hour,), {})
            yield


def _portions(hours: Sequence[Hour]) -> Sequence[Sequence[Hour]]:
    """Hours of one deployment together, the latest first."""
    portions: list[Sequence[Hour]] = []
    ordered = sorted(hours, key=lambda entry: (entry.deployment_id, -entry.hour))
    for _, group in groupby(ordered, key=lambda entry: entry.deployment_id):
        own = tuple(group)
        portions.extend(own[at : at + AT_ONCE] for at in range(0, len(own), AT_ONCE))
    return sorted(portions, key=lambda portion: -portion[0].hour)
