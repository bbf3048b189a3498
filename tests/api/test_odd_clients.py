"""Clients that are odd without being wrong, and clients that are wrong: each gets an answer it can read."""

import asyncio
import json
import logging
from typing import Any

import pytest

from gateway.api.names import Names
from gateway.core.errors import RequestError
from gateway.core.types import Caller, Provider, Timeouts
from tests.live import Live, catalog, fast, live, run


async def said_to(gw: Live, data: bytes) -> tuple[int, bytes]:
    """Status and body of one answer to these very bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
    writer.write(data)
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
    writer.transport.abort()
    return int(head.split(b" ")[1]), body


def asking(gw: Live, body: bytes, *headers: str) -> bytes:
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        f"host: 127.0.0.1:{gw.port}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@pytest.mark.parametrize("origin", ["http://[evil", "http://a]b", "http://[::1", "://", "null", "http://"])
def test_an_origin_that_is_no_url_is_a_foreign_one(origin: str) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.get("/v1/models", headers={"origin": origin})
            assert (response.status_code, response.json()["error"]["code"]) == (403, "origin_not_allowed")

    run(main())


def test_a_page_of_our_own_is_no_stranger() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.get("/v1/models", headers={"origin": f"http://127.0.0.1:{gw.port}"})
            assert response.status_code == 200

    run(main())


@pytest.mark.parametrize("pieces", [1, 7])
def test_an_offer_to_upgrade_is_declined_and_the_request_is_served(pieces: int) -> None:
    """Java's HTTP client offers HTTP/2 on every plain connection."""
    offer = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAAB")

    async def main() -> None:
        async with live(fast()) as gw:
            data = asking(gw, json.dumps(gw.chat(stream=False)).encode(), *offer)
            reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
            for _ in range(2):  # and the connection serves on
                size = -(-len(data) // pieces)
                for start in range(0, len(data), size):
                    writer.write(data[start : start + size])
                    await writer.drain()
                    await asyncio.sleep(0.001)
                async with asyncio.timeout(5):
                    head = await reader.readuntil(b"\r\n\r\n")
                    assert head.startswith(b"HTTP/1.1 200 ")
                    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                    assert json.loads(await reader.readexactly(length))["choices"]
            writer.transport.abort()
            sent = gw.sims[0].stats.seen[-1].body
            assert sent is not None
            assert sent["messages"] == gw.chat()["messages"]

    run(main())


@pytest.mark.parametrize("stream", [1, 0, 1.0, "true", []])
def test_stream_is_a_boolean_and_nothing_like_one(stream: Any) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.post("/v1/chat/completions", json=gw.chat() | {"stream": stream})
            assert (response.status_code, response.json()["error"]["param"]) == (400, "stream")
            assert gw.sims[0].stats.requests == 0

    run(main())


def test_a_body_that_is_nested_as_deep_as_can_be_read_is_sent_or_is_the_callers_mistake() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            for depth in (10, 260, 600, 980, 1000, 1020):
                body = json.dumps(gw.chat(stream=False)).encode()[:-1] + b',"z":' + b"[" * depth + b"]" * depth + b"}"
                status, answer = await said_to(gw, asking(gw, body))
                assert status == 200 or json.loads(answer)["error"]["code"] == "bad_request"
            record = list(gw.gateway.services.records._records.values())[-1]  # type: ignore[attr-defined]
            assert (record.error, record.attempts[0].outcome) == ("bad_request", "failed")

    run(main())


def test_a_client_that_leaves_during_the_upload_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            _, writer = await asyncio.open_connection("127.0.0.1", gw.port)
            writer.write(asking(gw, b"x" * 100)[:-50])
            streams: Any = gw.gateway.services.streams
            async with asyncio.timeout(5):
                while not streams.open:
                    await asyncio.sleep(0.001)
                writer.transport.abort()
                while streams.open:
                    await asyncio.sleep(0.001)
            assert (await gw.post()).status_code == 200

    with caplog.at_level(logging.WARNING):
        run(main())
    assert caplog.records == []


@pytest.mark.parametrize("name", ["p/a\nb", "p/\x1b[2J", "p/\ud83d", "p/\x00", "p/\u2028"])
def test_a_name_that_cannot_be_shown_names_nothing(name: str) -> None:
    """It would stand in logs, headers and records."""
    provider = Provider(name="p", base_url="http://127.0.0.1:1/v1")
    names = Names(catalog([provider], Timeouts()), ["p"], Timeouts())
    assert names.target("p/a b:ü", Caller()).deployments[0].upstream_model == "a b:ü"
    with pytest.raises(RequestError) as caught:
        names.target(name, Caller())
    assert caught.value.status == 404
