"""An upstream that sends the bytes it is told to, and an engine that talks to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Outbound
from gateway.core.types import Provider, Timeouts
from gateway.upstream.engine import HttpEngine

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

REQUEST = Outbound("/chat/completions", b'{"model":"m"}', (("content-type", "application/json"),))

SOON = Timeouts(connect_s=2, tls_s=2, pool_s=2)

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@asynccontextmanager
async def upstream(handler: Handler, **provider: object) -> AsyncIterator[tuple[HttpEngine, Provider]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    at = Provider(name="p", base_url=f"http://127.0.0.1:{port}/v1", **provider)  # type: ignore[arg-type]
    engine = HttpEngine([at], parallel=10)
    try:
        yield engine, at
    finally:
        await engine.close()
        server.close()


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
    return head, await reader.readexactly(length)


def answering(*answers: bytes) -> Handler:
    """Answers one request after the other on one connection, then closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_request(reader)
            writer.write(answer)
            await writer.drain()

    return handler


async def body_of(engine: HttpEngine, provider: Provider, limit_s: float = 2.0) -> bytes:
    exchange = await engine.open(provider, REQUEST, SOON)
    try:
        until = monotonic() + limit_s
        assert await exchange.head(until)
        body = b""
        while True:
            got = await exchange.read(until)
            assert got is not None
            if not got[0]:
                exchange.release()
                return body
            body += got[0]
    finally:
        exchange.close()


async def failure_of(engine: HttpEngine, provider: Provider, timeouts: Timeouts = SOON) -> AttemptError:
    exchange = None
    with pytest.raises(AttemptError) as caught:
        exchange = await engine.open(provider, REQUEST, timeouts)
        until = monotonic() + 2
        assert await exchange.head(until)
        while (got := await exchange.read(until)) and got[0]:
            pass
    if exchange is not None:
        exchange.close()
    return caught.value
