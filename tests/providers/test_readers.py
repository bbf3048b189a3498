"""What every reader of a wire format keeps to, whatever bytes come."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.reading import Reading
from gateway.core.types import Quirks
from gateway.providers.dialects import DIALECTS, READERS
from gateway.upstream.framers import FRAMERS

WORDS = (
    *(
        "type",
        "delta",
        "message",
        "content",
        "text",
        "thinking",
        "usage",
        "output_tokens",
        "input_tokens",
        "error",
        "code",
    ),
    *("candidates", "parts", "usageMetadata", "promptTokenCount", "functionCall", "args", "name", "finishReason"),
    *(
        "response",
        "output",
        "item",
        "summary",
        "start",
        "toolUse",
        "reasoningContent",
        "metrics",
        "latencyMs",
        "tool_calls",
    ),
    *("function", "arguments", "done", "eval_count", "content_block", "stop_reason", "promptFeedback", "blockReason"),
)
KINDS = (
    *("message_start", "content_block_delta", "content_block_start", "message_delta", "error", "ping"),
    *("response.created", "response.output_text.delta", "response.completed", "response.failed"),
    *("contentBlockDelta", "contentBlockStart", "metadata", "messageStop", "content-delta", "message-end"),
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 10**15) | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(KINDS)
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)
EVENTS = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=6)
NAMES = st.none() | st.sampled_from([kind.encode() for kind in KINDS]) | st.binary(max_size=12)
READER = pytest.mark.parametrize("name", sorted(READERS))


def sane(reading: Reading) -> None:
    assert min(reading.content, reading.reasoning, reading.tool, reading.repeat) >= 0
    assert reading.choices >= 1
    if reading.usage is not None:
        counts = (reading.usage.input, reading.usage.cached, reading.usage.output, reading.usage.reasoning)
        assert all(count is None or (type(count) is int and count >= 0) for count in counts)
    orjson.dumps([reading.model, reading.tier, reading.response_id, reading.finish])
    if reading.error is not None:
        orjson.dumps([reading.error.message, reading.error.wire_code, reading.error.param])


@READER
@given(event=NAMES, payload=EVENTS.map(orjson.dumps) | JSON.map(orjson.dumps) | st.binary(max_size=40))
@settings(deadline=None, max_examples=150)
def test_no_event_is_too_odd_to_be_read(name: str, event: bytes | None, payload: bytes) -> None:
    wire = READERS[name]
    sane(wire.read_event(event, payload))
    sane(wire.reader(Quirks())(event, payload))
    sane(wire.read_body(payload))
    assert wire.read_error(503, payload, frozenset()).code == "overloaded"


@READER
def test_nesting_that_is_an_attack_is_read_or_bad(name: str) -> None:
    wire = READERS[name]
    for depth in (100, 1000, 100_000):
        for payload in (b"[" * depth + b"]" * depth, b'{"message":' * depth + b"1" + b"}" * depth):
            sane(wire.read_event(None, payload))
            sane(wire.read_body(payload))


@READER
def test_half_a_surrogate_pair_does_not_travel_on(name: str) -> None:
    wire = READERS[name]
    for key in ("model", "id", "modelVersion", "responseId", "done_reason"):
        sane(wire.read_event(None, b'{"%s":"\\ud800","type":"message_start","done":true}' % key.encode()))


def test_the_tables_agree() -> None:
    assert {name: wire.name for name, wire in READERS.items()} == {name: name for name in READERS}
    assert {wire.framing for wire in READERS.values()} == set(FRAMERS)
    assert set(DIALECTS) <= set(READERS)
