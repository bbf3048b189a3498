"""What stands between a vendor and us, or imitates it, sends the same in ways of its own."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.reading import Reading, Usage
from gateway.core.types import Quirks
from gateway.metering.usage import merged
from gateway.providers.dialects import READERS
from tests.providers.test_readers import EVENTS, JSON, NAMES, READER, sane


def stream(dialect: str, *events: Any) -> list[Reading]:
    """The readings of one stream; an event is its body, or its name and its body."""
    read = READERS[dialect].reader(Quirks())
    named = [event if type(event) is tuple else (None, event) for event in events]
    return [read(name, body if type(body) is bytes else orjson.dumps(body)) for name, body in named]


def total(readings: list[Reading]) -> Usage:
    """As the meter puts them together."""
    found = Usage()
    for reading in readings:
        found = found if reading.usage is None else merged(found, reading.usage)
    return found


def chars(readings: list[Reading]) -> tuple[int, int, int]:
    return (
        sum(reading.content for reading in readings),
        sum(reading.reasoning for reading in readings),
        sum(reading.tool for reading in readings),
    )


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m", "model": "c", "usage": usage}}


def end(**usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


CACHE = {"cache_read_input_tokens": 2048, "cache_creation_input_tokens": 100}
# What the start says, what the end says, and the counts: input, cached, written to the cache, output.
PROMPTS: list[tuple[dict[str, Any], dict[str, Any], tuple[int | None, ...]]] = [
    ({"input_tokens": 12, **CACHE, "output_tokens": 1}, {"output_tokens": 50}, (2160, 2048, 100, 50)),
    ({"input_tokens": 12, **CACHE}, {"input_tokens": 12, "output_tokens": 50}, (2160, 2048, 100, 50)),
    ({"input_tokens": 12, **CACHE}, {"input_tokens": 30, "output_tokens": 50}, (2178, 2048, 100, 50)),
    ({"input_tokens": 12, **CACHE}, {"input_tokens": 12, **CACHE, "output_tokens": 50}, (2160, 2048, 100, 50)),
    (
        {"input_tokens": 12, **CACHE},
        {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 50},
        (2160, 2048, 100, 50),
    ),
    (
        {"input_tokens": 12, **CACHE},
        {"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 50},
        (2160, 2048, 100, 50),
    ),
    ({"input_tokens": 43, "output_tokens": 3}, {"input_tokens": 61, "output_tokens": 9}, (61, None, None, 9)),
    ({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 61, "output_tokens": 9}, (61, None, None, 9)),
    ({}, {"input_tokens": 61, **CACHE, "output_tokens": 9}, (2209, 2048, 100, 9)),
    ({"input_tokens": 0, **CACHE}, {"output_tokens": 9}, (2148, 2048, 100, 9)),
]


@pytest.mark.parametrize(("first", "last", "counts"), PROMPTS)
def test_a_prompt_of_anthropic_counts_once_and_wholly(
    first: dict[str, Any], last: dict[str, Any], counts: tuple[int | None, ...]
) -> None:
    usage = total(stream("anthropic", start(**first), end(**last)))
    assert (usage.input, usage.cached, usage.cache_write, usage.output) == counts


def test_a_second_start_takes_nothing_from_the_first() -> None:
    readings = stream("anthropic", start(input_tokens=12, **CACHE), start(input_tokens=12), end(output_tokens=9))
    assert readings[1].usage is not None
    assert (readings[1].usage.input, readings[1].usage.cached) == (12, None)
    assert total(readings[1:]).input == 12


@pytest.mark.parametrize(
    ("usage", "tier"),
    [
        ({"speed": "fast", "service_tier": "standard"}, "fast"),
        ({"speed": "standard", "service_tier": "priority"}, "priority"),
        ({"speed": "standard"}, "standard"),
        ({"service_tier": "batch"}, "batch"),
        ({"speed": None, "service_tier": None}, None),
    ],
)
def test_the_tier_of_anthropic_is_the_faster_of_two_words(usage: dict[str, Any], tier: str | None) -> None:
    assert stream("anthropic", end(output_tokens=1, **usage))[0].tier == tier


def test_events_of_anthropic_without_a_type_go_by_their_name() -> None:
    readings = stream(
        "anthropic",
        (b"content_block_delta", {"delta": {"type": "text_delta", "text": "Brest"}}),
        (b"message_delta", {"delta": {"stop_reason": "end_turn"}}),
        (b"message_stop", {}),
    )
    assert chars(readings) == (5, 0, 0)
    assert readings[1].finish == "end_turn"
    assert readings[2].terminal


def argument(dialect: str, text: str) -> Any:
    """One piece of a tool call's arguments."""
    return {
        "openai": {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"arguments": text}}]}}]},
        "anthropic": {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": text}},
        "responses": {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text},
        "bedrock": (b"contentBlockDelta", {"delta": {"toolUse": {"input": text}}}),
        "cohere": {
            "type": "tool-call-delta",
            "delta": {"message": {"tool_calls": {"function": {"arguments": text}}}},
        },
    }[dialect]


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "responses", "bedrock", "cohere"])
def test_arguments_that_come_in_one_piece_are_a_whole_call(dialect: str) -> None:
    (whole,) = stream(dialect, argument(dialect, '{"port":"Brest"}'))
    assert (whole.tool, whole.tool_calls_whole) == (16, 1)
    pieces = stream(dialect, argument(dialect, '{"port":'), argument(dialect, '"Brest"}'))
    assert (chars(pieces), sum(piece.tool_calls_whole for piece in pieces)) == ((0, 0, 16), 0)


