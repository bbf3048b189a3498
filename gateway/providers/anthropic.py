"""The Anthropic dialect: events of a Messages stream, and whole messages."""

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading, Usage
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.values import (
    added,
    compact_length,
    count_at,
    length_at,
    load_object,
    object_at,
    objects_at,
    text_at,
)

# Blocks whose start names something that was generated.
_NAMED = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
# Blocks and deltas that bear no token of the model: signatures, encrypted thinking, what a tool found.
_SILENT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "fallback", "compaction"})
_SILENT_DELTAS = frozenset({"signature_delta", "citations_delta"})


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    event = load_object(payload)
    if event is None:
        if name == b"error":
            return Reading(error=error_in_stream(payload[:8000].decode("utf-8", "replace")))
        return Reading(bad=True)
    reading = Reading()
    kind = event.get("type")
    if kind == "content_block_delta":
        _read_delta(reading, object_at(event, "delta"))
    elif kind == "content_block_start":
        _read_block(reading, object_at(event, "content_block"))
    elif kind == "message_start":
        _read_start(reading, object_at(event, "message"))
    elif kind == "message_delta":
        reading.finish = text_at(object_at(event, "delta"), "stop_reason")
        _read_counts(reading, object_at(event, "usage"))
    elif kind == "message_stop":
        reading.terminal = True
    elif kind == "ping":
        reading.ping = True
    elif kind == "error" or name == b"error" or event.get("error"):
        reading.error = error_in_stream(event)
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """Nothing has to be remembered between events."""
    return read_event


def read_body(payload: bytes) -> Reading:
    """A whole message."""
    body = load_object(payload)
    if body is None:
        return Reading(bad=True)
    if body.get("type") == "error" or body.get("error"):
        return Reading(error=error_in_stream(body))
    reading = Reading(
        model=text_at(body, "model"), response_id=text_at(body, "id"), finish=text_at(body, "stop_reason")
    )
    for block in objects_at(body, "content"):
        _read_block(reading, block)
        if block.get("type") in _NAMED:
            reading.tool += compact_length(block.get("input"))
    _read_counts(reading, object_at(body, "usage"))
    return reading


def _read_start(reading: Reading, message: Json) -> None:
    """`output_tokens` in it is a placeholder: the count comes at the end."""
    reading.restart = True
    reading.model, reading.response_id = text_at(message, "model"), text_at(message, "id")
    _read_counts(reading, object_at(message, "usage"))
    if reading.usage is not None:
        reading.usage.output = reading.usage.reasoning = None


def _read_block(reading: Reading, block: Json) -> None:
    """A block that starts, or a whole one. What it holds already was generated."""
    kind = block.get("type")
    reading.content += length_at(block, "text")
    thought = length_at(block, "thinking")
    reading.reasoning += thought
    reading.summarised = reading.summarised or kind in ("thinking", "redacted_thinking")
    if kind in _NAMED:
        reading.tool += length_at(block, "name")
    elif kind == "fallback":
        reading.serving_model = text_at(object_at(block, "to"), "model")
    elif kind not in _SILENT_BLOCKS and not reading.content:
        reading.unknown_delta = kind is not None


def _read_delta(reading: Reading, delta: Json) -> None:
    kind = delta.get("type")
    reading.content = length_at(delta, "text")
    reading.reasoning = length_at(delta, "thinking")
    reading.tool = length_at(delta, "partial_json")
    # What streams as thinking may be a summary of it, and nothing in the stream tells.
    reading.summarised = kind == "thinking_delta"
    if not (reading.content or reading.reasoning or reading.tool) and kind not in _SILENT_DELTAS:
        reading.unknown_delta = kind not in ("text_delta", "thinking_delta", "input_json_delta") and len(delta) > 1


def _read_counts(reading: Reading, usage: Json) -> None:
    """Input counts come apart: uncached, read from the cache, written to it."""
    read, written = count_at(usage, "cache_read_input_tokens"), count_at(usage, "cache_creation_input_tokens")
    plain, output = count_at(usage, "input_tokens"), count_at(usage, "output_tokens")
    reading.tier = text_at(usage, "speed") or text_at(usage, "service_tier")
    if plain is None and output is None:
        return
    details = object_at(usage, "output_tokens_details")
    reading.usage = Usage(
        input=added(plain, read, written) if plain is not None else None,
        cached=read,
        cache_write=written,
        output=output,
        reasoning=count_at(details, "thinking_tokens", "reasoning_tokens"),
    )


class AnthropicReader:
    """The port `WireReader`."""

    name: str = "anthropic"
    framing: str = "sse"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
