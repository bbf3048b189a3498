"""Each attempt has a clock of its own, from when its request was out; what the client waited is all of it."""

import asyncio

import httpx

from gateway.app import Settings
from gateway.core.clock import monotonic
from gateway.core.types import Provider, Timeouts
from gateway.limits.keys import KeyRing
from gateway.simulator.faults import Silence
from tests.dispatch.answered import QUICK
from tests.dispatch.test_signs_of_life import DONE, FINISH, HEAD, TOKEN
from tests.live import HELLO, catalog, fast, live, run, running
from tests.upstream.bare_server import read_request

# More than the socket buffers between gateway and provider hold.
PADDING = "x" * 12_000_000


def test_the_upload_of_a_large_prompt_is_no_wait_for_its_first_token() -> None:
    resumed: list[float] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.3)
        resumed.append(monotonic())
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        await read_request(reader)
        writer.write(HEAD + TOKEN + FINISH + DONE)
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            provider = Provider(name="p0", base_url=f"http://127.0.0.1:{port}/v1")
            settings = Settings(catalog=catalog([provider], Timeouts()), keys=KeyRing(), port=0, drain_s=1.0)
            async with running(settings) as (gateway, listening):
                url = f"http://127.0.0.1:{listening.port}/v1/chat/completions"
                async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
                    chat = {"model": "m", "messages": HELLO, "stream": True, "user": PADDING}
                    response = await client.post(url, json=chat)
                assert response.content == TOKEN + FINISH + DONE
                record = gateway.services.records.get(response.headers["x-request-id"])
                assert record is not None
                assert record.timing.ttft_ms is not None
                # The last byte cannot have left before the provider went on reading.
                assert record.timing.ttft_ms <= (monotonic() - resumed[0]) * 1000

    run(main())


def test_what_was_waited_for_one_provider_is_not_booked_on_the_next() -> None:
    async def main() -> None:
        async with live(fast(faults=(Silence(),)), fast(ttft=0.05), timeouts=QUICK) as gw:
            record = await gw.record(await gw.post())
            first, second = record.attempts
            assert (first.ttft_ms, second.ttft_ms) == (None, record.timing.ttft_ms)
            assert second.start_ms is not None
            assert second.ttft_ms is not None
            assert record.client.ttft_ms is not None
            # The silence lies before the second attempt began, and within what the client waited.
            assert record.client.ttft_ms >= second.start_ms + second.ttft_ms

    run(main())
