"""The connections to one provider: kept alive, bounded, first come first served."""

import asyncio
import ssl
from collections import deque
from dataclasses import replace

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.types import Provider, Timeouts
from gateway.upstream.connection import Connection
from gateway.upstream.dialing import Origin, dial, origin, tls_context

# Servers close idle connections after 5 to 75 s; a shorter life here avoids most races with their close.
IDLE_S = 45.0
MAX_IDLE = 200


class Pool:
    """At most `limit` connections in use. A slot is a right to use one connection, kept or new."""

    def __init__(self, provider: Provider, limit: int) -> None:
        self.origin: Origin = origin(provider)
        self._context: ssl.SSLContext | None = tls_context(provider) if self.origin.tls else None
        self._connect_s = provider.connect_s
        self._limit = limit
        self._in_use: set[Connection] = set()
        self._slots = 0
        self._idle: list[tuple[Connection, float]] = []
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def take_slot(self, limit_s: float) -> float:
        """Waits for the right to use a connection; seconds waited. Raises AttemptError `overloaded` after `limit_s`."""
        if self._slots < self._limit and not self._waiters:
            self._slots += 1
            return 0.0
        began = monotonic()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(limit_s):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self.give_slot()  # it was handed over in the same moment
            elif waiter in self._waiters:  # `give_slot` may have come upon it before we did
                self._waiters.remove(waiter)
            if isinstance(error, TimeoutError):
                detail = f"has all {self._limit} connections of its max_parallel in use"
                raise AttemptError("overloaded", detail, ours=True) from None
            raise
        return monotonic() - began

    def give_slot(self) -> None:
        """Hands the slot to the longest waiter, or frees it."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._slots -= 1

    def kept(self) -> Connection | None:
        """An idle connection that still lives, the latest used first."""
        now = monotonic()
        while self._idle:
            connection, since = self._idle.pop()
            if connection.lost:
                continue
            if now - since < IDLE_S:
                self._in_use.add(connection)
                return connection
            connection.abort()
        return None

    async def dial(self, timeouts: Timeouts) -> Connection:
        """A new connection; the caller holds a slot."""
        if self._connect_s is not None:
            timeouts = replace(timeouts, connect_s=self._connect_s)
        connection = await dial(self.origin, self._context, timeouts)
        self._in_use.add(connection)
        return connection

    def put_back(self, connection: Connection) -> None:
        """Ends a use: keeps the connection where it can serve again, closes it otherwise."""
        self._in_use.discard(connection)
        if connection.reusable and not self._closed and len(self._idle) < MAX_IDLE:
            connection.finish()
            self._idle.append((connection, monotonic()))
        else:
            connection.abort()

    def sweep(self) -> None:
        """Closes connections that idled too long (the oldest are in front)."""
        horizon = monotonic() - IDLE_S
        keep = [entry for entry in self._idle if entry[1] > horizon and not entry[0].lost]
        for connection, since in self._idle:
            if since <= horizon:
                connection.abort()
        self._idle = keep

    def close(self) -> None:
        """Closes every connection now."""
        self._closed = True
        for connection, _ in self._idle:
            connection.abort()
        for used in list(self._in_use):
            used.abort()
        self._idle.clear()
