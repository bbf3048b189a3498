"""Errors of OpenAI-style vendors: inside a 200 stream and as answers, each shape as one row."""

from typing import Any

import orjson
import pytest

from gateway.core.errors import FAILURES
from gateway.providers.openai import OpenAIDialect
from gateway.providers.openai_errors import LONGEST_MESSAGE

DIALECT = OpenAIDialect()
NONE: frozenset[int] = frozenset()

IN_STREAM: list[tuple[str, bytes | None, Any, str, Any]] = [
    ("object", None, {"error": {"message": "x", "type": "server_error", "code": None}}, "server_error", "server_error"),
    ("code as int", None, {"error": {"message": "x", "type": "InternalServerError", "code": 500}}, "server_error", 500),
    ("code as int, the caller's", None, {"error": {"message": "bad seed", "code": 400}}, "bad_request", 400),
    ("code as digits", None, {"error": {"message": "x", "code": "429"}}, "rate_limited", "429"),
    ("string", None, {"error": "upstream went away"}, "server_error", None),
    ("no description", None, {"error": {}, "choices": [], "message": "m", "code": 1}, "none", None),
    ("by event name", b"error", {"message": "overloaded", "code": "overloaded"}, "overloaded", "overloaded"),
    ("by event name, with nothing known", b"error", {"choices": []}, "server_error", None),
    (
        "context overflow in words",
        b"error",
        {"error": {"message": "Trying to keep the first 9000 tokens when context the overflows."}},
        "context_length",
        None,
    ),
    (
        "OpenRouter",
        None,
        {
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            "error": {"code": 502, "message": "Provider disconnected", "metadata": {"error_type": "x"}},
        },
        "server_error",
        502,
    ),
    (
        "OpenRouter tells the provider's words",
        None,
        {
            "choices": [],
            "error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": "prompt is too long"}},
        },
        "context_length",
        400,
    ),
    (
        "error in the choice",
        None,
        {"choices": [{"index": 0, "error": {"code": 429, "message": "x"}}]},
        "rate_limited",
        429,
    ),
    ("Cerebras", None, {"error": {"message": "busy"}, "status_code": 503}, "overloaded", None),
    ("Cerebras, bare", None, {"message": "busy", "status_code": 429}, "rate_limited", 429),
    ("TGI", None, {"error": {"message": "x", "http_status_code": 429}}, "rate_limited", None),
    ("MiniMax rate", None, {"choices": None, "base_resp": {"status_code": 1002}}, "rate_limited", 1002),
    ("MiniMax unknown", None, {"base_resp": {"status_code": 1234, "status_msg": "?"}}, "server_error", 1234),
    ("Groq", None, {"choices": [], "x_groq": {"id": "r", "error": "over_capacity"}}, "overloaded", None),
    ("finish insufficient_system_resource", None, "insufficient_system_resource", "overloaded", None),
    ("finish error", None, "error", "server_error", None),
    ("finish network_error", None, "network_error", "server_error", None),
    ("flat type", None, {"type": "error", "error": {"type": "overloaded_error"}}, "overloaded", "overloaded_error"),
    ("object error", None, {"object": "error", "message": "x", "code": 40303}, "server_error", 40303),
    ("list", None, [{"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}], "overloaded", 503),
    ("FastAPI", None, {"detail": "no such route"}, "server_error", None),
]


@pytest.mark.parametrize(
    ("name", "event", "code", "wire_code"), [row[1:] for row in IN_STREAM], ids=[row[0] for row in IN_STREAM]
)
def test_an_error_in_a_stream_is_found(name: bytes | None, event: Any, code: str, wire_code: Any) -> None:
    if isinstance(event, str):
        wire_code = event
        event = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": event}]}
    reading = DIALECT.read_event(name, orjson.dumps(event))
    assert not reading.bad
    if code == "none":
        assert reading.error is None
        return
    assert reading.error is not None
    assert (reading.error.code, reading.error.wire_code) == (code, wire_code)


@pytest.mark.parametrize("payload", [b"upstream went away", b"\xff\xfe", b"{"])
def test_an_error_event_in_plain_words_is_an_error(payload: bytes) -> None:
    reading = DIALECT.read_event(b"error", payload)
    assert reading.error is not None
    assert reading.error.code == "server_error"


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [], "error": None},
        {"choices": [], "error": ""},
        {"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}},
        {"choices": [], "status_code": 200},
        {"choices": [], "x_groq": {"id": "r"}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "model_context_window_exceeded"}]},
        {"type": "ping"},
        {},
    ],
)
def test_what_only_looks_like_an_error_is_none(event: Any) -> None:
    assert DIALECT.read_event(None, orjson.dumps(event)).error is None


