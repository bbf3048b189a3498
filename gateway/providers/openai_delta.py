"""What was generated, in one delta or message of the OpenAI dialect: characters by kind, whole tool calls."""

from typing import Any

from gateway.core.reading import Reading
from gateway.core.types import Json
from gateway.providers.values import compact_length, is_whole_object

# The same text under several names: counted once, by the longest.
_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_text", "thinking"})
# Bear no token, or repeat what another field says.
_SILENT = frozenset(
    {"role", "name", "id", "object", "index", "type", "status", "prefix", "padding", "obfuscation", "token_id"}
    | {"annotations", "citations", "tool_call_id", "extra_content", "provider_specific_fields", "thinking_blocks"}
    | {"signature", "reasoning_signature", "reasoning_opaque", "encrypted_content", "logprobs"}
    | {"content_filter_results", "finish_reason", "stop_reason", "matched_stop"}
)


# How models without a parser before them write their thinking into the answer.
OPENING, CLOSING = "<think>", "</think>"


def read_message(reading: Reading, message: Any) -> None:
    """Adds what one whole message generated; thinking that its text begins with is no answer."""
    read_delta(reading, message)
    text = message.get("content") if type(message) is dict else None
    if type(text) is str and (thought := text.lstrip()).startswith(OPENING):
        end = thought.find(CLOSING)
        chars = len(thought) if end < 0 else end + len(CLOSING)
        reading.content -= chars
        reading.reasoning += chars


def read_plain_delta(reading: Reading, delta: Json) -> bool:
    """Text and reasoning among nulls. False, untouched, where there is anything else."""
    content = reasoning = 0
    for key, value in delta.items():
        if not value or key == "role":
            continue
        if type(value) is not str:
            return False
        if key == "content":
            content = len(value)
        elif key in _REASONING:
            reasoning = max(reasoning, len(value))
        else:
            return False
    reading.content, reading.reasoning = content, reasoning
    return True


def read_delta(reading: Reading, delta: Any) -> None:
    """Adds what one delta, or one whole message, generated."""
    if type(delta) is not dict:
        return
    reasoning = 0
    for key, value in delta.items():
        if not value:
            continue
        if key == "content":
            if type(value) is str:
                reading.content += len(value)
            else:
                _read_parts(reading, value)
        elif key in _REASONING:
            reasoning = max(reasoning, _text_length(value))
        elif key == "reasoning_details":
            reasoning = max(reasoning, _read_details(reading, value))
        elif key not in _SILENT:
            _read_further(reading, key, value)
    reading.reasoning += reasoning
    if "extra_content" in delta:
        _move_thought(reading, delta)


def _read_further(reading: Reading, key: str, value: Any) -> None:
    if key == "tool_calls":
        for call in value if type(value) is list else (value,):
            if type(call) is dict:
                _read_function(reading, call.get("function") or call.get("custom"))
    elif key == "function_call":
        _read_function(reading, value)
    elif key == "refusal":
        reading.content += _text_length(value)
    elif type(value) is dict or type(value) is list or type(value) is str:
        reading.unknown_delta = True


def _move_thought(reading: Reading, delta: Json) -> None:
    """Gemini's compatible endpoint streams summaries of thoughts as content with a flag beside it."""
    extra = delta["extra_content"]
    google = extra.get("google") if type(extra) is dict else None
    content = delta.get("content")
    if type(google) is dict and google.get("thought") is True and type(content) is str:
        reading.content -= len(content)
        reading.reasoning += len(content)
        reading.summarised = True


def _read_parts(reading: Reading, parts: Any) -> None:
    """Content as a list of typed parts, or one part."""
    for part in parts if type(parts) is list else (parts,):
        if type(part) is str:
            reading.content += len(part)
            continue
        if type(part) is not dict:
            continue
        kind = part.get("type")
        if kind in ("thinking", "reasoning"):
            reading.reasoning += max(_text_length(part.get(name)) for name in ("thinking", "reasoning", "text"))
        elif type(part.get("text")) is str:
            reading.content += len(part["text"])
        elif kind == "refusal":
            reading.content += _text_length(part.get("refusal"))
        elif kind not in ("reference", "text"):
            reading.unknown_delta = True


def _read_details(reading: Reading, details: Any) -> int:
    """OpenRouter's and MiniMax's `reasoning_details`."""
    length = 0
    for detail in details if type(details) is list else (details,):
        if type(detail) is not dict:
            continue
        if detail.get("type") == "reasoning.summary":
            reading.summarised = True
        length += max(_text_length(detail.get("text")), _text_length(detail.get("summary")))
    return length


def _read_function(reading: Reading, function: Any) -> None:
    if type(function) is not dict:
        return
    name = function.get("name")
    arguments = function.get("arguments") or function.get("input")
    if type(name) is str:
        reading.tool += len(name)
    if type(arguments) is str:
        reading.tool += len(arguments)
        if is_whole_object(arguments):
            reading.tool_calls_whole += 1
    elif type(arguments) is dict:
        reading.tool += compact_length(arguments)
        reading.tool_calls_whole += 1


def _text_length(value: Any) -> int:
    """Of a text, or of the texts of a list of parts or of one part."""
    if type(value) is str:
        return len(value)
    if type(value) is list:
        return sum(_text_length(item.get("text") if type(item) is dict else item) for item in value[:10_000])
    if type(value) is dict:
        return max(_text_length(value.get("text")), _text_length(value.get("content")))
    return 0
