"""A request's head is bounded in size and in time."""

import asyncio

import pytest

from gateway.api import peer
from tests.live import fast, live, run


def test_a_head_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "HEAD_S", 0.1)

    async def main() -> None:
        async with live(fast()) as gw:
            for start in (b"", b"GET /healthz HTTP/1.1\r\nhost: x"):
                reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
                writer.write(start)
                async with asyncio.timeout(5):
                    assert await reader.read() == b""
                writer.close()

    run(main())


def test_a_slow_second_head_on_a_kept_connection_is_given_up_and_a_slow_answer_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer, "HEAD_S", 0.15)

    async def main() -> None:
        async with live(fast(ttft=0.4)) as gw:
            assert (await gw.post()).status_code == 200
            reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await reader.readuntil(b'{"status":"ok"}')
            writer.write(b"GET /hea")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()

    run(main())


def test_a_giant_head_starts_no_request() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
            body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            length = b"content-length: %d\r\n" % len(body)
            writer.write(head + length + b"x-a: " + b"y" * 70_000 + b"\r\n\r\n" + body)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 431 ")
            assert gw.sims[0].stats.requests == 0
            writer.close()

    run(main())