def error(message: str = "x", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


ANSWERS: list[tuple[str, int, Any, str]] = [
    ("401", 401, error(), "auth"),
    ("403", 403, error(), "auth"),
    ("403 of a moderation", 403, error("Your input was flagged"), "content_filter"),
    ("403 that requires moderation", 403, error("this model requires moderation"), "content_filter"),
    ("403 without credits", 403, error("Your team has used all available credits"), "quota"),
    ("402", 402, error(), "quota"),
    ("404", 404, error(code="model_not_found"), "not_found"),
    ("408", 408, error(), "server_error"),
    ("425", 425, error(), "server_error"),
    ("424 ModelError", 424, error(), "server_error"),
    ("429", 429, error(code="rate_limit_exceeded"), "rate_limited"),
    ("429 for quota", 429, error(type="insufficient_quota", code="insufficient_quota"), "quota"),
    ("429 for balance", 429, error(type="exceeded_current_quota_error"), "quota"),
    ("429 of Z.ai for balance", 429, error(code="1113"), "quota"),
    ("429 of an overloaded engine", 429, error(type="engine_overloaded_error"), "overloaded"),
    ("429 with a context word", 429, error("maximum context length"), "rate_limited"),
    ("498", 498, error(code="capacity_exceeded"), "overloaded"),
    ("500", 500, error(), "server_error"),
    ("502", 502, b"<html>bad gateway</html>", "server_error"),
    ("503", 503, b"", "overloaded"),
    ("504", 504, error(), "server_error"),
    ("529", 529, error(), "overloaded"),
    ("599", 599, error(), "server_error"),
    ("400", 400, error("seed must be an integer", param="seed"), "bad_request"),
    ("409", 409, error(), "bad_request"),
    ("context by code", 400, error(code="context_length_exceeded", type="invalid_request_error"), "context_length"),
    ("context of llama.cpp", 400, error(code=400, type="exceed_context_size_error", n_ctx=4096), "context_length"),
    ("context of vLLM", 400, error("This model's maximum context length is 8192 tokens", code=400), "context_length"),
    ("context of Groq", 400, error("Please reduce the length of the messages or completion."), "context_length"),
    ("context of Qwen", 400, error("Range of input length should be [1, 30720]"), "context_length"),
    ("context of Anthropic", 400, error("prompt is too long: 250000 tokens > 200000 maximum"), "context_length"),
    (
        "context of Mistral",
        400,
        {"object": "error", "message": "40000 tokens, too large for 32768 maximum context length"},
        "context_length",
    ),
    ("context of Z.ai", 400, error(code="1261"), "context_length"),
    ("413", 413, error("body too big"), "bad_request"),
    ("413 of Groq", 413, error("Request too large for model", code="rate_limit_exceeded"), "context_length"),
    ("filter of Azure", 400, error(code="content_filter"), "content_filter"),
    (
        "filter of Qwen",
        400,
        error("Input data may contain inappropriate content.", code="data_inspection_failed"),
        "content_filter",
    ),
    ("key told as 400", 400, error("API key not valid. Please pass a valid API key."), "auth"),
    (
        "key told as 400 by xAI",
        400,
        {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xx"},
        "auth",
    ),
    ("arrears", 400, error(code="Arrearage"), "quota"),
    ("model told as 400", 400, error(code="model_not_found"), "not_found"),
    (
        "422 of FastAPI",
        422,
        {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
        "bad_request",
    ),
    ("Groq tool use", 400, error("Failed to call a function", code="tool_use_failed"), "bad_request"),
    ("server_error told as 400", 400, error(type="server_error"), "bad_request"),
    ("array", 400, [error("bad", code=400, status="INVALID_ARGUMENT")], "bad_request"),
    ("a number", 400, 7, "bad_request"),
    ("deep", 400, b"[" * 100_000, "bad_request"),
]


@pytest.mark.parametrize(("status", "body", "code"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_error_answer_is_understood(status: int, body: Any, code: str) -> None:
    payload = body if isinstance(body, bytes) else orjson.dumps(body)
    found = DIALECT.read_error(status, payload, NONE)
    assert found.code == code
    assert found.code in FAILURES


def test_a_status_the_provider_is_known_to_misuse_is_its_own_fault() -> None:
    payload = orjson.dumps(error("maximum context length"))
    assert DIALECT.read_error(400, payload, frozenset({400})).code == "server_error"
    assert DIALECT.read_error(422, payload, frozenset({400})).code == "context_length"


MESSAGES: list[tuple[Any, str | None, str | None]] = [
    (error("seed is wrong", param="seed"), "seed is wrong", "seed"),
    ({"error": "plain words"}, "plain words", None),
    ({"message": "top"}, "top", None),
    ({"detail": "not here"}, "not here", None),
    (
        {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": "No"}]}},
        "body.x: No",
        "x",
    ),
    (
        {"detail": [{"loc": ["body", "a"], "msg": "one"}, {"loc": ["body", "b"], "msg": "two"}]},
        "body.a: one; body.b: two",
        "a",
    ),
    ({"errors": [{"message": "first"}]}, "first", None),
    ([error("in a list")], "in a list", None),
    (b"plain text\n", "plain text", None),
    (b"<html><body>502</body></html>", None, None),
    (b"  <!DOCTYPE html>", None, None),
    (b"", None, None),
    ({"error": {"message": None}}, None, None),
    ({"error": {"message": {"no": "words"}}}, None, None),
    (3, None, None),
]


@pytest.mark.parametrize(("body", "message", "param"), MESSAGES)
def test_the_upstreams_own_words_are_kept(body: Any, message: str | None, param: str | None) -> None:
    payload = body if isinstance(body, bytes) else orjson.dumps(body)
    found = DIALECT.read_error(400, payload, NONE)
    assert (found.message, found.param) == (message, param)


def test_a_huge_error_body_is_cut_short() -> None:
    found = DIALECT.read_error(400, orjson.dumps(error("long " * 100_000)), NONE)
    assert found.message is not None
    assert len(found.message) == LONGEST_MESSAGE
    assert DIALECT.read_error(500, b"x" * 5_000_000, NONE).code == "server_error"
