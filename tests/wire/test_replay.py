"""Every recorded stream through the running gateway over sockets: the client's bytes and the record are right."""

import asyncio
import json
import random

import pytest

from tests.live import run
from tests.wire.checking import of_all, wrong_attempts, wrong_bytes, wrong_counts, wrong_moments, wrong_speed
from tests.wire.playing import Taken, at_random, byte_by_byte, gated, play, timed
from tests.wire.replaying import LAST_CHUNK, Reel, chunk
from tests.wire.streams import ANSWERS, EXPECT, FAILURES, REFUSALS, data_of, passing

PREAMBLE = b": telltale\n\n" + b"".join(
    b'data: {"id":"telltale","model":"telltale","service_tier":"telltale","object":"chat.completion.chunk",'
    b'"choices":[{"index":0,"delta":%s,"finish_reason":null}],"usage":{"prompt_tokens":777,"completion_tokens":0},'
    b'"time_info":{"queue_time":777}}\n\n' % delta
    for delta in (b'{"role":"assistant","content":""}', b'{"content":null}', b"{}")
)
# How a first choice fails after its preamble: the bytes, whether the body is closed properly, the code.
FIRST_FAILURES = [
    (b'data: {"error":{"message":"telltale","code":500}}\n\n', True, "server_error"),
    (b"event: error\ndata: telltale went wrong\n\n", True, "server_error"),
    (b'{"error":{"message":"telltale","type":"overloaded_error"}}', True, "overloaded"),
    (b"data: [DONE]\n\n", True, "empty"),
    (b"", True, "cut"),
    (b"", False, "cut"),
    (b'data: {"id":"telltale","choices":[{"delta":{"content":"tell', False, "cut"),
    (b'data: {"id":"telltale","choices":[{"delta":{"content":"tell', True, "cut"),
    (b'data: {"id":"telltale","choices":[{"delta":{"content":"tell\n\n', True, "malformed"),
]


def failing(index: int) -> tuple[Reel, str]:
    end, closed, code = FIRST_FAILURES[index % len(FIRST_FAILURES)]
    pieces = [(0.02, chunk(PREAMBLE)), (0.02, chunk(end) if end else b"")]
    return Reel((*pieces, (0.0, LAST_CHUNK if closed else b"")), stays=closed), code


@pytest.mark.parametrize("usage_asked", [False, True])
def test_a_vendors_stream_reaches_the_client_and_the_record(usage_asked: bool) -> None:
    async def main() -> None:
        seen = await play({name: (timed(name),) for name in ANSWERS}, usage_asked)
        assert not of_all(
            {
                name: wrong_bytes(name, got, usage_asked)
                + wrong_counts(name, got.record)
                + wrong_moments(name, got, got.posted)
                + wrong_speed(name, got)
                for name, got in seen.items()
            }
        )

    run(main())


@pytest.mark.parametrize("usage_asked", [False, True])
def test_reads_split_anywhere_change_neither_bytes_nor_counts(usage_asked: bool) -> None:
    async def main() -> None:
        rng = random.Random(4)
        seen = await play({name: (at_random(name, rng),) for name in ANSWERS}, usage_asked)
        assert not of_all(
            {name: wrong_bytes(name, got, usage_asked) + wrong_counts(name, got.record) for name, got in seen.items()}
        )

    run(main())


def test_a_write_for_every_byte_changes_neither_bytes_nor_counts() -> None:
    async def main() -> None:
        seen = await play({name: (byte_by_byte(name),) for name in ANSWERS}, usage_asked=False)
        assert not of_all(
            {name: wrong_bytes(name, got, False) + wrong_counts(name, got.record) for name, got in seen.items()}
        )

    run(main())


