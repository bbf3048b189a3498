"""The OpenAI dialect as its vendors speak it, in any mixture of their ways, with a truth that is known."""

from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.record import Measurement
from tests.metering.replaying import Replay

STEP_S = 0.01
LEAD = (
    b": keep-alive\n\n",
    b": OPENROUTER PROCESSING\n\n",
    b":\n\n",
    b"data: \n\n",
    b"event: ping\ndata:\n\n",
    b'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}],"id":"","model":"","created":0}\n\n',
    (
        b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}],'
        b'"prompt_progress":{"total":9,"processed":4}}\n\n'
    ),
    b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
    b'data: {"id":"c","choices":[{"index":0,"delta":{"role":""}}]}\n\n',
    b'data: {"id":"c","choices":null}\n\n',
    b'data: {"id":"c","choices":[{"index":0,"delta":null,"finish_reason":""}]}\n\n',
)
REASONING = ("reasoning_content", "reasoning", "both", "parts", "details", "grown details", "inline")
USAGE = ("trailing", "finish", "choice", "x_groq", "every", "zeros", "full message", "twice")
COUNTED = ("inside", "beside", "no total", "floats", "no details")
CACHED = ("details", "hit", "top", "none")


@dataclass(frozen=True, slots=True)
class Ways:
    """How one vendor speaks."""

    reasoning: str
    usage: str
    counted: str
    cached: str
    lead: tuple[bytes, ...]
    nulls: bool
    role: bool
    doubled: bool
    extras: bool
    done: bool
    line_end: bytes
    space: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What was really generated."""

    thoughts: tuple[str, ...]
    texts: tuple[str, ...]
    prompt: int
    cached: int
    output: int
    reasoning: int


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    prompt = draw(st.integers(1, 10_000))
    thoughts = tuple(draw(st.lists(TEXT.map(lambda text: text.replace("<", ".")), max_size=5)))
    reasoning = draw(st.integers(1, 400)) if thoughts else 0
    texts = draw(st.lists(TEXT, min_size=1, max_size=6))
    return Answer(
        thoughts,
        ("." + texts[0], *texts[1:]),
        prompt,
        draw(st.integers(0, prompt)),
        reasoning + draw(st.integers(1, 400)),
        reasoning,
    )


WAYS = st.builds(
    Ways,
    reasoning=st.sampled_from(REASONING),
    usage=st.sampled_from(USAGE),
    counted=st.sampled_from(COUNTED),
    cached=st.sampled_from(CACHED),
    lead=st.lists(st.sampled_from(LEAD), max_size=3).map(tuple),
    nulls=st.booleans(),
    role=st.booleans(),
    doubled=st.booleans(),
    extras=st.booleans(),
    done=st.booleans(),
    line_end=st.sampled_from((b"\n", b"\r\n", b"\r")),
    space=st.booleans(),
)


def usage_of(answer: Answer, ways: Ways) -> dict[str, Any]:
    completion = answer.output - (answer.reasoning if ways.counted == "beside" else 0)
    found: dict[str, Any] = {"prompt_tokens": answer.prompt, "completion_tokens": completion}
    if ways.counted != "no total":
        found["total_tokens"] = answer.prompt + answer.output
    if ways.counted != "no details":
        found["completion_tokens_details"] = {"reasoning_tokens": answer.reasoning}
    if ways.cached == "details":
        found["prompt_tokens_details"] = {"cached_tokens": answer.cached}
    elif ways.cached != "none":
        found["prompt_cache_hit_tokens" if ways.cached == "hit" else "cached_tokens"] = answer.cached
    if ways.counted == "floats":
        found = {key: float(value) if type(value) is int else value for key, value in found.items()}
    return found


def deltas_of(answer: Answer, ways: Ways) -> list[dict[str, Any]]:
    """The token-bearing deltas, in order."""
    deltas: list[dict[str, Any]] = []
    for number, text in enumerate(answer.thoughts):
        grown = "".join(answer.thoughts[: number + 1])
        deltas.append(
            {
                "reasoning_content": {"reasoning_content": text},
                "reasoning": {"reasoning": text},
                "both": {"reasoning": text, "reasoning_details": [{"type": "reasoning.text", "text": text}]},
                "parts": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]},
                "details": {"reasoning_content": text, "reasoning_details": [{"text": text}]},
                "grown details": {"reasoning_details": [{"text": grown}]},
                "inline": {"content": text},
            }[ways.reasoning]
        )
    if answer.thoughts and ways.reasoning == "inline":
        deltas = [{"content": "<think>"}, *deltas, {"content": "</think>"}]
    return [*deltas, *({"content": text} for text in answer.texts)]


def chunk(delta: dict[str, Any], ways: Ways, **more: Any) -> dict[str, Any]:
    finish, usage = more.pop("finish", None), more.pop("choice_usage", None)
    if ways.nulls:
        delta = {"refusal": None, "tool_calls": None, "content": None, **delta}
    if ways.role:
        delta = {"role": "assistant", **delta}
    choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish}
    if usage is not None:
        choice["usage"] = usage
    if ways.doubled and type(delta.get("content")) is str:
        choice["text"] = delta["content"]
    if ways.extras:
        choice |= {"matched_stop": None, "native_finish_reason": finish, "seed": None}
        more |= {"obfuscation": "aXbYc", "provider": "Somebody"}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def stream_of(answer: Answer, ways: Ways) -> tuple[list[bytes], int]:
    """The events, and how many of them come before the first token."""
    usage, zeros = usage_of(answer, ways), {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    bodies = []
    for number, delta in enumerate(deltas_of(answer, ways)):
        more: dict[str, Any] = {"usage": None} if ways.nulls else {}
        if ways.usage == "every":
            more = {"usage": {"prompt_tokens": answer.prompt, "completion_tokens": number + 1}}
        elif ways.usage == "zeros":
            more = {"usage": zeros}
        bodies.append(chunk(delta, ways, **more))
    at_finish: dict[str, Any] = {}
    if ways.usage in ("finish", "every", "twice"):
        at_finish = {"usage": usage}
    elif ways.usage == "choice":
        at_finish = {"choice_usage": usage}
    elif ways.usage == "x_groq":
        at_finish = {"x_groq": {"id": "r", "usage": usage}, "usage": usage}
    bodies.append(chunk({}, ways, finish="stop", **at_finish))
    if ways.usage in ("trailing", "zeros", "twice"):
        bodies.append({"id": "c1", "choices": [], "usage": usage})
    elif ways.usage == "full message":
        message = {"role": "assistant", "content": "".join(answer.texts), "reasoning_content": "".join(answer.thoughts)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        bodies.append({"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage})
    before = b"data: " if ways.space else b"data:"
    events = [*ways.lead, *(before + orjson.dumps(body) + b"\n\n" for body in bodies)]
    if ways.done:
        events.append(b"data: [DONE]\n\n")
    return [event.replace(b"\n", ways.line_end) for event in events], len(ways.lead)


def played(events: list[bytes]) -> tuple[Measurement, Replay]:
    replay = Replay("openai")
    for number, event in enumerate(events):
        replay.feed(event, number * STEP_S)
    replay.flush(len(events) * STEP_S)
    return replay.result(len(events) * STEP_S), replay


@given(answer=answers(), ways=WAYS)
@settings(deadline=None, max_examples=400)
def test_any_mixture_of_vendors_ways_reads_as_what_was_generated(answer: Answer, ways: Ways) -> None:
    events, lead = stream_of(answer, ways)
    measured, replay = played(events)
    tags = len("<think></think>") if ways.reasoning == "inline" and answer.thoughts else 0
    assert measured.chars.content == sum(map(len, answer.texts))
    assert measured.chars.reasoning == sum(map(len, answer.thoughts)) + tags
    assert measured.stream_events.tokens == len(deltas_of(answer, ways))
    assert measured.stream_events.bad == 0
    assert (measured.tokens.input, measured.tokens.source) == (answer.prompt, "usage")
    assert measured.tokens.output == answer.output
    assert measured.tokens.cached == (None if ways.cached == "none" else answer.cached)
    if ways.counted not in ("no details", "beside"):
        assert measured.tokens.reasoning == answer.reasoning
    assert (replay.error, measured.terminated, measured.finish_reason) == (None, True, "stop")
    assert not measured.splice
    # With CR alone an event may not be known to be over before the next read: its moment is then one read late.
    late = 0 if ways.line_end == b"\n" else 1
    assert measured.timing.ttft_ms is not None
    assert lead * 1000 * STEP_S - 1e-6 <= measured.timing.ttft_ms <= (lead + late) * 1000 * STEP_S + 1e-6


ERRORS: list[tuple[str, str, bytes, str]] = [
    (
        "E: OpenAI, Together", "",
        b'{"error":{"message":"x","type":"server_error","param":null,"code":null}}',
        "server_error",
    ),
    (
        "E: vLLM, SGLang", "",
        b'{"error":{"message":"x","type":"InternalServerError","param":null,"code":500}}',
        "server_error",
    ),
    ("E: Groq, LM Studio", "error", b'{"error":{"message":"x","type":"over_capacity"}}', "overloaded"),
    (
        "E: OpenRouter", "",
        b'{"id":"c","error":{"code":502,"message":"x","metadata":{"provider_code":null}},"choices":[]}',
        "server_error",
    ),
    (
        "E: OpenRouter, with an end", "",
        (b'{"id":"c","error":{"code":429,"message":"x"},'
        b'"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}'),
        "rate_limited",
    ),
    ("E: Cerebras", "", b'{"error":{"message":"x","code":"queue_full"},"status_code":429}', "rate_limited"),
    ("E: TGI", "", b'{"error":{"message":"x","http_status_code":424}}', "server_error"),
    ("E: TGI, older", "", b'{"error":"Model is overloaded","error_type":"overloaded"}', "server_error"),
    ("E: Gemini compat", "", b'[{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}]', "overloaded"),
    ("E: MiniMax", "", b'{"id":"c","choices":null,"base_resp":{"status_code":1002,"status_msg":"x"}}', "rate_limited"),
    (
        "E: Groq, x_groq", "",
        b'{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":null}],"x_groq":{"error":"x"}}',
        "server_error",
    ),
    (
        "E: DeepSeek", "",
        b'{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}',
        "overloaded",
    ),
    ("E: Z.ai", "", b'{"choices":[{"index":0,"delta":{},"finish_reason":"network_error"}]}', "server_error"),
    ("E: Z.ai, business code", "", b'{"error":{"code":"1302","message":"x"}}', "rate_limited"),
    ("E: Z.ai, flat", "", b'{"code":500,"msg":"x","success":false}', "server_error"),
    ("E: Mistral", "", b'{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}', "server_error"),
    (
        "E: Mistral, object", "",
        b'{"object":"error","message":{"detail":[{"loc":["body","x"],"msg":"no"}]}}',
        "server_error",
    ),
    ("E: Qwen", "", b'{"code":"Throttling.RateQuota","message":"x","request_id":"r"}', "rate_limited"),
    ("E: plain words", "error", b"upstream gave up", "server_error"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "name", "payload", "code"), ERRORS, ids=[row for row, *_ in ERRORS])
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_no_error_within_a_stream_passes_for_an_answer(
    row: str, name: str, payload: bytes, code: str, done: bool, before: bool
) -> None:
    events = [b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Half"},"finish_reason":null}]}\n\n'] * before
    events.append((f"event: {name}\n".encode() if name else b"") + b"data: " + payload + b"\n\n")
    measured, replay = played(events + [b"data: [DONE]\n\n"] * done)
    assert replay.error is not None, row
    assert replay.error.code == code
    assert measured.speed.quality == "error"
    assert measured.chars.content == 4 * before
