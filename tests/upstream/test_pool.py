"""The pool over real sockets: connections kept and replaced, slots, waits; nothing is lost."""

import asyncio
import socket
import struct

from gateway.core.clock import monotonic
from gateway.core.types import Timeouts
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


def test_bytes_after_an_answer_are_never_taken_for_the_next_one() -> None:
    poisoned = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno"

    async def main() -> None:
        async with upstream(answering(OK + poisoned, OK)) as (engine, provider):
            assert await body_of(engine, provider) == b"hi"
            assert await body_of(engine, provider) == b"hi"

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


def test_a_slot_that_comes_back_in_the_moment_after_its_waiter_gave_up_breaks_nothing() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with upstream(handler, max_parallel=1) as (engine, provider):
            first = await engine.open(provider, REQUEST, SOON)
            waiting = asyncio.create_task(engine.open(provider, REQUEST, SOON))
            await asyncio.sleep(0)
            waiting.cancel()
            first.close()
            (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
            assert isinstance(outcome, asyncio.CancelledError)
            last = await engine.open(provider, REQUEST, Timeouts(pool_s=0.05))
            last.close()

    run(main())


def test_an_exchange_that_is_over_tells_nothing_of_the_next_on_its_connection() -> None:
    refusal = b"HTTP/1.1 503 Busy\r\nserver: second\r\ncontent-length: 2\r\n\r\nno"

    async def main() -> None:
        async with upstream(answering(OK, refusal)) as (engine, provider):
            first = await engine.open(provider, REQUEST, SOON)
            assert await first.head(monotonic() + 2)
            while (await first.read(monotonic() + 2) or (b"",))[0]:
                pass
            before = (first.sent, first.headers_at, first.status, first.headers)
            first.release()
            second = await engine.open(provider, REQUEST, SOON)
            assert await second.head(monotonic() + 2)
            assert (second.connect_s, second.status) == (None, 503)
            assert (first.sent, first.headers_at, first.status, first.headers) == before
            second.close()

    run(main())
