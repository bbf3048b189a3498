"""The moments an attempt may not pass, and the comments that keep a silent stream alive."""

import asyncio
import math
from collections.abc import Awaitable
from typing import TypeVar

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Sink
from gateway.core.types import Call, Timeouts
from gateway.dispatch.answers import STREAM_HEADERS

Opened = TypeVar("Opened")

KEEP_ALIVE = b": keep-alive\n\n"

# What `auto` means while nothing has been learnt of a deployment; a model that thinks may be silent for longer.
AUTO_TTFT_S = 30.0
AUTO_TTFT_REASONING_S = 300.0
AUTO_IDLE_S = 120.0
AUTO_IDLE_REASONING_S = 600.0


class Pulse:
    """Comments to a streaming client while nothing else is sent. `due` is never reached on a plain request."""

    def __init__(self, call: Call, sink: Sink, after_s: float) -> None:
        self._sink = sink
        self._after_s = after_s if call.stream else math.inf
        self._id = call.id
        self.due = call.received + self._after_s

    def put_off(self, now: float) -> None:
        """Something was sent."""
        self.due = now + self._after_s

    async def beat(self) -> None:
        """Sends a comment; the first one opens the answer, without the routing headers, which are not known yet."""
        if not self._sink.started:
            await self._sink.start(200, [*STREAM_HEADERS, (b"x-request-id", self._id.encode())])
        await self._sink.write(KEEP_ALIVE)
        self.put_off(monotonic())


class Deadlines:
    """Until when one attempt waits. Tokens move the limit on; comments and empty deltas do not.

    `overdue`: the whole time was over when a client that does not read took its last piece.
    """

    def __init__(self, call: Call, pulse: Pulse, *, last: bool) -> None:
        limits = call.target.timeouts
        self._idle_s = idle_s(limits, reasoning=call.needs.reasoning)
        self._first_s = first_token_s(limits, reasoning=call.needs.reasoning)
        if last:
            # There is nowhere left to go: a slow first token is better than none.
            self._first_s = max(self._first_s, self._idle_s)
        if not call.stream:
            self._first_s = math.inf
        self._total_at = math.inf if limits.total_s is None else call.started + limits.total_s
        self._token_at = math.inf
        self._took_at = -math.inf
        self.overdue = False
        self._code = "timeout_ttft"
        self._pulse = pulse

    def start(self, sent: float) -> None:
        """The request is out: the wait for the first token begins."""
        self._token_at = sent + self._first_s

    def token(self, at: float) -> None:
        """A token arrived."""
        self._token_at = max(at, self._took_at) + self._idle_s
        self._code = "timeout_idle"

    def took(self, now: float) -> None:
        """The client, which had held us up, took what was sent: the provider's silence is counted from here on."""
        self._took_at = now
        self._token_at = max(self._token_at, now + self._idle_s)
        self.overdue = now >= self._total_at

    async def bound(self, opening: Awaitable[Opened], longest_s: float) -> Opened:
        """Waits for a connection, which may take `longest_s`, no longer than the whole request may take.

        Raises AttemptError `timeout_total`; nothing was sent, so the provider is not to blame.
        """
        left_s = self._total_at - monotonic()
        if longest_s < left_s:
            return await opening  # the usual case costs no timer
        try:
            async with asyncio.timeout(left_s):
                return await opening
        except TimeoutError:
            raise AttemptError("timeout_total", "had no connection for it in time", ours=True) from None

    def until(self) -> float:
        """The next moment at which something has to be done."""
        return min(self._token_at, self._total_at, self._pulse.due)

    async def passed(self, *, may_beat: bool = True) -> None:
        """That moment came. Raises AttemptError `timeout_total`, `timeout_ttft` or `timeout_idle`, else keeps alive."""
        now = monotonic()
        if now >= self._total_at:
            raise AttemptError("timeout_total")
        if now >= self._token_at:
            raise AttemptError(self._code)
        if now >= self._pulse.due:
            if may_beat:
                await self._pulse.beat()
            else:
                self._pulse.put_off(now)


def first_token_s(limits: Timeouts, *, reasoning: bool) -> float:
    """Seconds to the first token."""
    if limits.ttft_s is not None:
        return limits.ttft_s
    return AUTO_TTFT_REASONING_S if reasoning else AUTO_TTFT_S


def idle_s(limits: Timeouts, *, reasoning: bool) -> float:
    """Seconds between tokens."""
    if limits.idle_s is not None:
        return limits.idle_s
    return AUTO_IDLE_REASONING_S if reasoning else AUTO_IDLE_S
