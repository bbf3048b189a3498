"""A thousand streams at once through one gateway, and a flood beside which others are served."""

import asyncio
import resource

from tests.dispatch.answered import text_of
from tests.dispatch.test_client_leaves import Client, everything_given_back, in_flight
from tests.live import Live, fast, live, run

STREAMS = 1000
TOKENS = 12


async def whole_text(client: Client) -> str:
    """What a stream said; its connection is left."""
    got = (await client.reader.readuntil(b"0\r\n\r\n")).decode()
    client.leave()
    return text_of(got)


async def all_at_once(gw: Live) -> list[Client]:
    """As many clients as there are streams, each with its first token."""
    clients = [await Client.ask(gw) for _ in range(STREAMS)]
    await gw.sims[0].until(lambda stats: stats.streams_open == STREAMS and stats.tokens_sent >= STREAMS, 30.0)
    return clients


def test_a_thousand_streams_at_once_are_all_answered_and_leave_nothing_behind() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4 * STREAMS + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4 * STREAMS + 200, hard))

    async def main() -> None:
        # Slow enough for all to be there before the first one ends; from its second token on each is quick.
        async with live(fast(tps=0.5, output_tokens=TOKENS)) as gw:
            clients = await all_at_once(gw)
            assert in_flight(gw) == 2 * STREAMS
            gw.sims[0].change(tps=400)
            texts = await asyncio.gather(*map(whole_text, clients))
            assert {len(text) for text in texts} == {5 * TOKENS}
            await everything_given_back(gw)
            page = gw.gateway.metrics.render().decode()
            assert f'gateway_requests_total{{model="m",tier="none",outcome="ok"}} {STREAMS}\n' in page

    run(main())


def test_a_flood_does_not_keep_others_waiting_for_its_end() -> None:
    async def main() -> None:
        async with live(fast(tps=1_000_000, output_tokens=400_000), fast()) as gw:
            flood = await Client.ask(gw, model="only-p0")
            await flood.reader.readuntil(b'"content":"')
            reading = asyncio.create_task(flood.reader.read(-1))
            for _ in range(3):
                response = await gw.post(model="only-p1")
                assert len(text_of(response.text)) == 100
                assert gw.sims[0].stats.streams_open == 1
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            flood.leave()
            await everything_given_back(gw)

    run(main())
