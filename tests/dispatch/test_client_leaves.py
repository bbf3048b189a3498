"""The client leaves, in every phase: the upstream is closed within a second, nothing leaks, the record says so."""

import asyncio
import json
from typing import Any

import pytest

from gateway.core.types import Timeouts
from gateway.simulator import Script
from gateway.simulator.faults import Silence, Stall, Status
from tests.live import Live, fast, live, run

LONG = Timeouts(connect_s=2, ttft_s=30)


class Client:
    """A client on a bare socket that can leave without a word."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def ask(cls, gw: Live, headers: str = "", **fields: Any) -> "Client":
        client = cls(*await asyncio.open_connection("127.0.0.1", gw.port))
        body = json.dumps(gw.chat(**fields)).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{gw.port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        )
        client.writer.write(head.encode() + body)
        await client.writer.drain()
        return client

    def leave(self) -> None:
        self.writer.transport.abort()


async def everything_given_back(gw: Live) -> None:
    """Streams, bytes, pool slots, what the gauges count: all back within a second."""
    services = gw.gateway.services
    async with asyncio.timeout(1):
        while services.streams.open or services.bodies.held or slots(gw) or in_flight(gw):  # type: ignore[attr-defined]
            await asyncio.sleep(0.001)


def slots(gw: Live) -> int:
    return sum(pool._slots for pool in gw.gateway.engine._pools.values())


def in_flight(gw: Live) -> float:
    """Requests and attempts that are under way by the metrics."""
    lines = gw.gateway.metrics.render().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if "_in_flight{" in line)


def last_record(gw: Live) -> Any:
    store: Any = gw.gateway.services.records
    return list(store._records.values())[-1]


@pytest.mark.parametrize(
    ("script", "stream"),
    [
        (fast(faults=(Silence(when="before_headers"),)), True),
        (fast(faults=(Silence(when="after_headers"),)), True),
        (fast(ttft=30), True),
        (fast(faults=(Silence(when="before_headers"),)), False),
        (fast(faults=(Silence(when="after_headers"),)), False),
    ],
    ids=["before headers", "after headers", "before the first token", "plain", "plain, after headers"],
)
def test_while_waiting(script: Script, stream: bool) -> None:
    async def main() -> None:
        async with live(script, fast(), timeouts=LONG) as gw:
            client = await Client.ask(gw, stream=stream)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            client.leave()
            await gw.sims[0].until(lambda stats: stats.aborted == 1 and stats.connections_open == 0, 1.0)
            await everything_given_back(gw)
            assert gw.sims[1].stats.requests == 0
            record = last_record(gw)
            assert (record.outcome, record.error) == ("cancelled", None)
            assert [attempt.outcome for attempt in record.attempts] == ["cancelled"]
            assert gw.gateway.health.health(gw.gateway.settings.catalog.deployments["p0/m"], 0.0).state != "cooling"

    run(main())


@pytest.mark.parametrize("fault", [(), (Stall(after_tokens=4),)], ids=["flowing", "stalled"])
def test_in_mid_stream(fault: tuple[Any, ...]) -> None:
    async def main() -> None:
        async with live(fast(tps=50, output_tokens=5000, faults=fault), timeouts=LONG) as gw:
            client = await Client.ask(gw)
            await client.reader.readuntil(b'"content":"')
            client.leave()
            await gw.sims[0].until(lambda stats: stats.aborted == 1, 1.0)
            await everything_given_back(gw)
            record = last_record(gw)
            assert (record.outcome, record.speed.quality) == ("cancelled", "cancelled")
            assert record.speed.output_tps is None
            assert record.timing.ttft_ms is not None
            assert record.tokens.source == "estimate"

    run(main())


def test_while_it_does_not_read() -> None:
    async def main() -> None:
        async with live(fast(tps=100_000, output_tokens=400_000, text="wide")) as gw:
            client = await Client.ask(gw)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await gw.sims[0].until(lambda stats: stats.tokens_sent > 2000)
            client.leave()
            await gw.sims[0].until(lambda stats: stats.aborted == 1, 2.0)
            await everything_given_back(gw)
            assert last_record(gw).outcome == "cancelled"

    run(main())


def test_while_waiting_for_a_connection() -> None:
    async def main() -> None:
        async with live(fast(ttft=30), provider={"max_parallel": 1}, timeouts=LONG) as gw:
            first = await Client.ask(gw)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            second = await Client.ask(gw)
            pool = gw.gateway.engine._pools["p0"]
            while not pool._waiters:
                await asyncio.sleep(0.001)
            second.leave()
            async with asyncio.timeout(1):
                while pool._waiters:
                    await asyncio.sleep(0.001)
            first.leave()
            await everything_given_back(gw)
            assert gw.sims[0].stats.requests == 1

    run(main())


def test_between_attempts() -> None:
    async def main() -> None:
        async with live(fast(faults=(Status(code=500),)), timeouts=LONG) as gw:
            # The only deployment failed quickly: the retry waits up to 250 ms. The draw is fixed at its longest.
            gw.gateway.services.dispatcher.rng.uniform = lambda low, high: high  # type: ignore[method-assign]
            client = await Client.ask(gw)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            client.leave()
            await everything_given_back(gw)
            assert gw.sims[0].stats.requests == 1
            assert last_record(gw).outcome == "cancelled"

    run(main())


def test_during_the_upload() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
            writer.write(
                f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{gw.port}\r\n"
                "content-type: application/json\r\ncontent-length: 1000\r\n\r\n{".encode()
            )
            await writer.drain()
            while not gw.gateway.services.streams.open:  # type: ignore[attr-defined]
                await asyncio.sleep(0.001)
            writer.transport.abort()
            await everything_given_back(gw)
            assert gw.sims[0].stats.requests == 0
            del reader

    run(main())


def test_a_hundred_abandoned_streams_leave_nothing_behind() -> None:
    async def main() -> None:
        async with live(fast(tps=20, output_tokens=1000)) as gw:
            before = len(asyncio.all_tasks())
            clients = [await Client.ask(gw) for _ in range(100)]
            await gw.sims[0].until(lambda stats: stats.streams_open == 100)
            assert len(asyncio.all_tasks()) - before <= 100 + 1  # one task a request, no more
            assert in_flight(gw) == 2 * 100
            for client in clients:
                client.leave()
            await gw.sims[0].until(lambda stats: stats.aborted == 100, 2.0)
            await everything_given_back(gw)
            async with asyncio.timeout(1):
                while len(asyncio.all_tasks()) > before:
                    await asyncio.sleep(0.001)

    run(main())


@pytest.mark.parametrize("size", [70_000, 300_000, 600_000, 900_000])
def test_after_a_large_prompt(size: int) -> None:
    async def main() -> None:
        async with live(fast(ttft=30), timeouts=LONG) as gw:
            client = await Client.ask(gw, user="x" * size)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            client.leave()
            await gw.sims[0].until(lambda stats: stats.aborted == 1, 1.0)
            await everything_given_back(gw)
            assert last_record(gw).outcome == "cancelled"

    run(main())


def test_after_sending_a_further_request_ahead() -> None:
    async def main() -> None:
        async with live(fast(ttft=30), timeouts=LONG) as gw:
            client = await Client.ask(gw)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            client.writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await asyncio.sleep(0.05)
            client.leave()
            await gw.sims[0].until(lambda stats: stats.aborted == 1, 1.0)
            await everything_given_back(gw)

    run(main())


def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            client = await Client.ask(gw, stream=False)
            ahead = b"".join(b"GET /v1/models/%b HTTP/1.1\r\nhost: localhost\r\n\r\n" % name for name in (b"m", b"no"))
            client.writer.write(ahead * 20)
            got = b""
            async with asyncio.timeout(5):
                while got.count(b"HTTP/1.1 ") < 41:
                    got += await client.reader.read(65536)
            statuses = [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]
            assert statuses == [200, *[200, 404] * 20]
            client.leave()

    run(main())
