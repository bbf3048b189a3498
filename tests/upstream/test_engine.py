"""The engine over real sockets: keep-alive, pools, every limit alone, and answers no server should send."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Outbound
from gateway.core.types import Provider, Timeouts
from gateway.upstream.engine import HttpEngine
from tests.live import run

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


def test_the_request_goes_out_as_written_and_the_moments_are_in_order() -> None:
    seen: list[tuple[str, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(OK)

    async def main() -> None:
        async with upstream(handler) as (engine, provider):
            began = monotonic()
            exchange = await engine.open(provider, REQUEST, SOON)
            assert await exchange.head(monotonic() + 2)
            got = await exchange.read(monotonic() + 2)
            assert got is not None
            assert exchange.connect_s is not None
            assert exchange.headers_at is not None
            assert began <= exchange.sent <= exchange.headers_at <= got[1] <= monotonic()
            assert (exchange.status, dict(exchange.headers)) == (200, {b"content-length": b"2"})
            exchange.close()

    run(main())
    head, body = seen[0]
    assert head.startswith("POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:")
    assert body == REQUEST.body


def test_a_connection_is_kept_and_used_again() -> None:
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answering(OK, OK, OK)(reader, writer)

    async def main() -> None:
        async with upstream(handler) as (engine, provider):
            assert [await body_of(engine, provider) for _ in range(3)] == [b"hi"] * 3

    run(main())
    assert connections == 1


def test_a_kept_connection_that_the_server_closed_is_replaced_unseen() -> None:
    answers = [0]

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers[0] += 1
        await read_request(reader)
        writer.write(OK)
        await writer.drain()
        # The second request on this connection is met by a reset, as from a server whose idle time was over.
        await reader.read(1)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def main() -> None:
        async with upstream(handler) as (engine, provider):
            assert await body_of(engine, provider) == b"hi"
            assert await body_of(engine, provider) == b"hi"

    run(main())
    assert answers[0] == 2


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
        (b"HTTP/1.1 200 OK\r\n\r\nhi", b"hi"),  # ends with the connection
        (b"HTTP/1.0 200 OK\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"hi"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"hi"),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi", b"hi"),
    ],
)
def test_every_legal_framing_of_a_body_is_read(answer: bytes, body: bytes) -> None:
    async def main() -> None:
        async with upstream(answering(answer)) as (engine, provider):
            assert await body_of(engine, provider) == body

    run(main())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", "cut"),
        (b"HTTP/1.1 200 OK\r\n", "cut"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhi", "cut"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhi", "cut"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n", "cut"),
        (b"SSH-2.0-OpenSSH\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi", "malformed"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", "malformed"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", "malformed"),
    ],
)
def test_a_broken_answer_is_an_error_that_says_how(answer: bytes, code: str) -> None:
    async def main() -> None:
        async with upstream(answering(answer)) as (engine, provider):
            assert (await failure_of(engine, provider)).code == code

    run(main())


def test_bytes_after_an_answer_are_never_taken_for_the_next_one() -> None:
    poisoned = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno"

    async def main() -> None:
        async with upstream(answering(OK + poisoned, OK)) as (engine, provider):
            assert await body_of(engine, provider) == b"hi"
            assert await body_of(engine, provider) == b"hi"

    run(main())


def test_nothing_listens() -> None:
    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            provider = Provider(name="p", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
            engine = HttpEngine([provider], parallel=1)
            assert (await failure_of(engine, provider)).code == "connect"
            await engine.close()

    run(main())


def test_a_name_that_does_not_exist_is_a_connect_error() -> None:
    async def main() -> None:
        provider = Provider(name="p", base_url="http://does-not-exist.invalid/v1")
        engine = HttpEngine([provider], parallel=1)
        assert (await failure_of(engine, provider)).code == "connect"
        await engine.close()

    run(main())


def test_a_full_backlog_is_a_connect_timeout() -> None:
    async def main() -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            fillers = []
            for _ in range(4):  # nobody accepts: the queue fills and further handshakes hang
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                fillers.append(filler)
            provider = Provider(name="p", base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
            engine = HttpEngine([provider], parallel=1)
            error = await failure_of(engine, provider, Timeouts(connect_s=0.2))
            assert error.code == "timeout_connect"
            for filler in fillers:
                filler.close()
            await engine.close()

    run(main())


def test_a_silent_server_is_waited_for_until_the_given_moment_and_no_longer() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with upstream(handler) as (engine, provider):
            exchange = await engine.open(provider, REQUEST, SOON)
            assert not await exchange.head(monotonic() + 0.05)
            assert not await exchange.head(monotonic() + 0.02)  # and may be asked again
            exchange.close()

    run(main())


def test_a_tls_handshake_that_never_ends_is_a_tls_error() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with upstream(handler) as (_, plain):
            provider = Provider(name="p", base_url=plain.base_url.replace("http:", "https:"))
            engine = HttpEngine([provider], parallel=1)
            error = await failure_of(engine, provider, Timeouts(connect_s=2, tls_s=0.1))
            assert error.code == "tls"
            await engine.close()

    run(main())


def test_max_parallel_makes_the_next_request_wait_and_the_wait_is_told_apart() -> None:
    gate = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await gate.wait()
        writer.write(OK)
        await writer.drain()
        await answering(OK)(reader, writer)

    async def main() -> None:
        async with upstream(handler, max_parallel=1) as (engine, provider):
            first = await engine.open(provider, REQUEST, SOON)
            assert first.pool_wait_s == 0.0
            second = asyncio.create_task(engine.open(provider, REQUEST, SOON))
            await asyncio.sleep(0)
            gate.set()
            assert await first.head(monotonic() + 2)
            assert await first.read(monotonic() + 2)
            first.release()
            exchange = await second
            assert exchange.pool_wait_s > 0
            assert exchange.connect_s is None
            exchange.close()

    run(main())


def test_a_full_pool_is_our_own_overload_and_charges_nobody() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with upstream(handler, max_parallel=1) as (engine, provider):
            first = await engine.open(provider, REQUEST, SOON)
            error = await failure_of(engine, provider, Timeouts(pool_s=0.05))
            assert (error.code, error.charges) == ("overloaded", False)
            first.close()
            again = await engine.open(provider, REQUEST, SOON)  # the slot came back
            again.close()

    run(main())


def test_a_waiter_that_gives_up_loses_no_slot() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with upstream(handler, max_parallel=1) as (engine, provider):
            for _ in range(5):
                first = await engine.open(provider, REQUEST, SOON)
                waiting = asyncio.create_task(engine.open(provider, REQUEST, SOON))
                await asyncio.sleep(0)
                first.close()  # hands the slot over in the very moment the waiter is cancelled
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
            last = await engine.open(provider, REQUEST, Timeouts(pool_s=0.05))
            last.close()

    run(main())


def test_an_answer_nobody_reads_stops_the_socket_and_goes_on_later() -> None:
    piece = b"x" * 65536
    count = 200

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(piece) * count))
        for _ in range(count):
            writer.write(piece)
            await writer.drain()
        await reader.read()

    async def main() -> None:
        async with upstream(handler) as (engine, provider):
            exchange = await engine.open(provider, REQUEST, SOON)
            assert await exchange.head(monotonic() + 2)
            connection = exchange._connection
            while not connection._paused:
                await asyncio.sleep(0)
            assert connection._waiting_bytes < 1024 * 1024
            total = 0
            while total < len(piece) * count:
                got = await exchange.read(monotonic() + 5)
                assert got is not None
                total += len(got[0])
            exchange.close()

    run(main())


def test_the_terminal_marker_frees_the_client_and_the_rest_is_drained_for_reuse() -> None:
    connections = 0
    more = asyncio.Event()
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        writer.write(head + b"2\r\nhi\r\n")
        await more.wait()
        writer.write(b"0\r\n\r\n")
        await answering(OK)(reader, writer)

    async def main() -> None:
        async with upstream(handler) as (engine, provider):
            exchange = await engine.open(provider, REQUEST, SOON)
            assert await exchange.head(monotonic() + 2)
            got = await exchange.read(monotonic() + 2)
            assert got is not None
            assert got[0] == b"hi"
            exchange.release()
            more.set()
            while not engine._pools["p"]._idle:
                await asyncio.sleep(0)
            assert await body_of(engine, provider) == b"hi"

    run(main())
    assert connections == 1


def test_a_header_with_a_line_break_is_never_sent() -> None:
    async def main() -> None:
        async with upstream(answering(OK)) as (engine, provider):
            split = Outbound("/x", b"", (("x-a", "b\r\nx-evil: 1"),))
            with pytest.raises(AttemptError) as caught:
                await engine.open(provider, split, SOON)
            assert caught.value.code == "internal"

    run(main())
