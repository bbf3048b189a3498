"""Each vendor's own ways: what bears a token, what counts, what fails, what ends."""

from typing import Any

import orjson
import pytest

from gateway.core.reading import Reading
from gateway.providers.dialects import READERS


def read(dialect: str, body: Any, event: str | None = None) -> Reading:
    return READERS[dialect].read_event(event.encode() if event else None, orjson.dumps(body))


def delta(**fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": fields}


def block(**fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": fields}


def parts(*items: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(items), "role": "model"}, "index": 0, **candidate}]}


# (dialect, event, characters of content, reasoning and tool)
TOKENS: list[tuple[str, dict[str, Any], tuple[int, int, int]]] = [
    ("anthropic", delta(type="text_delta", text="Brest"), (5, 0, 0)),
    ("anthropic", delta(type="text_delta", text=""), (0, 0, 0)),
    ("anthropic", delta(type="thinking_delta", thinking="Hm"), (0, 2, 0)),
    ("anthropic", delta(type="thinking_delta", thinking=""), (0, 0, 0)),
    ("anthropic", delta(type="signature_delta", signature="EqQB"), (0, 0, 0)),
    ("anthropic", delta(type="citations_delta", citation={"cited_text": "x"}), (0, 0, 0)),
    ("anthropic", delta(type="input_json_delta", partial_json='{"a"'), (0, 0, 4)),
    ("anthropic", block(type="tool_use", id="t", name="get_tide", input={}), (0, 0, 8)),
    ("anthropic", block(type="server_tool_use", id="t", name="web_search", input={}), (0, 0, 10)),
    ("anthropic", block(type="text", text=""), (0, 0, 0)),
    ("anthropic", block(type="redacted_thinking", data="enc"), (0, 0, 0)),
    ("anthropic", {"type": "content_block_stop", "index": 0}, (0, 0, 0)),
    ("anthropic", {"type": "a_type_of_tomorrow", "text": "x"}, (0, 0, 0)),
    ("gemini", parts({"text": "Brest"}), (5, 0, 0)),
    ("gemini", parts({"text": "Hm", "thought": True}), (0, 2, 0)),
    ("gemini", parts({"text": "", "thoughtSignature": "E=="}), (0, 0, 0)),
    ("gemini", parts({"functionCall": {"name": "f", "args": {"a": 1}}}), (0, 0, 8)),
    ("gemini", parts({"functionCall": {"name": "f", "willContinue": True}}), (0, 0, 1)),
    ("gemini", parts({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "Bre"}]}}), (0, 0, 3)),
    ("gemini", parts({"executableCode": {"language": "PYTHON", "code": "1+1"}}), (0, 0, 3)),
    ("gemini", {"candidates": []}, (0, 0, 0)),
    ("responses", {"type": "response.output_text.delta", "delta": "Brest"}, (5, 0, 0)),
    ("responses", {"type": "response.refusal.delta", "delta": "No"}, (2, 0, 0)),
    ("responses", {"type": "response.reasoning_text.delta", "delta": "Hm"}, (0, 2, 0)),
    ("responses", {"type": "response.reasoning_summary_text.delta", "delta": "Hm"}, (0, 2, 0)),
    ("responses", {"type": "response.function_call_arguments.delta", "delta": '{"'}, (0, 0, 2)),
    ("responses", {"type": "response.custom_tool_call_input.delta", "delta": "ab"}, (0, 0, 2)),
    ("responses", {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}}, (0, 0, 1)),
    ("responses", {"type": "response.output_item.added", "item": {"type": "message", "content": []}}, (0, 0, 0)),
    ("responses", {"type": "response.function_call_arguments.done", "arguments": "{}"}, (0, 0, 0)),
    ("responses", {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}}, (0, 0, 0)),
    ("cohere", {"type": "content-delta", "delta": {"message": {"content": {"text": "Paris"}}}}, (5, 0, 0)),
    ("cohere", {"type": "content-delta", "delta": {"message": {"content": {"thinking": "Hm"}}}}, (0, 2, 0)),
    ("cohere", {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will"}}}, (0, 6, 0)),
    (
        "cohere",
        {"type": "tool-call-start", "delta": {"message": {"tool_calls": {"function": {"name": "f", "arguments": ""}}}}},
        (0, 0, 1),
    ),
    ("ollama", {"message": {"content": "Brest", "thinking": ""}, "done": False}, (5, 0, 0)),
    ("ollama", {"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}}, (0, 0, 3)),
    ("ollama", {"response": "Brest", "done": False}, (5, 0, 0)),
]


@pytest.mark.parametrize(("dialect", "event", "chars"), TOKENS)
def test_what_bears_a_token(dialect: str, event: dict[str, Any], chars: tuple[int, int, int]) -> None:
    reading = read(dialect, event)
    assert (reading.content, reading.reasoning, reading.tool) == chars
    assert not reading.bad
    assert reading.error is None


@pytest.mark.parametrize(
    ("kind", "message", "chars"),
    [
        ("messageStart", {"role": "assistant"}, (0, 0, 0)),
        ("contentBlockDelta", {"delta": {"text": "Brest"}, "p": "abc"}, (5, 0, 0)),
        ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "Hm"}}}, (0, 2, 0)),
        ("contentBlockDelta", {"delta": {"reasoningContent": {"signature": "E"}}}, (0, 0, 0)),
        ("contentBlockDelta", {"delta": {"toolUse": {"input": '{"a'}}}, (0, 0, 3)),
        ("contentBlockStart", {"start": {"toolUse": {"name": "f", "toolUseId": "t"}}}, (0, 0, 1)),
        ("contentBlockStop", {"contentBlockIndex": 0}, (0, 0, 0)),
    ],
)
def test_what_bears_a_token_at_bedrock(kind: str, message: dict[str, Any], chars: tuple[int, int, int]) -> None:
    reading = read("bedrock", message, kind)
    assert (reading.content, reading.reasoning, reading.tool) == chars
    assert not reading.unknown_delta


