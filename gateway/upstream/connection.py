"""One upstream connection on an asyncio protocol: writes a request, parses the answer, stamps every read."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError

MAX_HEAD = 64 * 1024
# Reading from the socket stops while this much waits for the client, and goes on below the second figure.
HIGH_WATER = 128 * 1024
LOW_WATER = 32 * 1024
# Copying more than this to the kernel takes time of its own.
LARGE_REQUEST = 64 * 1024


class Connection(asyncio.Protocol):
    """Serves one exchange at a time: `begin`, then `head` and `read`, then `finish` (back to its pool) or `abort`.

    `on_event`, where set, is called when the answer is complete or the connection is lost.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self.lost = False
        self.on_event: Callable[[], None] | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: deque[tuple[bytes, float]] = deque()
        self._parts: list[bytes] = []
        self._waiting_bytes = 0
        self._paused = False
        self._head_bytes = 0
        self._answering = False
        self._surplus = False
        self._keeps_alive = False
        self.active = False
        self.error: AttemptError | None = None
        self.complete = False
        self.headers: list[tuple[bytes, bytes]] = []
        self.status = 0
        self.headers_at: float | None = None
        self.ended_at = 0.0
        self.sent = 0.0
        self._stamp = 0.0
        self._framed = False

    # --- for the exchange ---

    def begin(self, request: bytes) -> None:
        """Starts an exchange by writing the whole request. `sent` moves on until its last byte left the buffer."""
        assert self.transport is not None
        self._reset()
        self.active = True
        # Before the write, which takes microseconds: whom it wakes may run first, on a busy machine for milliseconds.
        self.sent = monotonic()
        self.transport.write(request)
        if len(request) > LARGE_REQUEST:
            self.sent = monotonic()

    @property
    def answered(self) -> bool:
        """Whether any byte of the answer has arrived."""
        return self._answering

    @property
    def reusable(self) -> bool:
        """Whether the answer ended cleanly and another request may follow."""
        return self.complete and self._keeps_alive and not (self.lost or self._surplus or self.error)

    async def head(self, until: float) -> bool:
        """Waits for the response head; False when `until` passed."""
        while self.headers_at is None or (self.error is not None and not self._chunks):
            if self.error is not None:
                raise self.error
            if not await self._wait(until):
                return False
        return True

    async def read(self, until: float) -> tuple[bytes, float] | None:
        """The next body bytes with their moment; b"" at the end; None when `until` passed."""
        while not self._chunks:
            if self.error is not None:
                raise self.error
            if self.complete:
                return b"", self.ended_at
            if not await self._wait(until):
                return None
        chunk = self._chunks.popleft()
        self._waiting_bytes -= len(chunk[0])
        if self._paused and self._waiting_bytes < LOW_WATER and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return chunk

    def abort(self) -> None:
        """Closes the socket at once."""
        self._cancel_timer()
        if self.transport is not None and not self.lost:
            self.transport.abort()

    def finish(self) -> None:
        """The exchange is over and the connection goes back to the pool."""
        self.active = False
        self._cancel_timer()

    # --- waiting: one timer per connection, moved lazily, instead of one per read ---

    async def _wait(self, until: float) -> bool:
        now = monotonic()
        if until <= now:
            return False
        self._until = until
        if self._timer is None or self._timer_at > until:
            self._arm(now)
        self._waiter = self._loop.create_future()
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def _arm(self, now: float) -> None:
        self._cancel_timer()
        self._timer_at = self._until
        # Nothing is waited for longer than a day; infinity is no legal delay.
        self._timer = self._loop.call_later(min(self._until - now, 86_400.0), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        now = monotonic()
        if now >= self._until - 0.001:
            self._waiter.set_result(False)
        else:
            self._arm(now)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    def _fail(self, error: AttemptError) -> None:
        if self.error is None and not self.complete:
            self.error = error
        self._wake()

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio.Transport.
        self.transport = cast(asyncio.Transport, transport)
        # At 0 `resume_writing` tells when the last byte of the request was handed to the kernel: that is t0.
        self.transport.set_write_buffer_limits(high=0)

    def resume_writing(self) -> None:
        if self.active and self.headers_at is None:
            self.sent = monotonic()

    def data_received(self, data: bytes) -> None:
        self._stamp = monotonic()
        if not self.active or self.complete:
            # Bytes nobody asked for: whatever they are, they must not be read as the next request's answer.
            self._surplus = True
            self.abort()
            return
        self._answering = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._surplus = True
            self._deliver()
            self._fail(AttemptError("malformed", "sent an answer that is not HTTP"))
            self.abort()
            return
        if self.headers_at is None:
            self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD:
            self._fail(AttemptError("malformed", "sent a response head over 64 KB"))
            self.abort()
            return
        self._deliver()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._cancel_timer()
        if self.on_event is not None:
            self.on_event()
        if not self.active or self.complete:
            return
        if self.headers_at is not None and not self._framed and exc is None:
            self._stamp = monotonic()
            self._end()  # a body without length ends with its connection
        else:
            self._fail(AttemptError("cut"))
        self._wake()

    # --- httptools callbacks ---

    def on_message_begin(self) -> None:
        if self.complete:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        self.status = self._parser.get_status_code()
        if self.status < 100:
            raise ValueError("no status of HTTP")  # ends the parsing: its body must not be read as the real answer's
        if self.status < 200:
            self.headers.clear()  # 100 Continue and its kind announce the real answer
            return
        self._framed = any(
            name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower())
            for name, value in self.headers
        )
        self.headers_at = self._stamp

    def on_body(self, body: bytes) -> None:
        if not self.complete:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self.headers_at is not None and not self.complete:
            # Asked here: the parser forgets it as soon as this callback returns.
            self._keeps_alive = self._framed and bool(self._parser.should_keep_alive())
            self._end()

    def _end(self) -> None:
        self._deliver()
        self.complete = True
        self.ended_at = self._stamp
        if self.on_event is not None:
            self.on_event()

    def _deliver(self) -> None:
        """Hands the body bytes of this read over as one piece: all its events share one moment."""
        if self._parts:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts = []
            self._chunks.append((body, self._stamp))
            self._waiting_bytes += len(body)
            if self._waiting_bytes > HIGH_WATER and not self._paused and self.transport is not None and not self.lost:
                self._paused = True
                self.transport.pause_reading()
        self._wake()
