"""Clients that read slowly or not at all: the provider is not blamed, and nothing is held for ever."""

import asyncio
import json
import socket
from typing import Any

import pytest

from gateway.api import peer
from gateway.core.clock import monotonic
from gateway.core.types import Timeouts
from gateway.simulator import Script
from tests.dispatch.test_client_leaves import Client, everything_given_back, last_record
from tests.live import Live, fast, live, run

# More than all buffers on the way to the client hold, as fast as it can be taken.
FLOOD: dict[str, Any] = {"tps": 1_000_000, "output_tokens": 150_000, "text": "wide"}


def flood() -> Script:
    return fast(**FLOOD)


async def until_blocked(gw: Live) -> None:
    """The provider sends nothing more, since the client takes nothing more."""
    sent = -1
    while sent != gw.sims[0].stats.tokens_sent or sent < 2000:
        sent = gw.sims[0].stats.tokens_sent
        await asyncio.sleep(0.1)


def test_a_client_that_pauses_longer_than_the_idle_limit_gets_its_whole_answer() -> None:
    async def main() -> None:
        async with live(flood(), timeouts=Timeouts(connect_s=2, idle_s=0.3)) as gw:
            client = await Client.ask(gw)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until_blocked(gw)
            await asyncio.sleep(0.4)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            tail = b""
            async with asyncio.timeout(20):
                while not tail.endswith(b"0\r\n\r\n"):
                    tail = tail[-100:] + await client.reader.read(1 << 20)
            assert b"data: [DONE]\n\n" in tail
            client.leave()
            await everything_given_back(gw)
            record = last_record(gw)
            assert (record.outcome, record.error) == ("ok", None)
            assert record.timing.client_blocked_ms > 300

    run(main())


def test_while_a_client_takes_nothing_its_stream_does_not_look_slower() -> None:
    async def main() -> None:
        async with live(flood()) as gw:
            client = await Client.ask(gw)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until_blocked(gw)
            (watched,) = gw.gateway.book._running["p0/m"].values()
            soon, later = (watched.meter.progress(monotonic() + s) for s in (0.0, 60.0))
            client.leave()
            await everything_given_back(gw)
            assert soon == later

    run(main())


def test_total_ends_a_stream_whose_client_reads_too_slowly_and_charges_nobody() -> None:
    async def main() -> None:
        async with live(flood(), timeouts=Timeouts(connect_s=2, total_s=1.0)) as gw:
            client = await Client.ask(gw)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until_blocked(gw)
            await asyncio.sleep(1.0)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            tail = b""
            async with asyncio.timeout(20):
                while not tail.endswith(b"0\r\n\r\n"):
                    tail = tail[-500:] + await client.reader.read(1 << 20)
            assert b'"code":"timeout_total"' in tail
            assert b"[DONE]" not in tail
            client.leave()
            await everything_given_back(gw)
            assert (last_record(gw).outcome, last_record(gw).error) == ("error", "timeout_total")
            assert gw.gateway.health._watches["p0/m"].breaker.consecutive == 0

    run(main())


def test_a_client_that_reads_nothing_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "STALL_S", 0.3)

    async def main() -> None:
        async with live(flood()) as gw:
            client = await Client.ask(gw)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await gw.sims[0].until(lambda stats: stats.aborted == 1, 10.0)
            await everything_given_back(gw)
            assert last_record(gw).outcome == "cancelled"
            client.leave()

    run(main())


async def read_slowly(gw: Live, steps: int) -> None:
    """Takes a stream at 1 KB/s, a tenth of a second at a time, then the rest as fast as it comes."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", gw.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=512)
    body = json.dumps(gw.chat()).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{gw.port}\r\ncontent-length: {len(body)}\r\n"
    writer.write(head.encode() + b"content-type: application/json\r\nconnection: close\r\n\r\n" + body)
    for _ in range(steps):
        await reader.read(102)
        await asyncio.sleep(0.1)
    while await reader.read(1 << 16):
        pass
    writer.close()


@pytest.mark.parametrize(
    ("tps", "tokens", "blocks"), [(100.0, 200, False), (300.0, 900, True)], ids=["what fits on the way", "more"]
)
def test_a_client_at_one_kilobyte_a_second_does_not_change_the_speed_of_the_provider(
    tps: float, tokens: int, blocks: bool
) -> None:
    async def main() -> None:
        async with live(fast(tps=tps, output_tokens=tokens, text="wide")) as gw:
            if blocks:  # the kernel alone would hold megabytes
                gw.listening._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            await asyncio.gather(read_slowly(gw, 35), read_slowly(gw, 35), gw.post())
            await everything_given_back(gw)
            store: Any = gw.gateway.services.records
            records = list(store._records.values())
            quick = [record for record in records if not record.timing.client_blocked_ms]
            slow = [record for record in records if record.timing.client_blocked_ms]
            assert (len(quick), len(slow)) == ((1, 2) if blocks else (3, 0))
            for record in quick:
                assert record.speed.quality == "ok"
                assert record.speed.output_tps == pytest.approx(tps, rel=0.02)
            for record in slow:
                assert (record.speed.quality, record.speed.output_tps) == ("client_blocked", None)
                assert record.timing.ttft_ms < 1000
            window = gw.gateway.book.window("p0/m", 300, monotonic())
            assert (window.samples, window.ttft_ms.p50 is not None) == (len(quick), True)
            assert window.output_tps.p10 == pytest.approx(tps, rel=0.04)
            assert window.qualities.get("client_blocked", 0) == len(slow)

    run(main())