@pytest.mark.parametrize("usage_asked", [False, True])
def test_of_a_first_choice_that_fails_after_its_preamble_nothing_is_left(usage_asked: bool) -> None:
    async def main() -> None:
        firsts = {name: failing(index + usage_asked) for index, name in enumerate(ANSWERS)}
        seen = await play({name: (firsts[name][0], timed(name)) for name in ANSWERS}, usage_asked)
        assert not of_all(
            {
                name: wrong_bytes(name, got, usage_asked)
                + wrong_counts(name, got.record)
                + wrong_moments(name, got, got.played[0].written[1][0])
                + wrong_speed(name, got)
                + wrong_attempts(got, firsts[name][1])
                for name, got in seen.items()
            }
        )

    run(main())


@pytest.mark.parametrize("slices", ["whole", "bytes"])
def test_a_stream_that_is_a_refusal_moves_on_and_leaves_no_trace(slices: str) -> None:
    answer = "openai-chat-basic.sse"
    reel = timed if slices == "whole" else byte_by_byte

    async def main() -> None:
        seen = await play({name: (reel(name), timed(answer)) for name in REFUSALS}, usage_asked=True)
        for name, got in seen.items():
            first, second = got.record.attempts
            assert (first.outcome, first.error) == ("failed", FAILURES[name][1])
            assert (second.outcome, second.kind) == ("ok", "fallback")
            assert (wrong_bytes(answer, got, True), wrong_counts(answer, got.record)) == ([], [])

    run(main())


def test_a_stream_that_is_a_refusal_is_an_error_answer_where_there_is_no_other_choice() -> None:
    async def main() -> None:
        seen = await play({name: (timed(name),) for name in REFUSALS}, usage_asked=False)
        for name, got in seen.items():
            assert got.status == REFUSALS[name]
            assert "error" in json.loads(got.body)
            assert wrong_counts(name, got.record) == []
            assert got.record.timing.ttft_ms is None
            assert got.record.speed.quality in EXPECT[name]["expect"]["quality"]

    run(main())


def test_keep_alives_stand_between_events() -> None:
    beat, mark = b": keep-alive\n\n", b"\xef\xbb\xbf"

    async def main() -> None:
        seen = await play({name: (timed(name),) for name in ANSWERS}, usage_asked=True, keepalive_after_s=0.01)
        beats = 0
        for name, got in seen.items():
            parts = got.body.split(beat)
            beats += len(parts) - 1
            assert all(part.endswith((b"\n\n", b"\r\n\r\n")) for part in parts[:-1] if part), name
            expected, fails = passing(name, True)
            # A provider's own comments look the same, and a byte order mark is none behind something else.
            expected, body = expected.replace(beat, b"").removeprefix(mark), b"".join(parts)
            assert body.startswith(expected) if fails else body == expected, name
            assert wrong_counts(name, got.record) == []
        assert beats > len(seen)

    run(main())


@pytest.mark.parametrize("usage_asked", [False, True])
def test_what_came_is_passed_on_before_anything_further_comes(usage_asked: bool) -> None:
    async def main() -> None:
        taken = {name: Taken() for name in ANSWERS}
        reels = {name: (gated(name, usage_asked, taken[name]),) for name in ANSWERS}
        async with asyncio.timeout(20):
            seen = await play(reels, usage_asked, taken)
        assert not of_all({name: wrong_bytes(name, got, usage_asked) for name, got in seen.items()})

    run(main())


IN_ONE_READ = ["openai-chat-error-midstream.sse", "vllm-error-then-done.sse", "deepseek-insufficient-resource.sse"]


def test_an_error_that_comes_with_the_first_token_moves_on() -> None:
    answer = "openai-chat-basic.sse"

    async def main() -> None:
        firsts = {name: Reel(((0.0, chunk(data_of(name)) + LAST_CHUNK),)) for name in IN_ONE_READ}
        seen = await play({name: (first, timed(answer)) for name, first in firsts.items()}, usage_asked=False)
        for name, got in seen.items():
            assert got.record.attempts[0].error == FAILURES[name][1]
            assert (wrong_bytes(answer, got, False), wrong_counts(answer, got.record)) == ([], [])

    run(main())
