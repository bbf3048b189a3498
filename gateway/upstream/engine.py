"""The `Engine` port on asyncio protocols: HTTP/1.1 with kept-alive connections, one pool a provider."""

import asyncio
from collections.abc import Iterable

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Outbound
from gateway.core.types import Provider, Timeouts
from gateway.upstream.exchange import HttpExchange
from gateway.upstream.pool import Pool

SWEEP_S = 15.0


class HttpEngine:
    """Owns every upstream socket. `parallel` is the size of a pool whose provider sets no `max_parallel`."""

    def __init__(self, providers: Iterable[Provider], parallel: int) -> None:
        self._pools = {provider.name: Pool(provider, provider.max_parallel or parallel) for provider in providers}
        self._sweeper: asyncio.TimerHandle | None = None

    async def open(self, provider: Provider, request: Outbound, timeouts: Timeouts) -> HttpExchange:
        """See the port. A kept connection that its server had already closed is replaced once, unseen."""
        pool = self._pools[provider.name]
        if self._sweeper is None:
            self._sweep()
        waited = await pool.take_slot(timeouts.pool_s)
        try:
            connection = pool.kept()
            connect_s: float | None = None
            if connection is None:
                began = monotonic()
                connection = await pool.dial(timeouts)
                connect_s = monotonic() - began
        except BaseException:
            pool.give_slot()
            raise
        exchange = HttpExchange(pool, connection, waited, connect_s)
        try:
            exchange.send(_serialize(pool, request), timeouts)
        except BaseException:
            exchange.close()
            raise
        return exchange

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for pool in self._pools.values():
            pool.close()
        await asyncio.sleep(0)  # lets the transports run their close callbacks

    def _sweep(self) -> None:
        for pool in self._pools.values():
            pool.sweep()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)


def _serialize(pool: Pool, request: Outbound) -> bytes:
    """The request as bytes. Header values come from the configuration and an allow-list; line breaks are refused."""
    where = pool.origin
    target = where.path + request.path
    if where.proxy is not None and not where.tls:
        target = f"http://{where.authority}{target}"
    lines = [f"{request.method} {target} HTTP/1.1", f"host: {where.authority}"]
    for name, value in request.headers:
        if "\n" in value or "\r" in value or "\0" in value:
            raise AttemptError("internal", f"header {name} holds a line break")
        lines.append(f"{name}: {value}")
    if where.proxy is not None and not where.tls and where.proxy[2]:
        lines.append(f"proxy-authorization: {where.proxy[2]}")
    lines.append(f"content-length: {len(request.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + request.body
