"""Events of the OpenAI dialect: each vendor's habit as one row."""

from typing import Any

import orjson
import pytest

from gateway.core.reading import Reading, Usage
from gateway.providers.openai_events import read_body, read_event


def chunk(delta: Any = None, **fields: Any) -> bytes:
    choice: dict[str, Any] = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": None}
    return orjson.dumps({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **fields})


def counts(reading: Reading) -> tuple[int, int, int]:
    return reading.content, reading.reasoning, reading.tool


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


DELTAS: list[tuple[str, Any, tuple[int, int, int]]] = [
    ("text", {"content": "Tide"}, (4, 0, 0)),
    ("code points, not bytes", {"content": "日本🌊"}, (3, 0, 0)),
    ("role with text", {"role": "assistant", "content": "Hi"}, (2, 0, 0)),
    ("role alone", {"role": "assistant", "content": ""}, (0, 0, 0)),
    ("empty text alone", {"content": ""}, (0, 0, 0)),
    ("empty reasoning alone", {"reasoning": ""}, (0, 0, 0)),
    ("empty role", {"role": "", "reasoning_content": ""}, (0, 0, 0)),
    ("nulls", {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}, (0, 0, 0)),
    ("no delta", None, (0, 0, 0)),
    ("reasoning_content", {"content": None, "reasoning_content": "We"}, (0, 2, 0)),
    ("reasoning", {"reasoning": "Check"}, (0, 5, 0)),
    ("reasoning under two names", {"reasoning": "Check", "reasoning_content": "Check"}, (0, 5, 0)),
    (
        "reasoning and its details",
        {"content": "", "reasoning": "Tides.", "reasoning_details": [part("reasoning.text", text="Tides.")]},
        (0, 6, 0),
    ),
    ("details alone", {"reasoning_details": [part("reasoning.text", text="ab"), part("x", text="c")]}, (0, 3, 0)),
    ("encrypted details", {"reasoning_details": [part("reasoning.encrypted", data="AAAA")]}, (0, 0, 0)),
    ("reasoning as an object", {"reasoning": {"content": "abc"}}, (0, 3, 0)),
    ("text and reasoning in one event", {"content": "ab", "reasoning": "c"}, (2, 1, 0)),
    ("thinking part", {"content": [part("thinking", thinking=[part("text", text="abc")])]}, (0, 3, 0)),
    ("thinking as a string", {"content": [part("thinking", thinking="abc")]}, (0, 3, 0)),
    ("text parts", {"content": [part("text", text="ab"), part("text", text="c"), "de"]}, (5, 0, 0)),
    ("a reference is no token", {"content": [part("reference", reference_ids=[1])]}, (0, 0, 0)),
    ("refusal", {"refusal": "I cannot"}, (8, 0, 0)),
    ("refusal part", {"content": [part("refusal", refusal="No")]}, (2, 0, 0)),
    ("Gemini thought", {"content": "abc", "extra_content": {"google": {"thought": True}}}, (0, 3, 0)),
    ("Gemini signature", {"content": "abc", "extra_content": {"google": {"thought_signature": "x"}}}, (3, 0, 0)),
    ("tool name", {"tool_calls": [{"index": 0, "function": {"name": "get_tide", "arguments": ""}}]}, (0, 0, 8)),
    ("tool arguments", {"tool_calls": [{"index": 0, "function": {"arguments": '{"po'}}]}, (0, 0, 4)),
    ("name repeated as empty", {"tool_calls": [{"function": {"name": "", "arguments": "ab"}}]}, (0, 0, 2)),
    ("null name and arguments", {"tool_calls": [{"function": {"name": None, "arguments": None}}]}, (0, 0, 0)),
    ("arguments as an object", {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, (0, 0, 8)),
    ("tool call as an object", {"tool_calls": {"function": {"name": "f"}}}, (0, 0, 1)),
    ("custom tool", {"tool_calls": [{"type": "custom", "custom": {"name": "f", "input": "abc"}}]}, (0, 0, 4)),
    ("legacy function call", {"function_call": {"name": "f", "arguments": "{}"}}, (0, 0, 3)),
    ("annotations", {"content": "", "annotations": [{"url": "x"}], "token_id": 812}, (0, 0, 0)),
]


@pytest.mark.parametrize(("delta", "expected"), [row[1:] for row in DELTAS], ids=[row[0] for row in DELTAS])
def test_characters_are_counted_by_kind(delta: Any, expected: tuple[int, int, int]) -> None:
    reading = read_event(None, chunk(delta))
    assert counts(reading) == expected
    assert not reading.bad


@pytest.mark.parametrize(("delta", "expected"), [row[1:] for row in DELTAS], ids=[row[0] for row in DELTAS])
def test_an_unusual_event_counts_the_same_as_a_plain_one(delta: Any, expected: tuple[int, int, int]) -> None:
    assert counts(read_event(b"message", chunk(delta, timings={"predicted_ms": 1}, vendor_says=[1]))) == expected


@pytest.mark.parametrize(
    "delta",
    [{"audio": {"data": "AAAA"}}, {"images": [{"url": "x"}]}, {"server_tool": "running"}, {"content": [part("image")]}],
)
def test_an_unknown_delta_is_told_apart_from_an_empty_one(delta: Any) -> None:
    reading = read_event(None, chunk(delta))
    assert reading.unknown_delta
    assert counts(reading) == (0, 0, 0)
    assert not read_event(None, chunk({"role": "assistant", "padding": "xx"})).unknown_delta


@pytest.mark.parametrize(
    ("calls", "whole"),
    [
        ([{"id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}}], 1),
        ([{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g", "arguments": "{}"}}], 2),
        ([{"function": {"name": "f", "arguments": '{"a": {}'}}], 0),
        # The name may have come in an event of its own: what counts is that the arguments are all there.
        ([{"function": {"name": "", "arguments": '{"a": 1}'}}], 1),
        ([{"function": {"arguments": '{"a": '}}], 0),
        ([{"function": {"name": "f", "arguments": ""}}], 0),
        ([{"function": {"name": "f", "arguments": {"a": 1}}}], 1),
    ],
)
def test_a_tool_call_in_one_piece_is_recognised(calls: Any, whole: int) -> None:
    assert read_event(None, chunk({"tool_calls": calls})).tool_calls_whole == whole


def test_a_summary_of_reasoning_is_marked() -> None:
    reading = read_event(None, chunk({"reasoning_details": [part("reasoning.summary", summary="abc")]}))
    assert reading.summarised
    assert reading.reasoning == 3


def test_a_completion_streams_text() -> None:
    payload = b'{"choices":[{"text":" at","index":0,"logprobs":null,"finish_reason":"length"}],"usage":null}'
    reading = read_event(None, payload)
    assert (reading.content, reading.finish) == (3, "length")


def test_a_message_at_the_end_of_a_stream_is_a_repetition() -> None:
    message = {"role": "assistant", "content": "Brest.", "reasoning_content": "Compare."}
    payload = orjson.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
    reading = read_event(None, payload)
    assert counts(reading) == (0, 0, 0)
    assert (reading.repeat, reading.finish) == (14, "stop")


@pytest.mark.parametrize("finish", ["", None, 3, {}])
def test_an_empty_finish_reason_is_none(finish: Any) -> None:
    payload = orjson.dumps({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": finish}]})
    reading = read_event(None, payload)
    assert (reading.finish, reading.content) == (None, 1)


@pytest.mark.parametrize("payload", [b"[DONE]", b"[DONE] ", b" [DONE]\r"])
def test_the_end_marker_is_terminal(payload: bytes) -> None:
    reading = read_event(None, payload)
    assert reading.terminal
    assert not reading.bad


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b'{"a":1}{"b":2}',
        b"[1]",
        b"3",
        b'"x"',
        b"null",
        b'{"a":"\xff"}',
        b"\xff",
        b"[" * 5000,
        b'{"a":' * 5000,
    ],
)
def test_what_is_no_object_is_bad(payload: bytes) -> None:
    assert read_event(None, payload).bad
    assert read_body(payload).bad


def test_lax_json_of_python_servers_is_read() -> None:
    payload = b'{"id":"\\ud83d","choices":[{"index":0,"delta":{"content":"a\\ud83d"},"logprobs":NaN}]}'
    reading = read_event(None, payload)
    assert (reading.content, reading.bad) == (2, False)
    assert reading.response_id is not None
    assert reading.response_id.encode()


def test_several_choices_are_told() -> None:
    assert read_event(None, chunk({"content": "a"})).choices == 1
    second = b'{"choices":[{"index":1,"delta":{"content":"a"},"finish_reason":null}]}'
    assert read_event(None, second).choices == 2
    both = b'{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"bc"}}]}'
    assert (read_event(None, both).choices, read_event(None, both).content) == (2, 3)
    floating = b'{"choices":[{"index":0.0,"delta":{"content":"a","token_id":3},"finish_reason":null}]}'
    assert (read_event(None, floating).choices, read_event(None, floating).content) == (1, 1)


def test_names_come_from_wherever_they_are() -> None:
    reading = read_event(None, chunk({"content": "a"}, service_tier="priority"))
    assert (reading.response_id, reading.model, reading.tier) == ("c", "m", "priority")
    empty = read_event(None, chunk({"content": "a"}, id="", model="", service_tier=None))
    assert (empty.response_id, empty.model, empty.tier) == (None, None, None)
    strange = read_event(None, chunk({"content": "a"}, id=3, model=["m"], service_tier={}))
    assert (strange.response_id, strange.model, strange.tier) == (None, None, None)
    inside = read_event(None, chunk({}, usage={"prompt_tokens": 1, "service_tier": "standard"}))
    assert inside.tier == "standard"


def usage_chunk(usage: Any, **fields: Any) -> bytes:
    return orjson.dumps({"id": "c", "choices": [], "usage": usage, **fields})


USAGES: list[tuple[str, Any, Usage | None]] = [
    ("plain", {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, Usage(input=9, output=4)),
    ("null", None, None),
    ("zeros", {"total_tokens": 0, "total_characters": 0}, None),
    ("no object", [1], None),
    (
        "details",
        {
            "prompt_tokens": 15,
            "completion_tokens": 132,
            "total_tokens": 147,
            "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 128},
        },
        Usage(input=15, cached=3, cache_write=2, output=132, reasoning=128),
    ),
    (
        "reasoning beside the completion, counted",
        {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "total_tokens": 24,
            "completion_tokens_details": {"reasoning_tokens": 9},
        },
        Usage(input=12, output=12, reasoning=9),
    ),
    (
        "reasoning beside the completion, only in the total",
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115},
        Usage(input=10, output=105, reasoning=100),
    ),
    (
        "a total under the sum changes nothing",
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 5},
        Usage(input=10, output=5),
    ),
    ("total without completion", {"prompt_tokens": 10, "total_tokens": 15}, Usage(input=10, output=5)),
    (
        "cache hits of DeepSeek",
        {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 1},
        Usage(input=9, cached=8, output=2),
    ),
    ("cached tokens on top", {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}, Usage(9, 4, None, 2)),
    (
        "reasoning tokens on top",
        {"prompt_tokens": 9, "completion_tokens": 12, "reasoning_tokens": 0, "prompt_tokens_details": None},
        Usage(input=9, output=12, reasoning=0),
    ),
    (
        "predicted output",
        {
            "prompt_tokens": 9,
            "completion_tokens": 12,
            "completion_tokens_details": {"accepted_prediction_tokens": 2, "rejected_prediction_tokens": 3},
        },
        Usage(input=9, output=12, predicted=5),
    ),
    ("floats", {"prompt_tokens": 9.0, "completion_tokens": 4.0}, Usage(input=9, output=4)),
    ("nonsense", {"prompt_tokens": "9", "completion_tokens": -4, "total_tokens": True}, None),
]


@pytest.mark.parametrize(("raw", "expected"), [row[1:] for row in USAGES], ids=[row[0] for row in USAGES])
def test_usage_is_normalised(raw: Any, expected: Usage | None) -> None:
    assert read_event(None, usage_chunk(raw)).usage == expected


def test_usage_is_found_inside_a_choice_and_beside_groqs_name() -> None:
    inside = (
        b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}]}'
    )
    assert read_event(None, inside).usage == Usage(input=1, output=2)
    groq = orjson.dumps({"choices": [], "x_groq": {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}})
    assert read_event(None, groq).usage == Usage(input=1, output=2)


@pytest.mark.parametrize(
    ("event", "pure"),
    [
        ({"choices": [], "usage": {"prompt_tokens": 1}}, True),
        ({"choices": [], "usage": {"prompt_tokens": 1}, "time_info": {"completion_time": 1}}, True),
        ({"choices": [], "usage": {"total_tokens": 0}}, True),
        ({"choices": [], "usage": None}, False),
        ({"choices": [], "prompt_filter_results": [], "id": ""}, False),
        ({"choices": [], "prompt_filter_results": [], "usage": {"prompt_tokens": 1}}, False),
        ({"choices": [], "usage": {"prompt_tokens": 1}, "error": {"message": "x"}}, False),
        ({"choices": None, "usage": {"prompt_tokens": 1}}, False),
        ({"usage": {"prompt_tokens": 1}}, False),
        ({"choices": [{"index": 0, "delta": {"content": ""}}], "usage": {"prompt_tokens": 1}}, False),
    ],
)
def test_only_a_pure_usage_chunk_may_be_cut_out(event: dict[str, Any], pure: bool) -> None:
    assert read_event(None, orjson.dumps(event)).usage_only is pure


CLOCKS: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    (
        "Groq",
        {"x_groq": {"usage": {"queue_time": 0.5, "prompt_time": 0.25, "completion_time": 2, "total_time": 2.25}}},
        {"queue_ms": 500, "prompt_ms": 250, "completion_ms": 2000, "total_ms": 2250},
    ),
    ("Cerebras", {"time_info": {"completion_time": 0.0171, "created": 1.5}}, {"completion_ms": 17.1}),
    (
        "llama.cpp",
        {"timings": {"prompt_ms": 1890.0, "predicted_ms": 90.0, "predicted_per_second": 33.3}},
        {"prompt_ms": 1890, "completion_ms": 90, "tokens_per_s": 33.3},
    ),
    (
        "Fireworks",
        {"perf_metrics": {"server-time-to-first-token": "0.25", "server-processing-time": "1.5s"}},
        {"ttft_ms": 250, "total_ms": 1500},
    ),
    (
        "SambaNova",
        {"usage": {"prompt_tokens": 1, "time_to_first_token": 0.5, "completion_tokens_after_first_per_sec": 99.5}},
        {"ttft_ms": 500, "tokens_per_s": 99.5},
    ),
    (
        "vLLM",
        {"usage": {"prompt_tokens": 1}, "metrics": {"queue_time_ms": 3, "mean_itl_ms": 7.5, "tokens_per_second": 1}},
        {"queue_ms": 3, "itl_ms": 7.5},
    ),
]


@pytest.mark.parametrize(("event", "clock"), [row[1:] for row in CLOCKS], ids=[row[0] for row in CLOCKS])
def test_server_clocks_read_in_milliseconds(event: dict[str, Any], clock: dict[str, float]) -> None:
    found = read_event(None, orjson.dumps({"choices": [], **event})).server_clock
    assert found == pytest.approx(clock)


def test_an_event_without_a_clock_has_none() -> None:
    assert read_event(None, chunk({"content": "a"})).server_clock is None
    assert read_event(None, chunk({}, timings={"predicted_ms": -1, "prompt_ms": "soon"})).server_clock is None


def test_cached_tokens_of_llama_cpp_come_from_its_timings() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    reading = read_event(None, usage_chunk(usage, timings={"cache_n": 5}))
    assert reading.usage == Usage(input=9, cached=5, output=2)


def test_a_whole_answer_is_generated_text_and_no_repetition() -> None:
    message = {
        "role": "assistant",
        "content": "Brest.",
        "reasoning_content": "Compare.",
        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
        "annotations": [],
    }
    body = {"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    reading = read_body(orjson.dumps({**body, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}))
    assert counts(reading) == (6, 8, 3)
    assert (reading.repeat, reading.finish, reading.tool_calls_whole) == (0, "stop", 1)
    assert reading.usage == Usage(input=3, output=4)
    completion = read_body(b'{"choices":[{"text":"abc","index":0,"finish_reason":"length"}]}')
    assert (completion.content, completion.finish) == (3, "length")


def test_an_error_in_a_whole_answer_is_found() -> None:
    reading = read_body(b'\n\n{"error":{"message":"Provider returned error","code":502}}')
    assert reading.error is not None
    assert (reading.error.code, reading.error.wire_code) == ("server_error", 502)
    minimax = read_body(b'{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}')
    assert minimax.error is not None
    assert minimax.error.code == "quota"
    google = read_body(b'[{"error":{"message":"x","code":503}}]')
    assert google.error is not None
    assert google.error.code == "overloaded"
