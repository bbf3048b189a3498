"""Plays one timeline onto a transport with a single timer, on an absolute schedule."""

import asyncio
from collections.abc import Callable

from gateway.core.clock import monotonic
from gateway.simulator.timeline import Ending, Step, Timeline
from gateway.simulator.truth import Stats, StreamTruth

# Event loops wake up to half a millisecond early (their timers count whole ones); waking again is not worth it.
_EARLY_S = 0.0005
# Steps per wake, so that a stream far behind does not starve the others.
_BATCH = 256


class Playback:
    """Every step is written when it is due, late ones together. `ended` is called once, unless stopped before."""

    __slots__ = (
        "_ended",
        "_ending",
        "_held",
        "_loop",
        "_started",
        "_stats",
        "_step",
        "_timeline",
        "_timer",
        "_transport",
        "_truth",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        timeline: Timeline,
        truth: StreamTruth | None,
        stats: Stats,
        started: float,
        ended: Callable[[Ending], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._timeline = timeline
        self._truth = truth
        self._stats = stats
        self._started = started
        self._ended = ended
        self._ending: Ending | None = None
        self._held = False
        self._timer: asyncio.Handle | None = None
        self._step: Step | None = None

    def start(self) -> None:
        """Begins; what is due at once is written before this returns."""
        self._step = self._pull()
        self._wake()

    def hold(self) -> None:
        """The client does not read: write nothing. The schedule goes on, as a model does."""
        self._held = True
        self._disarm()

    def resume(self) -> None:
        """Writing is possible again; what fell due meanwhile goes out at once."""
        self._held = False
        if self._ending is None and self._timer is None:
            self._wake()

    def stop(self, ending: str) -> None:
        """Ends it from outside: nothing more is written."""
        self._disarm()
        self._timeline.close()
        if self._truth is not None and self._truth.ended is None:
            self._stats.ended(self._truth, ending, monotonic())

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pull(self) -> Step | None:
        try:
            return next(self._timeline)
        except StopIteration as stop:
            self._ending = stop.value
            return None

    def _wake(self) -> None:
        self._timer = None
        now = monotonic()
        horizon = now - self._started + _EARLY_S
        parts: list[bytes] = []
        step, truth = self._step, self._truth
        while step is not None and step[0] <= horizon and len(parts) < _BATCH:
            at, chunk, tokens = step
            parts.append(chunk)
            if tokens and truth is not None:
                truth.wrote(at, now, tokens)
                self._stats.tokens_sent += tokens
            step = self._pull()
        self._step = step
        if parts:
            self._transport.write(b"".join(parts) if len(parts) > 1 else parts[0])
            self._stats.changed()
        if step is None:
            self._finish(now)
        elif not self._held and self._timer is None:
            self._timer = self._loop.call_at(self._started + step[0], self._wake)

    def _finish(self, now: float) -> None:
        ending = self._ending
        assert ending is not None
        if ending is Ending.SILENT:
            return
        if self._truth is not None:
            self._stats.ended(self._truth, ending.value, now)
        self._ended(ending)