@pytest.mark.parametrize(
    ("dialect", "event", "name", "code", "wire_code"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, None, "overloaded", None),
        ("anthropic", {"type": "error", "error": {"type": "api_error", "message": "x"}}, None, "server_error", None),
        ("anthropic", {"error": {"type": "rate_limit_error"}}, "error", "rate_limited", None),
        ("gemini", {"error": {"code": 429, "status": "EXHAUSTED"}}, None, "rate_limited", "EXHAUSTED"),
        ("gemini", [{"error": {"code": 503, "status": "UNAVAILABLE"}}], None, "overloaded", None),
        ("responses", {"type": "error", "code": "server_error", "message": "x"}, None, "server_error", "server_error"),
        ("responses", {"type": "error", "error": {"code": "rate_limit_exceeded"}}, None, "rate_limited", None),
        (
            "responses",
            {"type": "response.failed", "response": {"id": "r", "error": {"code": "server_error", "message": "x"}}},
            None, "server_error", "server_error",
        ),
        ("bedrock", {"message": "x"}, "exception:throttlingException", "rate_limited", "throttlingException"),
        ("bedrock", {"message": "x"}, "exception:modelNotReadyException", "overloaded", None),
        ("bedrock", {"message": "x"}, "exception:validationException", "bad_request", None),
        ("bedrock", {"message": "x"}, "exception:internalServerException", "server_error", None),
        ("bedrock", {"message": "x"}, "exception:somethingNewException", "server_error", "somethingNewException"),
        ("bedrock", {}, "corrupt:", "malformed", None),
        ("cohere", {"message": "too many requests", "code": 429}, None, "rate_limited", None),
        ("cohere", {"type": "message-end", "delta": {"finish_reason": "ERROR"}}, None, "server_error", "ERROR"),
        ("ollama", {"error": "model runner has unexpectedly stopped"}, None, "server_error", None),
    ],
)  # fmt: skip
def test_an_error_inside_a_stream(dialect: str, event: Any, name: str | None, code: str, wire_code: str | None) -> None:
    reading = READERS[dialect].read_event(name.encode() if name else None, orjson.dumps(event))
    assert reading.error is not None
    assert reading.error.code == code
    assert wire_code is None or reading.error.wire_code == wire_code


