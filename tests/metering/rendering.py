"""Answers with a known truth, rendered as each dialect would stream them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from tests.upstream.test_eventstream import message

# What was generated, piece by piece: kind (`text`, `thought`, `call`) and the characters of it.
Piece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Truth:
    """One answer. Tokens are the provider's final counts; `output` includes `reasoning`."""

    pieces: tuple[Piece, ...]
    prompt: int
    cached: int
    output: int
    reasoning: int

    def chars(self, kind: str) -> int:
        return sum(len(text) for of, text in self.pieces if of == kind)


def sse(body: Any, event: str | None = None) -> bytes:
    named = f"event: {event}\n".encode() if event else b""
    return named + b"data: " + orjson.dumps(body) + b"\n\n"


def _runs(pieces: tuple[Piece, ...]) -> Iterator[tuple[str, list[str]]]:
    """Neighbours of one kind: a block each."""
    texts: list[str] = []
    before = ""
    for kind, text in pieces:
        if texts and kind != before:
            yield before, texts
            texts = []
        before = kind
        texts.append(text)
    if texts:
        yield before, texts


def openai(truth: Truth) -> list[bytes]:
    def chunk(finish: str | None = None, **delta: Any) -> bytes:
        return sse({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    fields: dict[str, Callable[[str], dict[str, Any]]] = {
        "text": lambda text: {"content": text},
        "thought": lambda text: {"reasoning_content": text},
        "call": lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]},
    }
    usage = {
        "prompt_tokens": truth.prompt,
        "completion_tokens": truth.output,
        "total_tokens": truth.prompt + truth.output,
        "prompt_tokens_details": {"cached_tokens": truth.cached},
        "completion_tokens_details": {"reasoning_tokens": truth.reasoning},
    }
    return [
        chunk(role="assistant", content=""),
        *(chunk(**fields[kind](text)) for kind, text in truth.pieces),
        chunk("stop") + sse({"id": "c", "choices": [], "usage": usage}) + b"data: [DONE]\n\n",
    ]


def anthropic(truth: Truth) -> list[bytes]:
    usage = {"input_tokens": truth.prompt - truth.cached, "cache_read_input_tokens": truth.cached, "output_tokens": 3}
    start = {"type": "message_start", "message": {"id": "m", "model": "c", "usage": usage}}
    events = [sse(start, "message_start") + sse({"type": "ping"}, "ping")]
    blocks = {"text": ("text", "text_delta", "text"), "thought": ("thinking", "thinking_delta", "thinking")}
    blocks["call"] = ("text", "input_json_delta", "partial_json")
    for index, (kind, texts) in enumerate(_runs(truth.pieces)):
        block, delta, field = blocks[kind]
        head = sse(
            {"type": "content_block_start", "index": index, "content_block": {"type": block}}, "content_block_start"
        )
        for text in texts:
            body = {"type": "content_block_delta", "index": index, "delta": {"type": delta, field: text}}
            events.append(head + sse(body, "content_block_delta"))
            head = b""
        events[-1] += sse({"type": "content_block_stop", "index": index}, "content_block_stop")
    counts: dict[str, Any] = {"output_tokens": truth.output}
    if truth.reasoning:
        counts["output_tokens_details"] = {"thinking_tokens": truth.reasoning}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}
    return [*events, sse(end, "message_delta") + sse({"type": "message_stop"}, "message_stop")]


def gemini(truth: Truth) -> list[bytes]:
    """Cumulative counts in every chunk, thoughts beside the answer, CRLF."""
    events = []
    for index, (kind, text) in enumerate(truth.pieces):
        part: dict[str, Any] = {"text": text, **({"thought": True} if kind == "thought" else {})}
        if kind == "call":
            part = {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": text}], "willContinue": True}}
        so_far = {"promptTokenCount": truth.prompt, "candidatesTokenCount": index + 1}
        events.append(sse({"candidates": [{"content": {"parts": [part]}, "index": 0}], "usageMetadata": so_far}))
    counts = {
        "promptTokenCount": truth.prompt,
        "cachedContentTokenCount": truth.cached,
        "candidatesTokenCount": truth.output - truth.reasoning,
        "thoughtsTokenCount": truth.reasoning,
        "totalTokenCount": truth.prompt + truth.output,
    }
    tail = {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}], "usageMetadata": counts}
    return [event.replace(b"\n", b"\r\n") for event in [*events, sse(tail)]]


