"""What a provider sends only to say that it lives: no token, no fault, and nothing a client could stumble over."""

import asyncio

import httpx
import pytest

from gateway.app import Settings
from gateway.core.types import Provider, Timeouts
from gateway.limits.keys import KeyRing
from tests.live import HELLO, catalog, run, running
from tests.upstream.bare_server import read_request

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
TOKEN = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("sign", [b"data:\n\n", b"data: \n\n", b"data\r\n\r\n"])
def test_empty_data_is_no_broken_frame_and_does_not_reach_the_client(sign: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + sign + TOKEN + sign + FINISH + sign + DONE)
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            provider = Provider(name="p0", base_url=f"http://127.0.0.1:{port}/v1")
            settings = Settings(catalog=catalog([provider], Timeouts()), keys=KeyRing(), port=0, drain_s=1.0)
            async with running(settings) as (gateway, listening):
                url = f"http://127.0.0.1:{listening.port}/v1/chat/completions"
                async with httpx.AsyncClient(trust_env=False) as client:
                    chat = {"model": "m", "messages": HELLO, "stream": True}
                    response = await client.post(url, json=chat)
                assert response.content == TOKEN + FINISH + DONE
                record = gateway.services.records.get(response.headers["x-request-id"])
                assert record is not None
                assert (record.stream_events.bad, record.stream_events.comments, len(record.attempts)) == (0, 3, 1)

    run(main())