def test_an_anthropic_prompt_is_the_sum_of_its_parts_and_its_placeholder_no_count() -> None:
    usage = {
        "input_tokens": 12,
        "cache_read_input_tokens": 2048,
        "cache_creation_input_tokens": 100,
        "output_tokens": 7,
    }
    start = read("anthropic", {"type": "message_start", "message": {"id": "m", "model": "c", "usage": usage}})
    assert start.restart
    assert start.usage is not None
    assert (start.usage.input, start.usage.cached, start.usage.cache_write) == (2160, 2048, 100)
    assert start.usage.output is None
    end = read(
        "anthropic", {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}}
    )
    assert end.usage is not None
    assert (end.finish, end.usage.output, end.usage.input) == ("max_tokens", 9, None)


@pytest.mark.parametrize("reason", ["end_turn", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"])
def test_every_stop_reason_of_anthropic_ends_a_message(reason: str) -> None:
    assert read("anthropic", {"type": "message_delta", "delta": {"stop_reason": reason}}).finish == reason


def test_the_speed_that_anthropic_served_is_the_tier() -> None:
    event = {
        "type": "message_delta",
        "delta": {},
        "usage": {"output_tokens": 1, "speed": "fast", "service_tier": "standard"},
    }
    assert read("anthropic", event).tier == "fast"


def test_a_fallback_of_the_server_names_who_serves() -> None:
    event = block(type="fallback", **{"from": {"model": "a"}, "to": {"model": "b"}})
    assert read("anthropic", event).serving_model == "b"


def test_thinking_of_claude_may_be_a_summary() -> None:
    assert read("anthropic", block(type="thinking", thinking="")).summarised
    assert read("anthropic", delta(type="thinking_delta", thinking="x")).summarised
    assert read("bedrock", {"delta": {"reasoningContent": {"signature": "E"}}}, "contentBlockDelta").summarised
    assert not read("bedrock", {"delta": {"reasoningContent": {"text": "x"}}}, "contentBlockDelta").summarised


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 185, "totalTokenCount": 199},
            (9, 190, 185),
        ),
        ({"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}, (9, 5, 0)),
        ({"promptTokenCount": 9, "toolUsePromptTokenCount": 30, "candidatesTokenCount": 5}, (39, 5, 0)),
        ({"promptTokenCount": 44, "totalTokenCount": 44}, (44, 0, 0)),
        ({"promptTokenCount": 9.0, "candidatesTokenCount": 5.0}, (9, 5, 0)),
    ],
)
def test_gemini_counts_thoughts_beside_the_answer(usage: dict[str, Any], counts: tuple[int, int, int]) -> None:
    found = read("gemini", {"usageMetadata": usage}).usage
    assert found is not None
    assert (found.input, found.output, found.reasoning) == counts


def test_gemini_usage_without_counts_is_none() -> None:
    assert read("gemini", {"usageMetadata": {"trafficType": "ON_DEMAND"}}).usage is None


