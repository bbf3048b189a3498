"""What really happened at a simulated provider: counters, requests seen, and the exact times of every stream."""

import asyncio
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.core.types import Json

KEPT_REQUESTS = 100
KEPT_STREAMS = 1000
# Chunk times cost memory by the token, so only the latest streams keep them.
KEPT_TRACES = 100


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """One request as it arrived, header values cut at 1,000 characters. `body` None: not JSON, or too large to keep."""

    number: int
    at: float
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    size: int
    body: Json | None

    def header(self, name: str) -> str | None:
        """The first header of this name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass(slots=True)
class StreamTruth:
    """One chat answer. Moments are monotonic seconds, taken right before the write.

    `prompt_tokens`: as its usage says; prompts of different lengths tell streams apart in what others recorded.
    `ending`: None while it runs; `done`, `close`, `reset` (by script), `aborted` (the client left),
    `killed` (stop or outage).
    `due`, `sent`, `counts`: of every write that bears tokens, its planned moment, its real moment and its tokens;
    `traced` false: no longer kept.
    """

    number: int
    model: str
    stream: bool
    faults: tuple[str, ...]
    request_read: float
    output_tokens: int
    prompt_tokens: int
    first_token: float | None = None
    last_token: float | None = None
    tokens: int = 0
    ended: float | None = None
    ending: str | None = None
    traced: bool = True
    due: "array[float]" = field(default_factory=lambda: array("d"))
    sent: "array[float]" = field(default_factory=lambda: array("d"))
    counts: "array[int]" = field(default_factory=lambda: array("L"))

    def wrote(self, due_s: float, now: float, tokens: int) -> None:
        """A write with tokens is about to happen."""
        if self.first_token is None:
            self.first_token = now
        self.last_token = now
        self.tokens += tokens
        if self.traced:
            self.due.append(self.request_read + due_s)
            self.sent.append(now)
            self.counts.append(tokens)

    def forget_trace(self) -> None:
        """Drops the chunk times; the rest stays."""
        self.traced = False
        self.due, self.sent, self.counts = array("d"), array("d"), array("L")


class Stats:
    """Live counters of one provider. `requests` counts all but `/sim`, `streams_open` every chat answer in progress."""

    def __init__(self) -> None:
        self.connections_open = 0
        self.streams_open = 0
        self._waiters: list[tuple[Callable[[Stats], bool], asyncio.Future[None]]] = []
        self.reset()

    def reset(self) -> None:
        """All counters and rings to zero; what is open now stays counted as open."""
        self.connections_total = self.connections_open
        self.requests = 0
        self.aborted = 0
        self.tokens_sent = 0
        self.streams_peak = self.streams_open
        self.seen: deque[RequestSeen] = deque(maxlen=KEPT_REQUESTS)
        self.streams: deque[StreamTruth] = deque(maxlen=KEPT_STREAMS)

    def connected(self) -> None:
        """A connection was accepted."""
        self.connections_open += 1
        self.connections_total += 1
        self.changed()

    def disconnected(self) -> None:
        """A connection is gone."""
        self.connections_open -= 1
        self.changed()

    def request(self, seen: RequestSeen) -> None:
        """A whole request was read."""
        self.seen.append(seen)
        self.changed()

    def began(self, stream: StreamTruth) -> None:
        """An answer begins."""
        self.streams_open += 1
        self.streams_peak = max(self.streams_peak, self.streams_open)
        self.streams.append(stream)
        if len(self.streams) > KEPT_TRACES:
            self.streams[-KEPT_TRACES - 1].forget_trace()
        self.changed()

    def ended(self, stream: StreamTruth, ending: str, now: float) -> None:
        """An answer is over."""
        self.streams_open -= 1
        self.aborted += ending == "aborted"
        stream.ending = ending
        stream.ended = now
        self.changed()

    def changed(self) -> None:
        """Wakes those who wait for a condition that now holds."""
        if not self._waiters:
            return
        for condition, future in self._waiters:
            if not future.done() and condition(self):
                future.set_result(None)

    async def until(self, condition: Callable[["Stats"], bool], timeout_s: float = 5.0) -> None:
        """Returns once `condition(stats)` holds; TimeoutError after `timeout_s`. Never polls."""
        if condition(self):
            return
        waiter = (condition, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await asyncio.wait_for(waiter[1], timeout_s)
        finally:
            self._waiters.remove(waiter)
