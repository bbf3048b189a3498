"""`x-gateway-meter: 1`: a stream ends with its record, as a comment before the terminal marker."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.api.sink import AsgiSink
from gateway.core.clock import monotonic
from gateway.core.record import as_json
from gateway.core.types import Timeouts
from gateway.simulator.faults import Cut, NoDone, Silence
from tests.dispatch.test_client_leaves import Client
from tests.live import Live, fast, live, run

WANTED = {"x-gateway-meter": "1"}


def split(body: bytes) -> tuple[bytes, dict[str, Any], bytes]:
    """What lies before the comment, the record in it, what lies after it."""
    before, mark, rest = body.partition(b": gateway ")
    assert mark, body[-400:]
    line, after = rest.split(b"\n\n", 1)
    assert b"\n" not in line
    record = json.loads(line)
    assert isinstance(record, dict)
    return before, record, after


async def streamed(gateway: Live, **headers: str) -> bytes:
    response = await gateway.client.post("/v1/chat/completions", json=gateway.chat(), headers={**WANTED, **headers})
    assert response.status_code == 200
    return response.content


@pytest.mark.parametrize("usage_asked", [True, False])
def test_a_stream_ends_with_its_record_before_the_terminal_marker(usage_asked: bool) -> None:
    async def main() -> None:
        async with live(fast(tps=400)) as gateway:
            chat = gateway.chat(stream_options={"include_usage": usage_asked})
            response = await gateway.client.post("/v1/chat/completions", json=chat, headers=WANTED)
            before, told, after = split(response.content)
            assert after == b"data: [DONE]\n\n"
            assert before.endswith(b"\n\n")
            kept = await gateway.record(response)
            assert told == json.loads(json.dumps(as_json(kept)))
            assert (told["outcome"], told["speed"]["quality"], told["tokens"]["output"]) == ("ok", "ok", 20)
            assert told["attempts"][0]["outcome"] == "ok"
            assert told["attempts"][0]["ttft_ms"] == told["timing"]["ttft_ms"]

    run(main())


def test_the_rest_of_the_stream_is_what_it_is_without_the_comment() -> None:
    async def main() -> None:
        async with live(fast(seed=3)) as gateway:
            with_comment = await streamed(gateway)
            plain = (await gateway.post()).content
            before, _, after = split(with_comment)
            assert (before + after).count(b"\n\n") == plain.count(b"\n\n")
            assert b": gateway" not in plain

    run(main())


def test_a_stream_whose_end_we_write_has_the_record_too() -> None:
    async def main() -> None:
        async with live(fast(faults=(NoDone(),))) as gateway:
            _, told, after = split(await streamed(gateway))
            assert after == b"data: [DONE]\n\n"
            assert told["outcome"] == "ok"

    run(main())


def test_a_stream_that_breaks_tells_its_record_before_the_error() -> None:
    async def main() -> None:
        async with live(fast(faults=(Cut(after_tokens=8),))) as gateway:
            response = await gateway.client.post("/v1/chat/completions", json=gateway.chat(), headers=WANTED)
            _, told, after = split(response.content)
            assert after.startswith(b'data: {"error":')
            assert b"[DONE]" not in after
            kept = await gateway.record(response)
            assert told == json.loads(json.dumps(as_json(kept)))
            assert (told["outcome"], told["error"]) == ("truncated", "cut")
            assert (told["speed"]["quality"], told["speed"]["output_tps"]) == ("truncated", None)

    run(main())


def test_a_stream_that_came_to_no_answer_tells_its_record_before_the_error() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=0.3, idle_s=0.3)
        async with live(fast(faults=(Silence(),)), timeouts=limits, keepalive_after_s=0.1) as gateway:
            response = await gateway.client.post("/v1/chat/completions", json=gateway.chat(), headers=WANTED)
            before, told, after = split(response.content)
            assert before.startswith(b": keep-alive\n\n")
            assert after.startswith(b'data: {"error":')
            assert told == json.loads(json.dumps(as_json(await gateway.record(response))))
            assert (told["outcome"], told["error"]) == ("error", "timeout_ttft")

    run(main())


def test_a_stream_that_a_stop_ends_tells_its_record_too() -> None:
    async def main() -> None:
        async with live(fast(tps=50, output_tokens=5000)) as gateway:
            client = await Client.ask(gateway, "x-gateway-meter: 1\r\n")
            await client.reader.readuntil(b'"content":"')
        rest = await client.reader.read()
        client.writer.close()
        _, told, after = split(rest)
        assert after.startswith(b'data: {"error":')
        assert (told["outcome"], told["error"], told["speed"]["output_tps"]) == ("error", "overloaded", None)

    run(main())


def test_our_own_time_is_told_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = AsgiSink.start

    async def slow(sink: AsgiSink, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        await asyncio.sleep(0.05)
        await starts(sink, status, headers)

    monkeypatch.setattr(AsgiSink, "start", slow)

    async def main() -> None:
        async with live(fast()) as gateway:
            _, told, _ = split(await streamed(gateway))
            assert told["timing"]["overhead_ms"] >= 50
            record = await gateway.record(await gateway.post())
            assert record.timing.overhead_ms is not None
            assert record.timing.overhead_ms >= 50

    run(main())


def test_the_record_of_a_second_choice_tells_of_the_first() -> None:
    async def main() -> None:
        async with live(replace(fast(), faults=(Cut(after_tokens=0),)), fast()) as gateway:
            _, told, _ = split(await streamed(gateway))
            assert [entry["outcome"] for entry in told["attempts"]] == ["failed", "ok"]
            assert "retry" in told["speed"]["marks"]

    run(main())


@pytest.mark.parametrize(("value", "status"), [("0", 200), ("yes", 400), ("", 400)])
def test_only_one_asks_for_it(value: str, status: int) -> None:
    async def main() -> None:
        async with live(fast()) as gateway:
            response = await gateway.client.post(
                "/v1/chat/completions", json=gateway.chat(), headers={"x-gateway-meter": value}
            )
            assert response.status_code == status
            assert b": gateway" not in response.content
            if status == 400:
                assert response.json()["error"]["param"] == "x-gateway-meter"

    run(main())


def test_a_whole_answer_is_never_touched() -> None:
    async def main() -> None:
        async with live(fast()) as gateway:
            response = await gateway.client.post(
                "/v1/chat/completions", json=gateway.chat(stream=False), headers=WANTED
            )
            assert response.json()["choices"]

    run(main())


def test_streams_under_way_are_told_to_the_book_and_forgotten() -> None:
    async def main() -> None:
        async with live(fast(output_tokens=40, tps=200)) as gateway:
            book = gateway.gateway.book
            async with gateway.client.stream("POST", "/v1/chat/completions", json=gateway.chat()) as response:
                # As if ten seconds had passed: by then it has something to say.
                seen = [len(book.look(monotonic() + 10.0)) async for _ in response.aiter_bytes()]
            assert max(seen) == 1
            await gateway.record(response)
            assert book.look(monotonic() + 60.0) == []

    run(main())


def test_attempts_under_way_are_counted_with_the_one_that_begins() -> None:
    async def main() -> None:
        async with live(fast(output_tokens=40, tps=400)) as gateway:
            async with gateway.client.stream("POST", "/v1/chat/completions", json=gateway.chat()) as first:
                second = await gateway.post()
                await first.aread()
            loads = [(await gateway.record(response)).in_flight for response in (first, second)]
            assert loads == [1, 2]

    run(main())