@pytest.mark.parametrize("reason", ["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "A_REASON_OF_TOMORROW"])
def test_every_finish_reason_of_gemini_ends_an_answer(reason: str) -> None:
    assert read("gemini", parts(finishReason=reason)).finish == reason


def test_two_candidates_are_two_choices() -> None:
    two = {"candidates": [{"content": {"parts": [{"text": "a"}]}}, {"content": {"parts": [{"text": "b"}]}, "index": 1}]}
    assert read("gemini", two).choices == 2


@pytest.mark.parametrize("kind", ["keepalive", "response.keep_alive", "ping"])
def test_heartbeats_of_responses_are_pings(kind: str) -> None:
    reading = read("responses", {"type": kind, "sequence_number": 3})
    assert reading.ping
    assert not reading.unknown_delta


def test_a_response_that_hit_its_limit_is_an_answer() -> None:
    response = {
        "id": "r",
        "incomplete_details": {"reason": "max_output_tokens"},
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    reading = read("responses", {"type": "response.incomplete", "response": response})
    assert (reading.finish, reading.terminal, reading.error) == ("max_output_tokens", True, None)
    assert reading.usage is not None


def test_what_is_done_repeats_what_was_streamed() -> None:
    reading = read("responses", {"type": "response.output_text.done", "text": "Brest"})
    assert (reading.repeat, reading.content) == (5, 0)


def test_bedrock_tells_its_usage_after_the_end() -> None:
    assert read("bedrock", {"stopReason": "guardrail_intervened"}, "messageStop").finish == "guardrail_intervened"
    metadata = {
        "usage": {"inputTokens": 22, "outputTokens": 8, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 5},
        "metrics": {"latencyMs": 402},
        "serviceTier": {"type": "priority"},
    }
    reading = read("bedrock", metadata, "metadata")
    assert reading.terminal
    assert reading.usage is not None
    assert (reading.usage.input, reading.usage.cached, reading.usage.output) == (127, 100, 8)
    assert (reading.tier, reading.server_clock) == ("priority", {"total_ms": 402.0})
    optimized = {**metadata, "performanceConfig": {"latency": "optimized"}}
    assert read("bedrock", optimized, "metadata").tier == "optimized"


def test_durations_of_ollama_are_nanoseconds() -> None:
    line = {
        "done": True,
        "done_reason": "length",
        "eval_count": 4,
        "prompt_eval_count": 30,
        "eval_duration": 112_000_000,
    }
    reading = read("ollama", line)
    assert (reading.finish, reading.terminal, reading.server_clock) == ("length", True, {"completion_ms": 112.0})


@pytest.mark.parametrize(
    ("dialect", "body", "chars", "output"),
    [
        (
            "anthropic",
            {
                "type": "message", "model": "c", "stop_reason": "tool_use",
                "usage": {"input_tokens": 1, "output_tokens": 9},
                "content": [{"type": "text", "text": "ab"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}],
            },
            (2, 0, 8), 9,
        ),
        (
            "gemini",
            {**parts({"text": "ab"}), "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}},
            (2, 0, 0), 2,
        ),
        (
            "responses",
            {
                "status": "completed", "usage": {"input_tokens": 1, "output_tokens": 4},
                "output": [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
                    {"type": "message", "content": [{"type": "output_text", "text": "ab"}]},
                    {"type": "function_call", "name": "f", "arguments": "{}"},
                ],
            },
            (2, 2, 3), 4,
        ),
        (
            "bedrock",
            {
                "output": {
                    "message": {"content": [{"text": "ab"}, {"reasoningContent": {"reasoningText": {"text": "Hm"}}}]}
                },
                "stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 3},
            },
            (2, 2, 0), 3,
        ),
        (
            "cohere",
            {"message": {"content": [{"type": "text", "text": "ab"}]}, "usage": {"tokens": {"output_tokens": 3}}},
            (2, 0, 0), 3,
        ),
        ("ollama", {"message": {"content": "ab"}, "done": True, "eval_count": 2}, (2, 0, 0), 2),
    ],
)  # fmt: skip
def test_a_whole_answer(dialect: str, body: dict[str, Any], chars: tuple[int, int, int], output: int) -> None:
    reading = READERS[dialect].read_body(orjson.dumps(body))
    assert (reading.content, reading.reasoning, reading.tool) == chars
    assert reading.usage is not None
    assert reading.usage.output == output
    assert not reading.terminal
