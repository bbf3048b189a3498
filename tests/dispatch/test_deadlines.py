"""The limits of an attempt over real sockets, and the comments that keep a silent stream alive."""

import asyncio

import pytest

from gateway.core.clock import monotonic
from gateway.core.types import Timeouts
from gateway.simulator.faults import Silence, Stall
from tests.dispatch.answered import QUICK, events_of, text_of
from tests.live import Live, fast, live, run


def test_the_last_candidate_is_not_cut_by_the_first_token_limit() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=0.05, idle_s=5)
        async with live(fast(ttft=0.3), fast(ttft=0.3), timeouts=limits) as gw:
            response = await gw.post()
            assert response.status_code == 200
            record = await gw.record(response)
            assert [attempt.error for attempt in record.attempts] == ["timeout_ttft", None]

    run(main())


def test_total_ends_a_stream_that_runs_too_long() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, total_s=0.4)
        async with live(fast(tps=50, output_tokens=500), fast(), timeouts=limits) as gw:
            response = await gw.post()
            assert events_of(response.text)[-1]["error"]["code"] == "timeout_total"
            record = await gw.record(response)
            assert (record.outcome, record.error, len(record.attempts)) == ("error", "timeout_total", 1)

    run(main())


def test_total_ends_a_plain_request_and_does_not_move_on() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, total_s=0.3)
        async with live(fast(faults=(Silence(),)), fast(), timeouts=limits) as gw:
            response = await gw.post(stream=False)
            assert response.status_code == 504
            assert response.json()["error"]["code"] == "timeout_total"
            assert gw.sims[1].stats.requests == 0

    run(main())


async def _silent_for_a_while(gw: Live) -> str:
    async with gw.client.stream("POST", "/v1/chat/completions", json=gw.chat()) as response:
        assert response.status_code == 200
        assert "x-gateway-provider" not in response.headers
        assert response.headers["x-request-id"].startswith("gen-")
        return (await response.aread()).decode()


def test_a_long_silence_is_filled_with_comments_and_fallback_stays_possible() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=0.4)
        scripts = (fast(faults=(Silence(),)), fast(ttft=0.2))
        async with live(*scripts, timeouts=limits, keepalive_after_s=0.1) as gw:
            text = await _silent_for_a_while(gw)
            assert text.startswith(": keep-alive\n\n")
            assert text.endswith("data: [DONE]\n\n")
            assert len(text_of(text)) == 100

    run(main())


def test_after_the_first_comment_a_final_failure_is_told_in_band() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=0.3, idle_s=0.3)
        async with live(fast(faults=(Silence(),)), timeouts=limits, keepalive_after_s=0.1) as gw:
            text = await _silent_for_a_while(gw)
            assert events_of(text)[-1]["error"]["code"] == "timeout_ttft"
            assert "[DONE]" not in text

    run(main())


def test_comments_between_tokens_keep_the_client_and_not_the_idle_timer() -> None:
    async def main() -> None:
        async with live(fast(faults=(Stall(after_tokens=4),)), timeouts=QUICK, keepalive_after_s=0.1) as gw:
            response = await gw.post()
            assert ": keep-alive\n\n" in response.text
            assert events_of(response.text)[-1]["error"]["code"] == "timeout_idle"

    run(main())


@pytest.mark.parametrize("stream", [True, False])
def test_total_ends_the_wait_for_a_connection_too(stream: bool) -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, pool_s=20, total_s=0.3)
        async with live(fast(), fast(), provider={"max_parallel": 1}, timeouts=limits) as gw:
            pool = gw.gateway.engine._pools["p0"]
            await pool.take_slot(1)
            async with asyncio.timeout(5):
                response = await gw.post(stream=stream)
            assert (response.status_code, response.json()["error"]["code"]) == (504, "timeout_total")
            assert not pool._waiters
            pool.give_slot()
            deployment = gw.gateway.settings.catalog.deployments["p0/m"]
            assert gw.gateway.health.health(deployment, monotonic()).state != "cooling"

    run(main())
