"""Clients that read slowly or not at all: the provider is not blamed, and nothing is held for ever."""

import asyncio
from typing import Any

import pytest

from gateway.api import peer
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
