"""What a record tells of each of its attempts: how it ended, how long no token came, and what it may have cost."""

import asyncio
from typing import Any

import pytest

from gateway.core.clock import monotonic
from gateway.core.types import Price, Timeouts
from gateway.simulator import Script
from gateway.simulator.faults import Cut, Silence, Stall, Status
from tests.dispatch.test_client_leaves import LONG, Client, everything_given_back, last_record
from tests.live import fast, live, run

PRICED = {"price": Price(input=1.0, output=2.0)}
SILENT = Silence()
SILENT_LATER = Silence(when="after_headers")


@pytest.mark.parametrize("fault", [SILENT, SILENT_LATER], ids=["before the head", "after the head"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_before_a_token_leaves_its_wait_behind(fault: Silence, stream: bool) -> None:
    async def main() -> None:
        async with live(fast(faults=(fault,)), timeouts=LONG) as gw:
            asked = monotonic()
            client = await Client.ask(gw, stream=stream)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            arrived = monotonic()
            await asyncio.sleep(0.2)
            left = monotonic()
            client.leave()
            await everything_given_back(gw)
            gone = monotonic()
            (entry,) = last_record(gw).attempts
            assert (entry.outcome, entry.error, entry.ttft_ms) == ("cancelled", None, None)
            assert entry.pool_wait_ms is not None
            assert (left - arrived) * 1000 <= entry.duration_ms <= (gone - asked) * 1000
            window = gw.gateway.book.window("p0/m", 300, monotonic())
            assert window.requests == 0
            assert (window.ttft_ms.p50 is not None) is stream

    run(main())


def test_a_client_that_leaves_before_its_request_was_sent_leaves_no_wait() -> None:
    async def main() -> None:
        async with live(fast(ttft=30), provider={"max_parallel": 1}, timeouts=LONG) as gw:
            pool = gw.gateway.engine._pools["p0"]
            await pool.take_slot(1)
            client = await Client.ask(gw)
            async with asyncio.timeout(1):
                while not pool._waiters:
                    await asyncio.sleep(0.001)
            client.leave()
            pool.give_slot()
            await everything_given_back(gw)
            (entry,) = last_record(gw).attempts
            assert (entry.outcome, entry.pool_wait_ms, entry.ttft_ms) == ("cancelled", None, None)
            assert gw.gateway.book.window("p0/m", 300, monotonic()).ttft_ms.p50 is None

    run(main())


@pytest.mark.parametrize(
    ("limits", "fault", "code"),
    [
        (Timeouts(connect_s=2, ttft_s=0.2), SILENT, "timeout_ttft"),
        (Timeouts(connect_s=2, ttft_s=0.2), SILENT_LATER, "timeout_ttft"),
        (Timeouts(connect_s=2, total_s=0.2), SILENT, "timeout_total"),
    ],
    ids=["before the head", "after the head", "by the whole time"],
)
def test_a_wait_that_was_cut_is_at_least_the_limit(limits: Timeouts, fault: Silence, code: str) -> None:
    async def main() -> None:
        async with live(fast(faults=(fault,)), fast(), timeouts=limits) as gw:
            record = await gw.record(await gw.post())
            first = record.attempts[0]
            assert (first.error, first.ttft_ms) == (code, None)
            assert first.pool_wait_ms is not None
            assert first.duration_ms is not None
            # From when it was sent; the whole time counts from the arrival of the request.
            assert first.duration_ms >= 190
            # The other model's answer has nothing of that wait in it.
            assert (record.timing.ttft_ms or 0) < 200
            assert gw.gateway.book.window("p0/m", 300, monotonic()).ttft_ms.p50 == pytest.approx(
                first.duration_ms, rel=0.021
            )

    run(main())


def test_an_attempt_that_failed_after_its_first_token_keeps_it() -> None:
    async def main() -> None:
        async with live(fast(ttft=0.05, faults=(Cut(after_tokens=8),))) as gw:
            record = await gw.record(await gw.post())
            (entry,) = record.attempts
            assert (entry.outcome, entry.error) == ("truncated", "cut")
            assert entry.ttft_ms == record.timing.ttft_ms
            assert (entry.ttft_ms or 0) >= 50

    run(main())


def test_a_second_try_at_the_only_place_is_no_fallback() -> None:
    async def main() -> None:
        async with live(fast(faults=(Status(code=503),))) as gw:
            response = await gw.post()
            record = await gw.record(response)
            assert [entry.kind for entry in record.attempts] == ["primary", "primary"]
            assert [entry.deployment for entry in record.attempts] == ["p0/m", "p0/m"]
            rendered = gw.gateway.metrics.render().decode()
            assert 'kind="fallback"' not in "".join(
                line for line in rendered.splitlines() if line.startswith("gateway_attempts_total") and line[-1] != "0"
            )

    run(main())


@pytest.mark.parametrize(
    ("first", "priced", "wasted"),
    [
        (fast(faults=(Status(code=503),)), PRICED, 0.0),
        (fast(faults=(Status(code=503),)), {}, 0.0),
        (fast(faults=(SILENT,)), PRICED, None),
    ],
    ids=["a refusal costs nothing", "at any price", "a wait that was cut may be billed"],
)
def test_what_was_wasted_is_told_where_it_is_known(first: Script, priced: dict[str, Any], wasted: float | None) -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=0.2)
        async with live(first, fast(), timeouts=limits, deployment=priced) as gw:
            record = await gw.record(await gw.post())
            assert len(record.attempts) == 2
            assert record.cost_wasted_usd == wasted
            assert (record.cost_usd is not None) is bool(priced)

    run(main())


def test_a_stall_after_the_first_token_is_no_wait_for_one() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=5, idle_s=0.2)
        async with live(fast(faults=(Stall(after_tokens=4),)), timeouts=limits) as gw:
            record = await gw.record(await gw.post())
            (entry,) = record.attempts
            assert entry.error == "timeout_idle"
            assert entry.ttft_ms is not None
            assert entry.ttft_ms < 200 <= (entry.duration_ms or 0)

    run(main())
