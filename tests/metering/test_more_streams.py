"""Streams of kinds that the recorded ones do not have, with readings worked out by hand."""

import json
from typing import Any

import pytest

from gateway.core.record import Measurement
from tests.metering.replaying import Replay


def played(dialect: str, *events: tuple[float, Any]) -> tuple[Measurement, Replay]:
    """Each event at its moment in seconds: bytes as they are, anything else as JSON in a `data:` line."""
    replay, at = Replay(dialect), 0.0
    for at, event in events:
        replay.feed(event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n", at)
    replay.flush(at)
    return replay.result(at), replay


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE = {"prompt_tokens": 5, "completion_tokens": 40, "total_tokens": 45}
ANTHROPIC_END = (0.9, {"type": "message_stop"})


def pieces(count: int = 5, text: str = "word", start: float = 0.3) -> list[tuple[float, Any]]:
    return [(start + 0.1 * index, chunk({"content": text})) for index in range(count)]


@pytest.mark.parametrize(
    "empty", [b"data:\n\n", b"data: \n\n", b"data\r\n\r\n", b": x\ndata:\n\n", b"event: ping\ndata:\n\n"]
)
def test_an_event_of_empty_data_is_no_damaged_frame(empty: bytes) -> None:
    text = pieces()
    measured, _ = played("openai", *text[:2], (0.45, empty), *text[2:], (0.8, chunk({}, "stop", usage=USAGE)))
    assert measured.stream_events.bad == 0
    assert measured.speed.quality == "ok"
    assert measured.speed.output_tps == pytest.approx(40 * 0.8 / 0.4)


def test_thinking_that_is_left_out_gives_no_answer_rate() -> None:
    """Its tokens are in the output and nothing tells how many: the answer's share is unknown."""
    deltas = [
        (0.5 + index / 10, {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "word"}})
        for index in range(4)
    ]
    measured, _ = played(
        "anthropic",
        (0.1, {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        (0.2, {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        (0.3, {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": ""}}),
        (0.4, {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}}),
        *deltas,
        (0.9, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 500}}),
        ANTHROPIC_END,
    )
    assert measured.speed.quality == "hidden_reasoning"
    assert measured.speed.output_tps is None
    assert measured.speed.answer_tps is None
    assert measured.timing.ttft_ms == pytest.approx(500)


@pytest.mark.parametrize(
    ("restated", "prompt"),
    [
        ({}, 1017),
        ({"input_tokens": 17}, 1017),
        ({"input_tokens": 0}, 1017),
        ({"input_tokens": 61}, 1061),
        ({"input_tokens": 61, "cache_read_input_tokens": 900}, 961),
    ],
)
def test_a_restated_prompt_keeps_its_cached_part(restated: dict[str, int], prompt: int) -> None:
    start = {"input_tokens": 17, "cache_read_input_tokens": 1000, "output_tokens": 1}
    measured, _ = played(
        "anthropic",
        (0.1, {"type": "message_start", "message": {"id": "m", "usage": start}}),
        (0.2, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word"}}),
        (
            0.3,
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**restated, "output_tokens": 5}},
        ),
        ANTHROPIC_END,
    )
    assert measured.tokens.input == prompt
    assert measured.tokens.cached == restated.get("cache_read_input_tokens", 1000)
    assert measured.tokens.output == 5


def test_a_tail_of_gemini_without_counts_leaves_those_before_it() -> None:
    text = {"candidates": [{"content": {"parts": [{"text": "some words"}]}}]}
    tail = {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}
    measured, _ = played(
        "gemini",
        (0.3, {**text, "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 12, "thoughtsTokenCount": 30}}),
        (0.4, {**tail, "usageMetadata": {"promptTokenCount": 9}}),
    )
    assert (measured.tokens.input, measured.tokens.output, measured.tokens.reasoning) == (9, 42, 30)


def test_a_total_beside_zeros_says_nothing_of_the_output() -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 63}
    measured, _ = played("openai", *pieces(), (0.8, chunk({}, "stop", usage=usage)), (0.8, b"data: [DONE]\n\n"))
    assert measured.tokens.source == "estimate"
    assert measured.speed.quality == "estimate"


def test_a_message_beside_its_first_delta_keeps_the_kinds() -> None:
    """Perplexity's full mode repeats what came so far as `message` in every chunk."""
    first = chunk({"role": "assistant", "reasoning_content": "hm"})
    first["choices"][0]["message"] = {"role": "assistant", "reasoning_content": "hm"}
    measured, _ = played("openai", (0.2, first), *pieces(), (0.8, chunk({}, "stop", usage=USAGE)))
    assert (measured.chars.reasoning, measured.chars.content) == (2, 20)


def test_a_failed_response_has_ended() -> None:
    failed = {
        "type": "response.failed",
        "response": {"id": "r", "error": {"code": "rate_limit_exceeded", "message": "x"}},
    }
    measured, replay = played("responses", (0.2, {"type": "response.created", "response": {"id": "r"}}), (0.3, failed))
    assert replay.error is not None
    assert replay.error.code == "rate_limited"
    assert replay.done
    assert measured.speed.quality == "error"
