"""The engine over real sockets: requests, every limit alone, and answers no server should send."""

import asyncio
import socket

import pytest

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Outbound
from gateway.core.types import Provider, Timeouts
from gateway.upstream.engine import HttpEngine
from tests.live import run
from tests.upstream.bare_server import (
    OK,
    REQUEST,
    SOON,
    answering,
    body_of,
    failure_of,
    read_request,
    upstream,
)


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
        (b"HTTP/1.1 000 What\r\ncontent-length: 3\r\n\r\nabc" + OK, "malformed"),
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


def test_a_header_with_a_line_break_is_never_sent() -> None:
    async def main() -> None:
        async with upstream(answering(OK)) as (engine, provider):
            split = Outbound("/x", b"", (("x-a", "b\r\nx-evil: 1"),))
            with pytest.raises(AttemptError) as caught:
                await engine.open(provider, split, SOON)
            assert caught.value.code == "internal"

    run(main())