def test_a_block_of_anthropic_may_hold_the_whole_call() -> None:
    call = {"type": "tool_use", "id": "t", "name": "get_tide", "input": {"port": "Brest"}}
    (reading,) = stream("anthropic", {"type": "content_block_start", "content_block": call})
    assert (reading.tool, reading.tool_calls_whole) == (8 + 16, 1)
    body = orjson.dumps({"type": "message", "content": [call], "usage": {"input_tokens": 1, "output_tokens": 2}})
    assert READERS["anthropic"].read_body(body).tool == 8 + 16


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"promptTokenCount": 44, "totalTokenCount": 44}, (44, None)),
        ({"promptTokenCount": 44, "candidatesTokenCount": 3, "totalTokenCount": 47}, (44, 3)),
        ({"promptTokenCount": 44, "thoughtsTokenCount": 20, "totalTokenCount": 64}, (44, 20)),
    ],
)
def test_no_count_beside_an_answer_of_gemini_is_no_zero(
    counts: dict[str, Any], expected: tuple[int, int | None]
) -> None:
    candidate = {"content": {"parts": [{"text": "Brest"}]}}
    usage = total(stream("gemini", {"candidates": [candidate], "usageMetadata": counts}))
    assert (usage.input, usage.output) == expected


@pytest.mark.parametrize(
    ("usage", "tier"),
    [
        ({"trafficType": "ON_DEMAND"}, "standard"),
        ({"trafficType": "ON_DEMAND_PRIORITY"}, "priority"),
        ({"trafficType": "ON_DEMAND_FLEX"}, "flex"),
        ({"trafficType": "PROVISIONED_THROUGHPUT"}, "PROVISIONED_THROUGHPUT"),
        ({"serviceTier": "flex", "trafficType": "ON_DEMAND"}, "flex"),
        ({}, None),
    ],
)
def test_the_tier_of_gemini_may_be_told_as_traffic(usage: dict[str, Any], tier: str | None) -> None:
    assert stream("gemini", {"usageMetadata": {"promptTokenCount": 1, **usage}})[0].tier == tier


def test_reasons_that_google_has_not_set_are_none() -> None:
    candidate = {"content": {"parts": [{"text": "a"}]}, "finishReason": "FINISH_REASON_UNSPECIFIED"}
    feedback = {"blockReason": "BLOCK_REASON_UNSPECIFIED"}
    going, still = stream("gemini", {"candidates": [candidate]}, {"promptFeedback": feedback})
    assert going.finish is None
    assert (still.finish, still.error) == (None, None)


