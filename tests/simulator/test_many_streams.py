"""Two thousand streams at once through one provider."""

import asyncio
import resource

from gateway.simulator import Script, SimulatedProvider
from tests.simulator.seen import chat, written

STREAMS = 2000
TOKENS = 12
REQUEST = written("/v1/chat/completions", chat(stream=True, max_tokens=TOKENS), headers="Connection: close\r\n")


class Client(asyncio.Protocol):
    """Counts what it is sent."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.closed = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set_result(exc)


def test_two_thousand_streams_at_once_all_end_with_the_right_tokens() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 2 * STREAMS + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * STREAMS + 200, hard))

    async def main() -> None:
        # The first tokens are late enough for every stream to be open before the first one ends.
        async with SimulatedProvider(Script(ttft=3.0, head_at=0.0, tps=400, tokens_per_chunk=4)) as sim:
            loop = asyncio.get_running_loop()
            opened = [await loop.create_connection(Client, "127.0.0.1", sim.port) for _ in range(STREAMS)]
            for transport, _ in opened:
                transport.write(REQUEST)
            assert set(await asyncio.gather(*(client.closed for _, client in opened))) == {None}
            assert {told(bytes(client.received)) for _, client in opened} == {TOKENS}
            assert (sim.stats.streams_peak, sim.stats.tokens_sent, sim.stats.aborted) == (STREAMS, STREAMS * TOKENS, 0)
            assert {stream.ending for stream in sim.stats.streams} == {"close"}

    asyncio.run(main())


def told(received: bytes) -> int | None:
    """The tokens of a whole stream: five characters each, after the empty content of the role chunk."""
    pieces = received.split(b'"content":"')[2:]
    return sum(len(piece.partition(b'"')[0]) for piece in pieces) // 5 if received.endswith(b"0\r\n\r\n") else None
