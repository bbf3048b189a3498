"""One request and its answer on a pooled connection."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.types import Timeouts
from gateway.upstream.connection import Connection
from gateway.upstream.pool import Pool

# After a terminal marker the rest of the answer (a few bytes of chunk framing) is awaited this long for reuse.
DRAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """What an exchange saw of its connection, which serves others when it is over."""

    sent: float
    headers_at: float | None
    status: int
    headers: Sequence[tuple[bytes, bytes]]


class HttpExchange:
    """Implements the `Exchange` port. Owns its connection and slot until `release` or `close`."""

    def __init__(self, pool: Pool, connection: Connection, pool_wait_s: float, connect_s: float | None) -> None:
        self._pool = pool
        self._connection = connection
        self._request: bytes | None = None
        self._timeouts = Timeouts()
        self._open = True
        self._seen: _Seen | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.pool_wait_s = pool_wait_s
        self.connect_s = connect_s

    @property
    def _answer(self) -> Connection | _Seen:
        return self._connection if self._seen is None else self._seen

    @property
    def sent(self) -> float:
        return self._answer.sent

    @property
    def headers_at(self) -> float | None:
        return self._answer.headers_at

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        return self._answer.headers

    def send(self, request: bytes, timeouts: Timeouts) -> None:
        """Writes the request. It is kept until the head arrives, for a kept connection may turn out to be dead."""
        self._request, self._timeouts = request, timeouts
        self._connection.begin(request)

    async def head(self, until: float) -> bool:
        try:
            arrived = await self._connection.head(until)
        except AttemptError:
            if not self._stale:
                raise
            await self._replace()
            arrived = await self._connection.head(until)
        if arrived:
            self._request = None
        return arrived

    @property
    def _stale(self) -> bool:
        """A kept connection died before any byte of an answer: its server had closed it while it was idle."""
        return self.connect_s is None and self._connection.lost and not self._connection.answered

    async def _replace(self) -> None:
        """Sends the request again on a new connection: the server cannot have begun to answer on the dead one."""
        assert self._request is not None
        began = monotonic()
        self._pool.put_back(self._connection)
        self._connection = await self._pool.dial(self._timeouts)
        self.connect_s = monotonic() - began
        self._connection.begin(self._request)

    async def read(self, until: float) -> tuple[bytes, float] | None:
        return await self._connection.read(until)

    def release(self) -> None:
        if not self._open:
            return
        self._end()
        if self._connection.complete or self._connection.lost:
            self._hand_back()
            return
        loop = asyncio.get_running_loop()
        self._connection.on_event = self._hand_back
        self._deadline = loop.call_later(DRAIN_S, self._hand_back)

    def close(self) -> None:
        if self._open:
            self._end()
            self._connection.abort()
            self._hand_back()

    def _end(self) -> None:
        self._open = False
        its = self._connection
        self._seen = _Seen(its.sent, its.headers_at, its.status, its.headers)

    def _hand_back(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._connection.on_event = None
        self._pool.put_back(self._connection)
        self._pool.give_slot()