def responses_event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def test_what_is_done_in_responses_counts_where_no_piece_of_it_was_streamed() -> None:
    item = {"type": "function_call", "name": "get_tide", "arguments": ""}
    readings = stream(
        "responses",
        responses_event("output_text.delta", output_index=0, item_id="a", delta="Let me look."),
        responses_event("output_text.done", output_index=0, item_id="b", text="Let me look."),
        responses_event("output_item.added", output_index=1, item=item),
        responses_event("function_call_arguments.done", output_index=1, arguments='{"port":"Brest"}'),
        responses_event("output_item.added", output_index=2, item=item),
        responses_event("function_call_arguments.delta", output_index=2, delta='{"port":'),
        responses_event("function_call_arguments.delta", output_index=2, delta='"Brest"}'),
        responses_event("function_call_arguments.done", output_index=2, arguments='{"port":"Brest"}'),
    )
    assert chars(readings) == (12, 0, 2 * (8 + 16))
    assert [reading.tool_calls_whole for reading in readings] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert [reading.repeat for reading in readings] == [0, 12, 0, 0, 0, 0, 0, 16]


def test_a_summary_that_comes_in_one_piece_is_a_summary() -> None:
    (reading,) = stream("responses", responses_event("reasoning_summary_text.done", output_index=0, text="Hm"))
    assert (reading.reasoning, reading.summarised, reading.tool_calls_whole) == (2, True, 0)


def test_a_failed_response_tells_what_it_used() -> None:
    response = {"error": {"code": "server_error", "message": "x"}, "usage": {"input_tokens": 5, "output_tokens": 3}}
    (reading,) = stream("responses", responses_event("failed", response=response))
    assert reading.error is not None
    assert reading.usage is not None
    assert reading.usage.output == 3


def test_zeros_of_ollama_are_no_counts() -> None:
    (reading,) = stream("ollama", {"done": True, "prompt_eval_count": 0, "eval_count": 0})
    assert (reading.usage, reading.terminal) == (None, True)


TEXTUAL = pytest.mark.parametrize("dialect", sorted(set(READERS) - {"bedrock"}))


@TEXTUAL
def test_an_end_marker_and_signs_of_life_are_known_in_every_dialect(dialect: str) -> None:
    done, empty, ping, beat, bad = stream(dialect, b"[DONE]", b"", (b"ping", b""), (b"heartbeat", b"now"), b"{half")
    assert done.terminal
    assert empty.ping
    assert ping.ping
    assert beat.ping
    assert bad.bad
    assert [reading.bad for reading in (done, empty, ping, beat)] == [False] * 4


@TEXTUAL
def test_an_error_in_plain_words_is_an_error_in_every_dialect(dialect: str) -> None:
    (reading,) = stream(dialect, (b"error", b"upstream gave up"))
    assert reading.error is not None
    assert reading.error.message == "upstream gave up"


@READER
@pytest.mark.parametrize("field", ["message", "code", "param"])
def test_half_a_surrogate_pair_in_an_error_can_be_written_down(name: str, field: str) -> None:
    payload = b'{"type":"error","error":{"%s":"a\\ud800"}}' % field.encode()
    for event in (None, b"error", b"exception:x"):
        sane(READERS[name].read_event(event, payload))


STREAMS = st.lists(st.tuples(NAMES, EVENTS.map(orjson.dumps) | JSON.map(orjson.dumps)), max_size=8)


@READER
@given(events=STREAMS)
@settings(deadline=None, max_examples=100)
def test_no_stream_is_too_odd_to_be_read(name: str, events: list[tuple[bytes | None, bytes]]) -> None:
    for reading in stream(name, *events):
        reading.reasoning = max(0, reading.reasoning)  # what looked like a thinking tag is given back
        sane(reading)


DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": JSON | st.sampled_from(["<think>", "<", "think>", "</think>", "a"]),
        "reasoning": JSON | st.sampled_from(["a", "ab", "abc"]),
        "reasoning_details": JSON
        | st.lists(st.fixed_dictionaries({"text": JSON | st.sampled_from(["a", "ab", "abc"])})),
    },
)


@given(deltas=st.lists(DELTAS, max_size=8))
@settings(deadline=None, max_examples=300)
def test_no_thinking_is_too_odd_to_be_read(deltas: list[Any]) -> None:
    seen = 0
    for reading in stream("openai", *({"choices": [{"index": 0, "delta": delta}]} for delta in deltas)):
        # What looked like a tag and was none is given back later.
        seen += reading.reasoning
        assert seen >= 0
        assert reading.content >= 0
        assert reading.content + reading.reasoning >= 0