def responses(truth: Truth) -> list[bytes]:
    kinds = {
        "text": "response.output_text.delta",
        "thought": "response.reasoning_text.delta",
        "call": "response.function_call_arguments.delta",
    }
    created = {"type": "response.created", "response": {"id": "r", "model": "m", "service_tier": "auto"}}
    usage = {
        "input_tokens": truth.prompt,
        "input_tokens_details": {"cached_tokens": truth.cached},
        "output_tokens": truth.output,
        "output_tokens_details": {"reasoning_tokens": truth.reasoning},
        "total_tokens": truth.prompt + truth.output,
    }
    whole = "".join(text for kind, text in truth.pieces if kind == "text")
    return [
        sse(created, "response.created") + sse({"type": "keepalive", "sequence_number": 1}, "keepalive"),
        *(sse({"type": kinds[kind], "delta": text}, kinds[kind]) for kind, text in truth.pieces),
        sse({"type": "response.output_text.done", "text": whole}, "response.output_text.done")
        + sse({"type": "response.completed", "response": {"id": "r", "usage": usage}}, "response.completed"),
    ]


def bedrock(truth: Truth) -> list[bytes]:
    deltas: dict[str, Callable[[str], dict[str, Any]]] = {
        "text": lambda text: {"text": text},
        "thought": lambda text: {"reasoningContent": {"text": text}},
        "call": lambda text: {"toolUse": {"input": text}},
    }
    usage = {
        "inputTokens": truth.prompt - truth.cached,
        "cacheReadInputTokens": truth.cached,
        "outputTokens": truth.output,
    }
    bodies = [orjson.dumps({"delta": deltas[kind](text), "p": "abcdef"}) for kind, text in truth.pieces]
    return [
        message(b'{"role":"assistant"}', "messageStart"),
        *(message(body, "contentBlockDelta") for body in bodies),
        message(b'{"stopReason":"end_turn"}', "messageStop") + message(orjson.dumps({"usage": usage}), "metadata"),
    ]


def cohere(truth: Truth) -> list[bytes]:
    messages: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
        "text": lambda text: ("content-delta", {"content": {"type": "text", "text": text}}),
        "thought": lambda text: ("content-delta", {"content": {"type": "thinking", "thinking": text}}),
        "call": lambda text: ("tool-call-delta", {"tool_calls": {"function": {"arguments": text}}}),
    }
    events = []
    for kind, text in truth.pieces:
        event, body = messages[kind](text)
        events.append(sse({"type": event, "index": 0, "delta": {"message": body}}, event))
    usage = {
        "billed_units": {"input_tokens": 1, "output_tokens": 1},
        "tokens": {"input_tokens": truth.prompt, "output_tokens": truth.output},
        "cached_tokens": truth.cached,
    }
    start = {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant", "content": []}}}
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}
    return [sse(start, "message-start"), *events, sse(end, "message-end")]


def ollama(truth: Truth) -> list[bytes]:
    fields = {"text": "content", "thought": "thinking", "call": "content"}
    lines = [{"message": {"role": "assistant", fields[kind]: text}, "done": False} for kind, text in truth.pieces]
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": truth.prompt, "eval_count": truth.output}
    return [orjson.dumps(line) + b"\n" for line in [*lines, end]]


RENDERERS: dict[str, Callable[[Truth], list[bytes]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "responses": responses,
    "bedrock": bedrock,
    "cohere": cohere,
    "ollama": ollama,
}
