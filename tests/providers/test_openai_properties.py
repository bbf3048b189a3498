"""Whatever comes over the wire, the dialect answers with a Reading or a WireError, and never raises."""

from dataclasses import replace

import orjson
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import FAILURES
from gateway.core.reading import Reading
from gateway.providers.dialects import DIALECTS

DIALECT = DIALECTS["openai"]

WORDS = """
choices delta message content reasoning reasoning_content reasoning_details tool_calls function name arguments usage
prompt_tokens completion_tokens total_tokens prompt_tokens_details error code type status_code base_resp x_groq
time_info timings metrics finish_reason index text refusal extra_content google thought custom input detail loc msg
errors metadata raw model id service_tier object thinking summary audio
"""
KEYS = st.sampled_from(WORDS.split())
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["", "error", "stop", "thinking", "text", "[DONE]", "400", "context_length_exceeded", "{}"])
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=30
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=3) | JSON,
        "usage": st.dictionaries(KEYS, JSON, max_size=5) | JSON,
        "error": JSON,
        "x_groq": JSON,
        "base_resp": JSON,
        "timings": JSON,
    },
)
NAMES = st.sampled_from([None, b"error", b"message", b"\xff"])


def check(reading: Reading) -> None:
    counts = (reading.content, reading.reasoning, reading.tool, reading.repeat, reading.tool_calls_whole)
    assert all(type(count) is int and count >= 0 for count in counts)
    assert type(reading.choices) is int
    assert reading.choices >= 1
    for text in (reading.model, reading.tier, reading.response_id, reading.finish):
        assert text is None or text.encode()
    if reading.usage is not None:
        usage = reading.usage
        tokens = (usage.input, usage.cached, usage.cache_write, usage.output, usage.reasoning, usage.predicted)
        assert all(count is None or (type(count) is int and count >= 0) for count in tokens)
    if reading.error is not None:
        assert reading.error.code in FAILURES
        assert len(reading.error.message or "") <= 2000
    for value in (reading.server_clock or {}).values():
        assert type(value) is float


@given(NAMES, EVENTS | JSON)
def test_any_json_gives_a_reading(name: bytes | None, event: object) -> None:
    payload = orjson.dumps(event)
    check(DIALECT.read_event(name, payload))
    check(DIALECT.read_body(payload))


@given(NAMES, st.binary(max_size=60))
def test_any_bytes_give_a_reading(name: bytes | None, payload: bytes) -> None:
    check(DIALECT.read_event(name, payload))
    check(DIALECT.read_body(payload))


@given(st.integers(400, 599), EVENTS | JSON)
def test_any_error_answer_is_understood(status: int, event: object) -> None:
    found = DIALECT.read_error(status, orjson.dumps(event), frozenset({410}))
    assert found.code in FAILURES
    assert len(found.message or "") <= 2000


@given(st.integers(400, 599), st.binary(max_size=60))
def test_any_error_bytes_are_understood(status: int, payload: bytes) -> None:
    assert DIALECT.read_error(status, payload, frozenset()).code in FAILURES


DELTAS = st.dictionaries(
    st.sampled_from(["role", "content", "reasoning", "reasoning_content", "tool_calls", "refusal"]),
    st.none() | st.text(max_size=5),
    max_size=3,
)


@given(
    DELTAS,
    st.fixed_dictionaries(
        {}, optional={"index": st.integers(0, 1), "finish_reason": st.none() | st.just("stop"), "logprobs": st.none()}
    ),
    st.dictionaries(st.sampled_from(["model", "id", "usage", "service_tier", "obfuscation"]), st.none() | st.text()),
)
def test_plain_chunks_are_read_alike_by_the_short_and_the_long_way(
    delta: dict[str, object], choice: dict[str, object], event: dict[str, object]
) -> None:
    payload = orjson.dumps({**event, "choices": [{**choice, "delta": delta}]})
    short, long = DIALECT.read_event(None, payload), DIALECT.read_event(b"message", payload)
    assert not long.plain
    # The short way promises that there is nothing else to look at.
    assert replace(short, plain=False) == long


def test_deep_nesting_is_bad_or_read_but_never_raises() -> None:
    for depth in (100, 300, 500, 900, 1100):
        nested = b'{"text":' * depth + b'"x"' + b"}" * depth
        listed = b"[" * depth + b"]" * depth
        for inner in (nested, listed):
            check(DIALECT.read_event(None, b'{"choices":[{"index":0,"delta":{"reasoning":' + inner + b"}}]}"))
            check(DIALECT.read_event(None, b'{"error":' + inner + b"}"))
            check(DIALECT.read_body(b'{"usage":' + inner + b',"choices":[{"message":{"content":' + inner + b"}}]}"))
